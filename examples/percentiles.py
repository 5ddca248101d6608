"""The 75th and 99th percentile of each hour's response times: a window function that sees all records of its window."""

from math import ceil

from firesteel.common import Duration, Time, WatermarkStrategy
from firesteel.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from firesteel.datastream.window import TumblingEventTimeWindows

HOUR = 3_600_000
# page, milliseconds a response took, when: a request every 30 seconds for two hours, and a few slow ones
RESPONSES = [("/cart", 20 + number * 37 % 100, number * 30_000) for number in range(240)]
RESPONSES += [("/cart", 900, 600_000), ("/cart", 950, 610_000), ("/help", 5, HOUR + 1)]


class Percentiles(ProcessWindowFunction):
    """All response times of the hour are kept until it is over. For many of them, keep a digest with aggregate() instead."""

    def process(self, key, context, responses):
        took = sorted(took for _, took, _ in responses)
        # the smallest that at least so many percent do not exceed
        p75, p99 = (took[ceil(len(took) * percent / 100) - 1] for percent in (75, 99))
        yield f"{key} in hour {context.window().start // HOUR}: p75 {p75} ms, p99 {p99} ms of {len(took)}"


def percentiles(responses):
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_minutes(1))
    timed = responses.assign_timestamps_and_watermarks(
        strategy.with_timestamp_assigner(lambda response, _: response[2])
    )
    by_page = timed.key_by(lambda response: response[0])
    return by_page.window(TumblingEventTimeWindows.of(Time.hours(1))).process(Percentiles())


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    percentiles(env.from_collection(RESPONSES)).print()
    env.execute("percentiles")


if __name__ == "__main__":
    main()
