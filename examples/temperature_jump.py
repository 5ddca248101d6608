"""Alert when two readings of one sensor within a minute differ by 20 degrees or more: a stream joined with itself."""

from firesteel.common import Duration, Time, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import ProcessJoinFunction, StreamExecutionEnvironment

READINGS = [  # sensor, time in milliseconds, temperature
    ("oven", 1_000, 20.0),
    ("cellar", 2_000, 12.0),
    ("oven", 45_000, 35.0),
    ("oven", 50_000, 41.0),  # 21 degrees above the first one, 49 seconds later
    ("cellar", 70_000, 33.0),  # 21 degrees, too, but not within a minute
    ("oven", 30_000, 22.0),  # late by 20 seconds, and 19 degrees from the one before it in time
]


class TimeOfReading(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Jump(ProcessJoinFunction):
    def process_element(self, earlier, later, ctx):
        if abs(later[2] - earlier[2]) >= 20:
            seconds = (ctx.get_right_timestamp() - ctx.get_left_timestamp()) // 1000
            yield f"{earlier[0]} went from {earlier[2]} to {later[2]} within {seconds} seconds"


def jumps(readings):
    """Readings may come up to 30 seconds late: the join keeps them for that much longer than the minute."""
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(30))
    timed = readings.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(TimeOfReading()))
    by_sensor = timed.key_by(lambda reading: reading[0])
    # from 1 ms on, so that no reading is compared with itself, nor any pair of them twice
    return by_sensor.interval_join(by_sensor).between(Time.milliseconds(1), Time.minutes(1)).process(Jump())


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    jumps(env.from_collection(READINGS)).print()
    env.execute("temperature jump")


if __name__ == "__main__":
    main()
