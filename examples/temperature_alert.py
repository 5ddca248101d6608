"""Alert when two consecutive readings of a sensor differ by more than 10 degrees: written twice, to the same effect."""

from firesteel.common import Types
from firesteel.datastream import FlatMapFunction, StreamExecutionEnvironment
from firesteel.datastream.state import ValueStateDescriptor

READINGS = [("oven", 20.0), ("cellar", 12.5), ("oven", 24.5), ("oven", 61.0), ("cellar", 1.0), ("oven", 65.5)]
LIMIT = 10.0


class JumpAlert(FlatMapFunction):
    """By a function class, which registers its state in open()."""

    def open(self, runtime_context):
        self.last = runtime_context.get_state(ValueStateDescriptor("last temperature", Types.DOUBLE()))

    def flat_map(self, reading):
        sensor, temperature = reading
        last = self.last.value()
        if last is not None and abs(temperature - last) > LIMIT:  # None: the first reading has nothing to differ from
            yield sensor, last, temperature
        self.last.update(temperature)


def jump_alert(reading, last):
    """By a plain function of (value, state of its key or None), which returns (outputs, new state)."""
    sensor, temperature = reading
    jumped = last is not None and abs(temperature - last) > LIMIT
    return [(sensor, last, temperature)] if jumped else [], temperature


def by_class(readings):
    return readings.key_by(lambda reading: reading[0]).flat_map(JumpAlert())


def by_function(readings):
    return readings.key_by(lambda reading: reading[0]).flat_map_with_state(jump_alert)


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    readings = env.from_collection(READINGS)
    by_class(readings).print("class")
    by_function(readings).print("function")
    env.execute("temperature alert")


if __name__ == "__main__":
    main()
