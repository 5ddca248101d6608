"""All values of a key so far as one text, with an AggregatingState: numbers go in, a list is kept, a text comes out."""

from firesteel.common import Types
from firesteel.datastream import AggregateFunction, KeyedProcessFunction, StreamExecutionEnvironment
from firesteel.datastream.state import AggregatingStateDescriptor

PAIRS = [(1, 3.0), (1, 5.0), (1, 7.0), (2, 4.0), (2, 2.0), (2, 6.0)]


class Contains(AggregateFunction):
    """Its input, its accumulator and its result are of three different types."""

    def create_accumulator(self):
        return []

    def add(self, value, accumulator):
        return [*accumulator, value]

    def get_result(self, accumulator):
        return "-".join(["Contains", *map(str, accumulator)])

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


class ContainedValues(KeyedProcessFunction):
    def open(self, runtime_context):
        descriptor = AggregatingStateDescriptor("values", Contains(), Types.LIST(Types.DOUBLE()))
        self.values = runtime_context.get_aggregating_state(descriptor)

    def process_element(self, pair, ctx):
        self.values.add(pair[1])
        yield ctx.get_current_key(), self.values.get()


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    pairs = env.from_collection(PAIRS).key_by(lambda pair: pair[0])
    pairs.process(ContainedValues(), Types.TUPLE([Types.INT(), Types.STRING()])).print()
    env.execute("aggregating state")


if __name__ == "__main__":
    main()
