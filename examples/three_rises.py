"""Alert when the temperature of a sensor has risen over three readings in a row within a minute, and forget old ones."""

from firesteel.common import Types, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from firesteel.datastream.state import ListStateDescriptor

READINGS = [  # sensor, time in milliseconds, temperature
    ("oven", 1_000, 20.0),
    ("cellar", 2_000, 12.0),
    ("oven", 10_000, 24.0),
    ("cellar", 40_000, 13.0),
    ("oven", 20_000, 30.0),  # the third one
    ("cellar", 90_000, 14.0),  # the third one as well, but not within a minute
    ("oven", 95_000, 29.0),
]
WITHIN = 60_000


class TimeOfReading(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class ThreeRises(KeyedProcessFunction):
    def open(self, runtime_context):
        reading = Types.TUPLE([Types.LONG(), Types.DOUBLE()])
        self.rising = runtime_context.get_list_state(ListStateDescriptor("rising", reading))

    def process_element(self, reading, ctx):
        sensor, time, temperature = reading
        rising = [(then, before) for then, before in self.rising.get() if time - then < WITHIN]
        if rising and temperature <= rising[-1][1]:
            rising.clear()
        rising = [*rising, (time, temperature)][-3:]
        self.rising.update(rising)
        ctx.timer_service().register_event_time_timer(time + WITHIN)
        if len(rising) == 3:
            yield f"{sensor} rose from {rising[0][1]} to {temperature} within {(time - rising[0][0]) // 1000} seconds"

    def on_timer(self, timestamp, ctx):
        """Nothing of a minute ago counts any more: a sensor that is heard of no more leaves nothing behind."""
        self.rising.update([(then, before) for then, before in self.rising.get() if timestamp - then < WITHIN])


def rises(readings):
    """The readings of one sensor come in order; those of another may be far ahead."""
    in_order = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(TimeOfReading())
    return readings.assign_timestamps_and_watermarks(in_order).key_by(lambda reading: reading[0]).process(ThreeRises())


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(
        1
    )  # as the source has: if several subtasks gave out timestamps, readings of one sensor could change places
    rises(env.from_collection(READINGS)).print()
    env.execute("three rises")


if __name__ == "__main__":
    main()
