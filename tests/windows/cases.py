"""Windowed programs in two versions: as the engine takes them, and as the oracle does.

Records are (key, number). Every case of assigner x trigger x function can be had; those that make no sense in Flink either
(a trigger that cannot merge, with sessions) are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from firesteel.common import Time, Types
from firesteel.datastream import (
    AggregateFunction,
    DataStream,
    OutputTag,
    ProcessWindowFunction,
    ValueStateDescriptor,
    WindowFunction,
)
from firesteel.datastream.window import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountEvictor,
    CountSlidingWindowAssigner,
    CountTrigger,
    CountTumblingWindowAssigner,
    DeltaEvictor,
    DeltaTrigger,
    DynamicEventTimeSessionWindows,
    DynamicProcessingTimeSessionWindows,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindows,
    NeverTrigger,
    ProcessingTimeSessionWindows,
    ProcessingTimeTrigger,
    PurgingTrigger,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TimeEvictor,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from tests.windows import oracle
from tests.windows.oracle import Oracle

LATE = OutputTag("late", Types.PICKLED_BYTE_ARRAY())


def ms(millis: int) -> Time:
    return Time.milliseconds(millis)


def gap_of(record: Any) -> int:
    return 1 + record[1] % 7


@dataclass(frozen=True)
class Assigner:
    engine: Any
    assign: Callable[[Any, Any, Any, int, int], list[Any]]
    event_time: bool
    merging: bool = False
    default: Any = None  # the oracle's trigger


def _aligned(size: int, slide: int, offset: int, event: bool) -> Callable[..., list[Any]]:
    def assign(key: Any, value: Any, time: Any, clock: int, index: int) -> list[Any]:
        now = time if event else clock
        # all windows that could contain it, tried one by one
        starts = [slide * n + offset for n in range((now - size - offset) // slide - 1, (now - offset) // slide + 2)]
        return [(start, start + size) for start in starts if start <= now < start + size][::-1]

    return assign


def _session(gap: Callable[[Any], int], event: bool) -> Callable[..., list[Any]]:
    def assign(key: Any, value: Any, time: Any, clock: int, index: int) -> list[Any]:
        now = time if event else clock
        return [(now, now + gap(value))]

    return assign


def _counting(size: int, slide: int) -> Callable[..., list[Any]]:
    def assign(key: Any, value: Any, time: Any, clock: int, index: int) -> list[Any]:
        return [number for number in range(index + 1) if number * slide <= index < number * slide + size][::-1]

    return assign


EVENT, CLOCK = oracle.ByEventTime(), oracle.ByProcessingTime()

ASSIGNERS = {
    "tumbling": Assigner(TumblingEventTimeWindows.of(ms(10)), _aligned(10, 10, 0, True), True, False, EVENT),
    "tumbling+3": Assigner(TumblingEventTimeWindows.of(ms(7), ms(3)), _aligned(7, 7, 3, True), True, False, EVENT),
    "sliding": Assigner(SlidingEventTimeWindows.of(ms(10), ms(4)), _aligned(10, 4, 0, True), True, False, EVENT),
    "sliding-1": Assigner(
        SlidingEventTimeWindows.of(ms(9), ms(3), ms(-1)), _aligned(9, 3, -1, True), True, False, EVENT
    ),
    "gaps": Assigner(SlidingEventTimeWindows.of(ms(3), ms(5)), _aligned(3, 5, 0, True), True, False, EVENT),
    "session": Assigner(EventTimeSessionWindows.with_gap(ms(5)), _session(lambda v: 5, True), True, True, EVENT),
    "dynamic": Assigner(DynamicEventTimeSessionWindows(gap_of), _session(gap_of, True), True, True, EVENT),
    "clock tumbling": Assigner(
        TumblingProcessingTimeWindows.of(ms(10), ms(-2)), _aligned(10, 10, -2, False), False, False, CLOCK
    ),
    "clock sliding": Assigner(
        SlidingProcessingTimeWindows.of(ms(10), ms(5)), _aligned(10, 5, 0, False), False, False, CLOCK
    ),
    "clock session": Assigner(
        ProcessingTimeSessionWindows.with_gap(ms(5)), _session(lambda v: 5, False), False, True, CLOCK
    ),
    "clock dynamic": Assigner(DynamicProcessingTimeSessionWindows(gap_of), _session(gap_of, False), False, True, CLOCK),
    "count": Assigner(CountTumblingWindowAssigner(3), _counting(3, 3), False, False, oracle.Purging(oracle.ByCount(3))),
    "count sliding": Assigner(
        CountSlidingWindowAssigner(5, 2), _counting(5, 2), False, False, oracle.Purging(oracle.ByCount(5))
    ),
    "global": Assigner(GlobalWindows.create(), lambda *_: ["global"], False, False, oracle.Never()),
}


def distance(old: Any, new: Any) -> int:
    return abs(old[1] - new[1])


TRIGGERS: dict[str, tuple[Any, Any]] = {
    "default": (None, None),
    "event time": (EventTimeTrigger(), EVENT),
    "processing time": (ProcessingTimeTrigger(), CLOCK),
    "count": (CountTrigger.of(2), oracle.ByCount(2)),
    "purging count": (PurgingTrigger.of(CountTrigger.of(3)), oracle.Purging(oracle.ByCount(3))),
    "purging event time": (PurgingTrigger.of(EventTimeTrigger()), oracle.Purging(EVENT)),
    "continuous": (ContinuousEventTimeTrigger.of(ms(3)), oracle.Continuously(3, True)),
    "continuous clock": (ContinuousProcessingTimeTrigger.of(ms(4)), oracle.Continuously(4, False)),
    "delta": (DeltaTrigger.of(3, distance), oracle.ByDelta(3)),
    "never": (NeverTrigger(), oracle.Never()),
}

EVICTORS: dict[str, tuple[Any, Any, bool]] = {
    "count": (CountEvictor.of(2), lambda records: records[-2:], False),
    "count after": (CountEvictor.of(2, True), lambda records: records[-2:], True),
    "time": (
        TimeEvictor.of(ms(4)),
        lambda records: [r for r in records if r[1] > max(time for _, time in records) - 4],
        False,
    ),
    "delta": (
        DeltaEvictor.of(4, distance),
        lambda records: [r for r in records if distance(r[0], records[-1][0]) < 4],
        False,
    ),
}


# ---- functions


class Mean(AggregateFunction):
    """The accumulator is neither a record nor a result."""

    def create_accumulator(self) -> tuple[int, int, str]:
        return 0, 0, ""

    def add(self, value: Any, accumulator: Any) -> Any:
        return accumulator[0] + value[1], accumulator[1] + 1, value[0]

    def get_result(self, accumulator: Any) -> Any:
        return accumulator[2], accumulator[0] / accumulator[1]

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1], acc_a[2]


class Listing(WindowFunction[Any, Any, Any, Any]):
    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Iterator[Any]:
        yield key, repr(window), [number for _, number in inputs]


class Firings(ProcessWindowFunction[Any, Any, Any, Any]):
    """How often the key fired, and this window: state of both kinds."""

    def __init__(self, per_window: bool) -> None:
        self.per_window = per_window

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        total = context.global_state().get_state(ValueStateDescriptor("firings"))
        total.update((total.value() or 0) + 1)
        counts = [total.value()]
        if self.per_window:
            mine = context.window_state().get_state(ValueStateDescriptor("firings"))
            mine.update((mine.value() or 0) + 1)
            counts.append(mine.value())
        yield key, repr(context.window()), sorted(number for _, number in elements), counts

    def clear(self, context: Any) -> None:
        if self.per_window:
            context.window_state().get_state(ValueStateDescriptor("firings")).clear()


def shown(window: Any) -> str:
    if isinstance(window, tuple):
        return f"TimeWindow(start={window[0]}, end={window[1]})"
    return "GlobalWindow" if window == "global" else f"CountWindow(id={window})"


class ExpectedFirings:
    """The oracle's version, whose dicts are its state."""

    def __init__(self, per_window: bool) -> None:
        self.per_window = per_window
        self.total: dict[Any, int] = {}
        self.mine: dict[Any, int] = {}

    def evaluate(self, key: Any, window: Any, values: list[Any]) -> list[Any]:
        self.total[key] = self.total.get(key, 0) + 1
        counts = [self.total[key]]
        if self.per_window:
            self.mine[key, window] = self.mine.get((key, window), 0) + 1
            counts.append(self.mine[key, window])
        return [(key, shown(window), sorted(number for _, number in values), counts)]

    def on_cleanup(self, key: Any, window: Any) -> None:
        self.mine.pop((key, window), None)


def expected_sum(key: Any, window: Any, values: list[Any]) -> list[Any]:
    return [(key, sum(number for _, number in values))] if values else []


def expected_mean(key: Any, window: Any, values: list[Any]) -> list[Any]:
    return [(key, sum(number for _, number in values) / len(values))]


def expected_list(key: Any, window: Any, values: list[Any]) -> list[Any]:
    return [(key, shown(window), [number for _, number in values])]


FUNCTIONS = ("sum", "aggregate", "apply", "process", "reduce and process", "aggregate and apply")


@dataclass(frozen=True)
class Case:
    """One program."""

    assigner: str
    trigger: str = "default"
    function: str = "sum"
    lateness: int = 0
    side_output: bool = False
    evictor: str | None = None

    @property
    def possible(self) -> bool:
        chosen = ASSIGNERS[self.assigner]
        engine, _ = TRIGGERS[self.trigger]
        return not chosen.merging or engine is None or engine.can_merge()

    def build(self, stream: DataStream) -> DataStream:
        chosen = ASSIGNERS[self.assigner]
        windowed = stream.key_by(lambda record: record[0]).window(chosen.engine).allowed_lateness(self.lateness)
        engine, _ = TRIGGERS[self.trigger]
        if engine is not None:
            windowed.trigger(engine)
        if self.side_output:
            windowed.side_output_late_data(LATE)
        if self.evictor is not None:
            windowed.evictor(EVICTORS[self.evictor][0])
        per_window = not chosen.merging
        match self.function:
            case "sum":
                return windowed.sum(1)
            case "aggregate":
                return windowed.aggregate(Mean())
            case "apply":
                return windowed.apply(Listing())
            case "process":
                return windowed.process(Firings(per_window))
            case "reduce and process":
                return windowed.reduce(lambda a, b: (a[0], a[1] + b[1]), Firings(per_window))
            case _:
                return windowed.aggregate(Mean(), lambda key, window, inputs: [(key, repr(window), *inputs)])

    def oracle(self) -> Oracle:
        chosen = ASSIGNERS[self.assigner]
        trigger = TRIGGERS[self.trigger][1] or chosen.default
        firings = ExpectedFirings(not chosen.merging)
        evaluate: Any = {
            "sum": expected_sum,
            "aggregate": expected_mean,
            "apply": expected_list,
            "process": firings.evaluate,
            "reduce and process": lambda key, window, values: (
                firings.evaluate(key, window, expected_sum(key, window, values)) if values else []
            ),
            "aggregate and apply": lambda key, window, values: [
                (key, shown(window), result) for result in expected_mean(key, window, values)
            ],
        }[self.function]
        evict, after = EVICTORS[self.evictor][1:] if self.evictor else (None, False)
        return Oracle(
            chosen.assign,
            trigger,
            evaluate,
            event_time=chosen.event_time,
            merging=chosen.merging,
            lateness=self.lateness,
            evict=evict,
            evict_after=after,
            on_cleanup=firings.on_cleanup,
        )
