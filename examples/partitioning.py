"""A tour of the ways in which records find their subtask, and of union."""

from firesteel.datastream import MapFunction, StreamExecutionEnvironment


class Here(MapFunction):
    """Adds the number of the subtask that sees the record."""

    def __init__(self, how):
        self.how = how

    def open(self, runtime_context):
        self.subtask = runtime_context.get_index_of_this_subtask()

    def map(self, number):
        return f"{self.how}: {number} at subtask {self.subtask}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    low, high = env.from_collection([1, 2]), env.from_collection([3, 4])
    numbers = low.union(high)  # the records of both, in no particular order

    tour = {
        "rebalance": numbers.rebalance(),  # in turns
        "shuffle": numbers.shuffle(),  # at random
        "global": numbers.global_(),  # all to the first subtask
        "broadcast": numbers.broadcast(),  # each to every subtask
        "custom": numbers.partition_custom(lambda key, subtasks: key % subtasks, lambda number: number),
        "key_by": numbers.key_by(lambda number: number % 2),  # equal keys together: the one that keyed state needs
    }
    for how, spread in tour.items():
        spread.map(Here(how)).print()
    env.execute("partitioning")


if __name__ == "__main__":
    main()
