"""Counts of each minute, corrected by what comes up to 30 seconds late; what comes later still goes to a side output."""

from firesteel.common import Time, Types, WatermarkStrategy
from firesteel.common.watermark_strategy import WatermarkGenerator
from firesteel.datastream import OutputTag, StreamExecutionEnvironment
from firesteel.datastream.window import TumblingEventTimeWindows

READINGS = [  # sensor, second
    ("oven", 10),
    ("oven", 58),
    ("oven", 66),  # the first minute is over: it has 2
    ("oven", 40),  # late, but within 30 seconds: it has 3
    ("oven", 95),
    ("oven", 50),  # too late
    ("oven", 130),
]
LATE = OutputTag("late", Types.TUPLE([Types.STRING(), Types.INT()]))


class FiveSecondsBehind(WatermarkGenerator):
    """After every reading, so that a short example has late data at all; built-in strategies emit now and then."""

    def on_event(self, event, event_timestamp, output):
        output.emit_watermark(event_timestamp - 5_000)

    def on_periodic_emit(self, output):
        """All is said with the readings."""


def counts(readings):
    strategy = WatermarkStrategy.for_generator(FiveSecondsBehind)
    timed = readings.assign_timestamps_and_watermarks(
        strategy.with_timestamp_assigner(lambda reading, _: reading[1] * 1000)
    )
    by_minute = timed.key_by(lambda reading: reading[0]).window(TumblingEventTimeWindows.of(Time.minutes(1)))
    tolerant = by_minute.allowed_lateness(30_000).side_output_late_data(LATE)

    def count(sensor, window, readings):
        return [f"{sensor}, minute {window.start // 60_000}: {len(readings)}"]

    return tolerant.apply(count)


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    # One subtask, as the source has: if several gave out timestamps, readings could overtake each other
    env.set_parallelism(1)
    counted = counts(env.from_collection(READINGS))
    counted.print("count")
    counted.get_side_output(LATE).print("too late")
    env.execute("late windows")


if __name__ == "__main__":
    main()
