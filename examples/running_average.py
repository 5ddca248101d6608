"""The average of all values of a key so far, from its second value on, kept as (count, sum) in a ValueState."""

from firesteel.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from firesteel.datastream.state import ValueStateDescriptor

PAIRS = [(1, 3), (1, 5), (1, 7), (1, 4), (1, 2)]


class RunningAverage(KeyedProcessFunction):
    def open(self, runtime_context):
        self.so_far = runtime_context.get_state(ValueStateDescriptor("count and sum"))

    def process_element(self, pair, ctx):
        count, total = self.so_far.value() or (0, 0)
        count, total = count + 1, total + pair[1]
        self.so_far.update((count, total))  # a new tuple: a value must never be changed in place
        if count > 1:
            yield ctx.get_current_key(), total / count


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    averages = env.from_collection(PAIRS).key_by(lambda pair: pair[0]).process(RunningAverage())

    # Instead of printing in the slots, bring the results to this program. Each is seen once, whatever happens to the job.
    with averages.execute_and_collect("running average") as results:
        for key, average in results:
            print(f"key {key}: average {average}")


if __name__ == "__main__":
    main()
