"""Alert when the temperature of a sensor has kept rising for 10 seconds, by event time: timers and watermarks."""

from firesteel.common import Duration, Types, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from firesteel.datastream.state import ValueStateDescriptor

READINGS = [  # sensor, time in milliseconds, temperature
    ("oven", 1_000, 20.0),
    ("cellar", 2_000, 12.0),
    ("oven", 4_000, 24.0),  # from here on it rises
    ("cellar", 5_000, 13.0),
    ("cellar", 9_000, 12.5),  # falls before its 10 seconds are over: no alert
    ("oven", 11_000, 30.0),
    ("oven", 15_000, 31.0),
    ("oven", 16_000, 29.0),  # falls, but only after 12 seconds
    ("cellar", 17_000, 12.0),
]
RISING_FOR = 10_000


class TimeOfReading(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class KeepsRising(KeyedProcessFunction):
    def open(self, runtime_context):
        self.last = runtime_context.get_state(ValueStateDescriptor("last temperature", Types.DOUBLE()))
        self.timer = runtime_context.get_state(ValueStateDescriptor("timer", Types.LONG()))

    def process_element(self, reading, ctx):
        _, time, temperature = reading
        last, timer = self.last.value(), self.timer.value()
        self.last.update(temperature)
        if last is None:
            return
        if temperature > last and timer is None:
            self.timer.update(time + RISING_FOR)
            ctx.timer_service().register_event_time_timer(time + RISING_FOR)
        elif temperature <= last and timer is not None:
            # The watermark trails the readings, so a timer whose time has come may not have fired yet: let it
            if time < timer:
                ctx.timer_service().delete_event_time_timer(timer)
            self.timer.clear()

    def on_timer(self, timestamp, ctx):
        # State is that of now, which is later than the timer's time: what is reported here must not depend on it
        yield f"{ctx.get_current_key()} has been rising since {timestamp - RISING_FOR}"


def alerts(readings):
    """Readings of one sensor come in order; those of different sensors may be up to 5 seconds apart."""
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5))
    timed = readings.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(TimeOfReading()))
    return timed.key_by(lambda reading: reading[0]).process(KeepsRising())


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    # One subtask, as the source has: if several gave out timestamps, readings of one sensor could overtake each other
    env.set_parallelism(1)
    alerts(env.from_collection(READINGS)).print()
    env.execute("rising temperature")


if __name__ == "__main__":
    main()
