"""Follow each visitor from a view to the cart to an order, and say who gave up: a state machine with timers."""

from firesteel.common import Duration, Types, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from firesteel.datastream.state import ValueStateDescriptor

MINUTE = 60_000
EVENTS = [  # visitor, minute, what they did
    ("ann", 0, "view"),
    ("bob", 1, "view"),
    ("ann", 3, "cart"),
    ("cid", 4, "view"),
    ("bob", 5, "cart"),
    ("ann", 9, "order"),
    ("bob", 40, "order"),  # more than half an hour after the cart: that was given up, and this is no order of it
]
PATIENCE = 30 * MINUTE
NEXT = {"view": "cart", "cart": "order"}


class TimeOfEvent(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1] * MINUTE


class Funnel(KeyedProcessFunction):
    def open(self, runtime_context):
        self.step = runtime_context.get_state(ValueStateDescriptor("step", Types.STRING()))
        self.until = runtime_context.get_state(ValueStateDescriptor("until", Types.LONG()))

    def process_element(self, event, ctx):
        visitor, _, did = event
        step, until = self.step.value(), self.until.value()
        if step is not None and ctx.timestamp() >= until:  # the timer is due, but the watermark trails the events
            yield visitor, f"gave up after {step}"
            self.forget(ctx)
            step = None
        if did != NEXT.get(step, "view"):
            return
        self.forget(ctx)
        if did == "order":
            yield visitor, "ordered"
        else:
            self.step.update(did)
            self.until.update(ctx.timestamp() + PATIENCE)
            ctx.timer_service().register_event_time_timer(self.until.value())

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), f"gave up after {self.step.value()}"
        self.forget(ctx)

    def forget(self, ctx):
        if self.until.value() is not None:
            ctx.timer_service().delete_event_time_timer(self.until.value())
        self.step.clear()
        self.until.clear()


def outcomes(events):
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_minutes(1))
    timed = events.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(TimeOfEvent()))
    return timed.key_by(lambda event: event[0]).process(Funnel(), Types.TUPLE([Types.STRING(), Types.STRING()]))


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(
        1
    )  # as the source has: if several subtasks gave out timestamps, events of one visitor could change places
    outcomes(env.from_collection(EVENTS)).print()
    env.execute("funnel")


if __name__ == "__main__":
    main()
