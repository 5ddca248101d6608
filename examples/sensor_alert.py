"""Alert when two consecutive readings of one sensor differ by more than 10 degrees."""

from firesteel.common import Types
from firesteel.datastream import KeyedProcessFunction, StreamExecutionEnvironment, ValueStateDescriptor

READINGS = [("oven", 20.0), ("cellar", 12.5), ("oven", 24.5), ("oven", 61.0), ("cellar", 13.0), ("oven", 65.5)]


class JumpAlert(KeyedProcessFunction):
    def open(self, runtime_context):
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.DOUBLE()))

    def process_element(self, reading, ctx):
        sensor, temperature = reading
        last = self.last.value()  # of this sensor; None for its first reading
        if last is not None and abs(temperature - last) > 10:
            yield f"{sensor} went from {last} to {temperature}"
        self.last.update(temperature)


env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(2)
env.enable_checkpointing(1000)
env.from_collection(READINGS).key_by(lambda reading: reading[0]).process(JumpAlert()).print()
env.execute("sensor alert")
