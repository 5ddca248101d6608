"""A sink of your own that keeps records back and prints every two of them together.

What it keeps back is an attribute of the object, which no checkpoint knows of: after a failure the records in it are
gone. Operator state, which comes in a later version, is the place for them. Until then a sink that must lose nothing
defines `flush()`, which is called before a checkpoint counts its records as done, or takes part in checkpoints itself as
custom_sink.py does.
"""

from firesteel.datastream import SinkFunction, StreamExecutionEnvironment

WORDS = ["to", "be", "or", "not", "to", "be", "that"]


class PrintInPairs(SinkFunction):
    def open(self, runtime_context):
        self.buffer = []  # made here and not in __init__: every subtask has one of its own

    def invoke(self, value, context):
        self.buffer.append(value)
        if len(self.buffer) == 2:
            self.print_buffer()

    def close(self):
        if self.buffer:  # an odd one at the end
            self.print_buffer()

    def print_buffer(self):
        print(" and ".join(self.buffer))  # in a slot, which passes on to this program what is printed
        self.buffer.clear()


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    env.from_collection(WORDS).add_sink(PrintInPairs())
    env.execute("buffering sink")


if __name__ == "__main__":
    main()
