"""A program with every kind of state in it, each operator at a parallelism of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from firesteel.common import Time, Types, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import (
    AggregatingStateDescriptor,
    CheckpointedFunction,
    FunctionInitializationContext,
    FunctionSnapshotContext,
    KeyedBroadcastProcessFunction,
    KeyedProcessFunction,
    ListStateDescriptor,
    MapFunction,
    MapStateDescriptor,
    ReducingStateDescriptor,
    RuntimeContext,
    StateTtlConfig,
    StreamExecutionEnvironment,
    ValueStateDescriptor,
    WindowFunction,
)
from firesteel.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from tests.support.scheduled import Scheduled
from tests.testing.functions import ANYTHING, Mean

Record = tuple[str, int, int]
"""Key, number, timestamp."""

EPOCH_MS = 10
TTL_MS = 25
OPERATORS = (
    *("states", "rules", "tumbling", "averaged", "by clock", "sliding", "session", "counted", "hoard", "second hoard"),
)
RULES = MapStateDescriptor("rules", Types.STRING(), Types.LONG())


class Stamp(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[2])


class EveryState(KeyedProcessFunction):
    """Says for each record and timer what is in the states of its key."""

    def open(self, runtime_context: RuntimeContext) -> None:
        ttl = StateTtlConfig.new_builder(Time.milliseconds(TTL_MS)).build()
        get = runtime_context
        self.states: dict[str, Any] = {}
        for name in ("kept", "expiring"):
            value, elements = ValueStateDescriptor(f"{name} value"), ListStateDescriptor(f"{name} list")
            entries = MapStateDescriptor(f"{name} map")
            total = ReducingStateDescriptor(f"{name} total", lambda a, b: a + b, ANYTHING)
            mean = AggregatingStateDescriptor(f"{name} mean", Mean(), ANYTHING)
            if name == "expiring":
                for descriptor in (value, elements, entries, total, mean):
                    descriptor.enable_time_to_live(ttl)
            self.states[name] = (
                get.get_state(value), get.get_list_state(elements), get.get_map_state(entries), get.get_reducing_state(total),
                get.get_aggregating_state(mean),
            )  # fmt: skip

    def process_element(self, value, ctx):  # type: ignore[no-untyped-def]
        key, number, timestamp = value
        for last, seen, counts, total, mean in self.states.values():
            last.update(number)
            seen.add(number)
            counts.put(number % 3, (counts.get(number % 3) or 0) + 1)
            total.add(number)
            mean.add(number)
            if number % 5 == 0:
                last.clear()
                counts.remove(0)
            if number % 7 == 0:
                seen.clear()
                total.clear()
            if number % 11 == 0:
                seen.update([number, -number])
        timers = ctx.timer_service()
        timers.register_event_time_timer(timestamp + number % 40)
        if number % 2:
            timers.register_processing_time_timer(timers.current_processing_time() + number % 40)
        if number % 3 == 0:
            timers.delete_event_time_timer(timestamp + 1)
        yield "record", key, number, self.content()

    def on_timer(self, timestamp, ctx):  # type: ignore[no-untyped-def]
        yield ctx.time_domain().name, ctx.get_current_key(), timestamp, self.content()

    def content(self) -> Any:
        return tuple(
            (last.value(), tuple(seen.get()), tuple(sorted(counts.items())), total.get(), mean.get())
            for last, seen, counts, total, mean in self.states.values()
        )


class Ruled(KeyedBroadcastProcessFunction):
    """Keyed and broadcast state in one operator."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):  # type: ignore[no-untyped-def]
        self.count.update((self.count.value() or 0) + 1)
        rules = ctx.get_broadcast_state(RULES)
        yield "rules", value[0], self.count.value(), tuple(sorted(rules.items()))

    def process_broadcast_element(self, value, ctx):  # type: ignore[no-untyped-def]
        name, number = value
        if number % 4 == 0:
            ctx.get_broadcast_state(RULES).remove(name)
        else:
            ctx.get_broadcast_state(RULES).put(name, number)


class Hoard(MapFunction, CheckpointedFunction):
    """The numbers that a subtask has taken are in its list state, and at a checkpoint in the union of all, too."""

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        store = context.get_operator_state_store()
        self.mine = store.get_list_state(ListStateDescriptor("mine"))
        self.all = store.get_union_list_state(ListStateDescriptor("all"))
        self.had, self.all_had = list(self.mine.get()), list(self.all.get())

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        self.all.update(self.mine.get())

    def map(self, value: Record) -> Any:
        self.mine.add(value[1])
        return "hoard", value


class Listed(WindowFunction):
    def apply(self, key, window, inputs):  # type: ignore[no-untyped-def]
        yield key, window.start, tuple(inputs)


class Average(Mean):
    """Merges, so that records are combined before they are sent, and wait for that over barriers."""

    def add(self, value: Record, accumulator: Any) -> Any:
        return super().add(value[1], accumulator)


def add(left: Record, right: Record) -> Record:
    return left[0], left[1] + right[1], max(left[2], right[2])


def describe(
    env: StreamExecutionEnvironment,
    epochs: Sequence[Sequence[Record]],
    rules: Sequence[Sequence[tuple[str, int]]],
    parallelisms: Sequence[int],
) -> list[Any]:
    """The program, whose operators have these parallelisms; its streams."""
    widths = dict(zip(OPERATORS, parallelisms, strict=True))
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())
    records = env.from_source(Scheduled(*map(list, epochs)), strategy, "records").uid("records").set_parallelism(1)
    changes = env.from_source(Scheduled(*map(list, rules)), None, "changes").uid("changes").set_parallelism(1)
    keyed = records.key_by(lambda record: record[0])
    window = keyed.window
    streams = {
        "states": keyed.process(EveryState()),
        "rules": keyed.connect(changes.broadcast(RULES)).process(Ruled()),
        "tumbling": window(TumblingEventTimeWindows.of(Time.milliseconds(35))).reduce(add),
        "averaged": window(TumblingEventTimeWindows.of(Time.milliseconds(45))).aggregate(Average()),
        "by clock": window(TumblingProcessingTimeWindows.of(Time.milliseconds(35))).reduce(add),
        "sliding": window(SlidingEventTimeWindows.of(Time.milliseconds(60), Time.milliseconds(25))).apply(Listed()),
        "session": window(EventTimeSessionWindows.with_gap(Time.milliseconds(22))).reduce(add),
        "counted": keyed.count_window(3).reduce(add),
        "hoard": records.rebalance().map(Hoard()),
        "second hoard": records.rebalance().map(Hoard()),
    }
    return [stream.uid(name).set_parallelism(widths[name]) for name, stream in streams.items()]
