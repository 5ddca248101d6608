"""The average of a key after each of its values, with a ReducingState that adds up (count, sum)."""

from firesteel.common import Types
from firesteel.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from firesteel.datastream.state import ReducingStateDescriptor

PAIRS = [(1, 3), (1, 5), (1, 7), (2, 4), (2, 2), (2, 6)]


def add(so_far, new):
    """Called when there is something to add to: the first value of a key is its reduction as it is."""
    return so_far[0] + new[0], so_far[1] + new[1]


class RunningAverage(KeyedProcessFunction):
    def open(self, runtime_context):
        count_and_sum = Types.TUPLE([Types.INT(), Types.INT()])
        self.so_far = runtime_context.get_reducing_state(ReducingStateDescriptor("count and sum", add, count_and_sum))

    def process_element(self, pair, ctx):
        self.so_far.add((1, pair[1]))
        count, total = self.so_far.get()
        yield ctx.get_current_key(), total / count


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    pairs = env.from_collection(PAIRS).key_by(lambda pair: pair[0])
    pairs.process(RunningAverage(), Types.TUPLE([Types.INT(), Types.DOUBLE()])).print()
    env.execute("reducing state")


if __name__ == "__main__":
    main()
