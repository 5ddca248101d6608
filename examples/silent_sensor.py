"""Say when nothing was heard of a sensor for two seconds, by the clock on the wall: processing time timers."""

from firesteel.common import Types
from firesteel.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from firesteel.datastream.connectors import DataGeneratorSource, RateLimiterStrategy
from firesteel.datastream.state import ValueStateDescriptor

SILENT_FOR = 2_000


class Silence(KeyedProcessFunction):
    def open(self, runtime_context):
        self.timer = runtime_context.get_state(ValueStateDescriptor("timer", Types.LONG()))

    def process_element(self, sensor, ctx):
        timers = ctx.timer_service()
        if self.timer.value() is not None:
            timers.delete_processing_time_timer(self.timer.value())
        self.timer.update(timers.current_processing_time() + SILENT_FOR)
        timers.register_processing_time_timer(self.timer.value())

    def on_timer(self, timestamp, ctx):
        yield f"nothing heard of the {ctx.get_current_key()} for two seconds"
        self.timer.clear()


def silent_sensors(sensors):
    return sensors.key_by(lambda sensor: sensor).process(Silence())


def reading(number):
    return "cellar" if number == 3 else "oven"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    # Ten records a second for four seconds. At the end of the input nobody waits for timers of the processing time
    source = DataGeneratorSource(reading, 40, RateLimiterStrategy.per_second(10))
    silent_sensors(env.from_source(source, None, "sensors")).print()
    env.execute("silent sensor")


if __name__ == "__main__":
    main()
