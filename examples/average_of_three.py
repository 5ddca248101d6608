"""The average of the values of a key as soon as there are three of them, then of the next three: two kinds of state."""

from firesteel.common import Types
from firesteel.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from firesteel.datastream.state import ListStateDescriptor, MapStateDescriptor

PAIRS = [(1, 3), (1, 5), (1, 7), (2, 4), (2, 2), (2, 6)]
AVERAGE = Types.TUPLE([Types.INT(), Types.DOUBLE()])  # a declared type is checked, and decides how a record is printed


class ByListState(KeyedProcessFunction):
    """Adding to a list does not read what is in it, so a long one costs no more than a short one."""

    def open(self, runtime_context):
        self.values = runtime_context.get_list_state(ListStateDescriptor("values", Types.INT()))

    def process_element(self, pair, ctx):
        self.values.add(pair[1])
        values = list(self.values.get())
        if len(values) >= 3:
            yield ctx.get_current_key(), sum(values) / len(values)
            self.values.clear()  # of this key only, as everything that is done to keyed state


class ByMapState(KeyedProcessFunction):
    """The entries of a map are read and written one by one. Here they are numbered."""

    def open(self, runtime_context):
        self.values = runtime_context.get_map_state(MapStateDescriptor("values", Types.INT(), Types.INT()))

    def process_element(self, pair, ctx):
        number = len(list(self.values.keys()))
        self.values.put(number, pair[1])
        if number + 1 >= 3:
            values = list(self.values.values())
            yield ctx.get_current_key(), sum(values) / len(values)
            self.values.clear()


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    pairs = env.from_collection(PAIRS).key_by(lambda pair: pair[0])
    pairs.process(ByListState(), AVERAGE).print("list")
    pairs.process(ByMapState(), AVERAGE).print("map")
    env.execute("average of three")


if __name__ == "__main__":
    main()
