"""The average of each minute when it is over, and readings that come later than that apart: a side output for late data."""

from firesteel.common import Types, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner, WatermarkGenerator
from firesteel.datastream import KeyedProcessFunction, OutputTag, StreamExecutionEnvironment
from firesteel.datastream.state import MapStateDescriptor

READINGS = [  # sensor, second, temperature
    ("oven", 10, 20.0),
    ("oven", 58, 22.0),
    ("oven", 62, 30.0),
    ("oven", 57, 24.0),  # out of order, but not late: the watermark is 5 seconds behind
    ("oven", 66, 32.0),  # the first minute is over now
    ("oven", 55, 99.0),  # late
    ("oven", 130, 10.0),
]
MINUTE = 60_000
LATE = OutputTag("late", Types.TUPLE([Types.STRING(), Types.INT(), Types.DOUBLE()]))


class TimeOfReading(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1] * 1000


class FiveSecondsBehind(WatermarkGenerator):
    """After every reading, so that a short example has late data at all; built-in strategies emit now and then."""

    def on_event(self, event, event_timestamp, output):
        output.emit_watermark(event_timestamp - 5_000)

    def on_periodic_emit(self, output):
        """All is said with the readings."""


class MinuteAverage(KeyedProcessFunction):
    def open(self, runtime_context):
        sums = Types.TUPLE([Types.INT(), Types.DOUBLE()])
        self.minutes = runtime_context.get_map_state(MapStateDescriptor("minutes", Types.LONG(), sums))

    def process_element(self, reading, ctx):
        last = ctx.timestamp() // MINUTE * MINUTE + MINUTE - 1  # the last millisecond of its minute
        if last <= ctx.timer_service().current_watermark():
            yield LATE, reading
            return
        count, total = self.minutes.get(last) or (0, 0.0)
        self.minutes.put(last, (count + 1, total + reading[2]))
        ctx.timer_service().register_event_time_timer(last)

    def on_timer(self, timestamp, ctx):
        count, total = self.minutes.get(timestamp)
        self.minutes.remove(timestamp)
        yield f"{ctx.get_current_key()}, minute {timestamp // MINUTE}: {total / count}"


def averages(readings):
    strategy = WatermarkStrategy.for_generator(FiveSecondsBehind).with_timestamp_assigner(TimeOfReading())
    timed = readings.assign_timestamps_and_watermarks(strategy)
    return timed.key_by(lambda reading: reading[0]).process(MinuteAverage())


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    # One subtask, as the source has: if several gave out timestamps, readings could overtake each other
    env.set_parallelism(1)
    by_minute = averages(env.from_collection(READINGS))
    by_minute.print("average")
    by_minute.get_side_output(LATE).print("late")
    env.execute("late readings")


if __name__ == "__main__":
    main()
