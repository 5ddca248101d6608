"""More windows: each user's visits to a site, the pages visited most in ten minutes, and windows of so many records."""

from firesteel.common import Duration, Time, WatermarkStrategy
from firesteel.datastream import AggregateFunction, ProcessAllWindowFunction, StreamExecutionEnvironment
from firesteel.datastream.window import EventTimeSessionWindows, TumblingEventTimeWindows

# user, page, milliseconds it took, minute
VIEWS = [
    ("ann", "home", 20, 1),
    ("bob", "home", 80, 2),
    ("ann", "cart", 10, 3),
    ("ann", "home", 60, 4),
    ("bob", "help", 40, 9),
    ("ann", "help", 90, 45),
    ("ann", "cart", 30, 46),
]


class Average(AggregateFunction):
    """Keeps a sum and a count for each window, whatever the number of its records."""

    def create_accumulator(self):
        return 0, 0

    def add(self, view, accumulator):
        return accumulator[0] + view[2], accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1]

    def merge(self, a, b):
        return a[0] + b[0], a[1] + b[1]


class Top(ProcessAllWindowFunction):
    """The pages with the most views of a window."""

    def process(self, context, counts):
        ranked = sorted(counts, key=lambda pair: (-pair[1], pair[0]))
        yield f"until minute {context.window().end // 60_000}: {ranked[:2]}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_minutes(1))
    views = env.from_collection(VIEWS).assign_timestamps_and_watermarks(
        strategy.with_timestamp_assigner(lambda view, _: view[3] * 60_000)
    )
    by_user = views.key_by(lambda view: view[0])

    def visit(user, window, views):
        return [f"{user}: {'-'.join(view[1] for view in views)} in {(window.end - window.start) // 60_000 - 30} min"]

    by_user.window(EventTimeSessionWindows.with_gap(Time.minutes(30))).apply(visit).print("visit")

    ten_minutes = TumblingEventTimeWindows.of(Time.minutes(10))
    counts = views.map(lambda view: (view[1], 1)).key_by(lambda pair: pair[0]).window(ten_minutes).sum(1)
    counts.window_all(ten_minutes).process(Top()).print(
        "top"
    )  # results have their window's time, so windows can follow

    by_user.count_window(5).max_by(2).print("slowest of five")
    by_user.count_window(3).aggregate(Average()).print("average of three")
    env.execute("visits")


if __name__ == "__main__":
    main()
