"""Two streams, one function: readings are given the place of their sensor, and wait for it when it is not known yet."""

from firesteel.common import Types
from firesteel.datastream import KeyedCoProcessFunction, StreamExecutionEnvironment
from firesteel.datastream.state import ListStateDescriptor, ValueStateDescriptor

READINGS = [("s1", 20.0), ("s2", 12.5), ("s1", 21.5), ("s3", 7.0), ("s2", 12.0)]
PLACES = [("s1", "kitchen"), ("s2", "cellar")]  # that of s3 never comes


class WithPlace(KeyedCoProcessFunction):
    """Both streams are keyed by sensor, so what it keeps for a sensor is there for either of them.

    Which of two streams' records comes first is not defined. Programs that give the same result for any order, as this
    one does, are the ones to write.
    """

    def open(self, runtime_context):
        self.place = runtime_context.get_state(ValueStateDescriptor("place", Types.STRING()))
        self.waiting = runtime_context.get_list_state(ListStateDescriptor("waiting", Types.DOUBLE()))

    def process_element1(self, reading, ctx):
        sensor, temperature = reading
        place = self.place.value()
        if place is None:
            self.waiting.add(temperature)
        else:
            yield sensor, place, temperature

    def process_element2(self, known, ctx):
        sensor, place = known
        self.place.update(place)
        for temperature in self.waiting.get():
            yield sensor, place, temperature
        self.waiting.clear()


def with_places(readings, places):
    by_sensor = readings.connect(places).key_by(lambda reading: reading[0], lambda known: known[0])
    return by_sensor.process(WithPlace(), Types.TUPLE([Types.STRING(), Types.STRING(), Types.DOUBLE()]))


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    with_places(env.from_collection(READINGS), env.from_collection(PLACES)).print()
    env.execute("enrichment")


if __name__ == "__main__":
    main()
