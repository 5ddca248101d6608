"""Windows by time and by count: counts of the last 10 s every 5 s, the slowest of each three requests."""

from firesteel.common import Duration, Time, WatermarkStrategy
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.window import SlidingEventTimeWindows

# user, milliseconds the request took, second it was made in: not quite in order
REQUESTS = [("ann", 20, 1), ("bob", 80, 3), ("ann", 10, 8), ("ann", 30, 4), ("bob", 60, 12), ("ann", 90, 65)]


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5))
    requests = env.from_collection(REQUESTS).assign_timestamps_and_watermarks(
        strategy.with_timestamp_assigner(lambda request, _: request[2] * 1000)
    )
    by_user = requests.key_by(lambda request: request[0])

    last_ten = SlidingEventTimeWindows.of(Time.seconds(10), Time.seconds(5))
    counted = requests.map(lambda request: (request[0], 1)).key_by(lambda pair: pair[0]).window(last_ten)
    counted.reduce(
        lambda a, b: (a[0], a[1] + b[1]),  # one number is kept for each user and window
        lambda key, window, counts: [f"{key}: {count} until {window.end // 1000} s" for _, count in counts],
    ).print("counts")

    by_user.count_window(3).max_by(1).print("slowest of three")
    env.execute("windows")


if __name__ == "__main__":
    main()
