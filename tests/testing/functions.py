"""Functions that tests of the harness drive."""

from __future__ import annotations

from typing import Any

from firesteel.common import Types
from firesteel.datastream import (
    AggregateFunction,
    AggregatingStateDescriptor,
    KeyedProcessFunction,
    ListStateDescriptor,
    MapStateDescriptor,
    OutputTag,
    ReducingStateDescriptor,
    RuntimeContext,
    ValueStateDescriptor,
)

LATE = OutputTag("late")
ANYTHING = Types.PICKLED_BYTE_ARRAY()


class Mean(AggregateFunction):
    def create_accumulator(self) -> Any:
        return (0, 0)

    def add(self, value: Any, accumulator: Any) -> Any:
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator: Any) -> Any:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class Everything(KeyedProcessFunction):
    """All five kinds of state, both kinds of timers, and a side output. Records are (key, number)."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.last = runtime_context.get_state(ValueStateDescriptor("last", ANYTHING))
        self.seen = runtime_context.get_list_state(ListStateDescriptor("seen", ANYTHING))
        self.counts = runtime_context.get_map_state(MapStateDescriptor("counts", ANYTHING, ANYTHING))
        self.total = runtime_context.get_reducing_state(ReducingStateDescriptor("total", lambda a, b: a + b, ANYTHING))
        self.mean = runtime_context.get_aggregating_state(AggregatingStateDescriptor("mean", Mean(), ANYTHING))
        self.records = runtime_context.get_metrics_group().counter("records")

    def process_element(self, value, ctx):  # type: ignore[no-untyped-def]
        number, time, service = value[1], ctx.timestamp(), ctx.timer_service()
        self.records.inc()
        self.last.update({"number": number, "time": time})
        self.seen.add(number)
        self.counts.put(number % 3, (self.counts.get(number % 3) or 0) + 1)
        self.total.add(number)
        self.mean.add(number)
        if time is not None:
            if time <= service.current_watermark():
                yield LATE, value
            else:
                service.register_event_time_timer(time - time % 10 + 9)
        if number % 5 == 0:
            service.register_processing_time_timer(service.current_processing_time() + number + 1)
        if number % 7 == 0:
            self.seen.clear()
            self.total.clear()
        if number % 11 == 0:
            self.last.clear()
            self.counts.remove(number % 3)
        yield value[0], number, self.total.get(), self.mean.get(), sorted(self.counts.items())

    def on_timer(self, timestamp, ctx):  # type: ignore[no-untyped-def]
        yield ctx.get_current_key(), ctx.time_domain().name, timestamp, list(self.seen.get()), self.last.value()
        if timestamp % 3 == 0:
            self.seen.update([])
