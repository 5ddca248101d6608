"""Let each event through once. Its id is remembered for an hour: without a time to live, state would grow for ever."""

from firesteel.common import Time, Types
from firesteel.datastream import FilterFunction, StreamExecutionEnvironment
from firesteel.datastream.state import StateTtlConfig, ValueStateDescriptor

EVENTS = [("e1", "login"), ("e2", "buy"), ("e1", "login"), ("e3", "logout"), ("e2", "buy"), ("e1", "login")]


class SeenFirst(FilterFunction):
    def open(self, runtime_context):
        seen = ValueStateDescriptor("seen", Types.BOOLEAN())
        ttl = (
            StateTtlConfig.new_builder(Time.hours(1))
            .set_update_type(StateTtlConfig.UpdateType.OnCreateAndWrite)  # repeats do not prolong it
            .set_state_visibility(StateTtlConfig.StateVisibility.NeverReturnExpired)
            .build()
        )
        seen.enable_time_to_live(ttl)
        self.seen = runtime_context.get_state(seen)

    def filter(self, event):
        if self.seen.value():
            return False
        self.seen.update(True)
        return True


def first_of_each(events):
    return events.key_by(lambda event: event[0]).filter(SeenFirst())


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    first_of_each(env.from_collection(EVENTS)).print()
    env.execute("deduplication")


if __name__ == "__main__":
    main()
