"""A sink of your own that keeps records back and prints every two of them together.

What it keeps back is operator state: a checkpoint that counts a record as done while it is still in the buffer saves the
buffer too, and a restart goes on with it. It is not printed in close(), which is called before a restart too.
"""

from firesteel.datastream import CheckpointedFunction, ListStateDescriptor, SinkFunction, StreamExecutionEnvironment

WORDS = ["to", "be", "or", "not", "to", "be", "that", "is"]


class PrintInPairs(SinkFunction, CheckpointedFunction):
    def initialize_state(self, context):
        self.kept = context.get_operator_state_store().get_list_state(ListStateDescriptor("kept"))
        self.buffer = list(self.kept.get())  # of the checkpoint that was restored, if there is one

    def snapshot_state(self, context):
        self.kept.update(self.buffer)

    def invoke(self, value, context):
        self.buffer.append(value)
        if len(self.buffer) == 2:
            print(" and ".join(self.buffer))  # in a slot, which passes on to this program what is printed
            self.buffer.clear()


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    env.from_collection(WORDS).add_sink(PrintInPairs())
    env.execute("buffering sink")


if __name__ == "__main__":
    main()
