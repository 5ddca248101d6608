"""Jobs that leave states of every kind in their checkpoints. They run in this process, so that tests of what reads the
checkpoints have Spark for themselves."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from firesteel.common import Time, Types, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import (
    AggregateFunction,
    BroadcastProcessFunction,
    CheckpointedFunction,
    KeyedProcessFunction,
    MapFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
    WindowFunction,
)
from firesteel.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from firesteel.datastream.window import EventTimeSessionWindows, TumblingEventTimeWindows
from firesteel.testing import GraphHarness, Timer

KEYS, ROUNDS = 20, 10
NAMES = ("count", "cached", "account", "mixed", "seen", "by parity", "total", "mean")
RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())


@dataclass
class Account:
    owner: str
    cents: int


class Mean(AggregateFunction):
    def create_accumulator(self) -> Any:
        return (0, 0)

    def add(self, value: Any, accumulator: Any) -> Any:
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator: Any) -> Any:
        return accumulator[0] / accumulator[1]

    def merge(self, a: Any, b: Any) -> Any:
        return a[0] + b[0], a[1] + b[1]


class Everything(KeyedProcessFunction):
    """For each key k and round r: records (k, r)."""

    def open(self, runtime_context: RuntimeContext) -> None:
        ttl = StateTtlConfig.new_builder(Time.days(1)).build()
        cached = ValueStateDescriptor("cached", Types.INT())
        cached.enable_time_to_live(ttl)
        get = runtime_context
        self.count = get.get_state(ValueStateDescriptor("count", Types.INT()))
        self.cached = get.get_state(cached)
        self.account = get.get_state(ValueStateDescriptor("account", Types.PICKLED_BYTE_ARRAY()))
        self.mixed = get.get_state(ValueStateDescriptor("mixed", Types.PICKLED_BYTE_ARRAY()))
        self.seen = get.get_list_state(ListStateDescriptor("seen", Types.INT()))
        self.by_parity = get.get_map_state(MapStateDescriptor("by parity", Types.STRING(), Types.INT()))
        self.total = get.get_reducing_state(ReducingStateDescriptor("total", lambda a, b: a + b, Types.INT()))
        self.mean = get.get_aggregating_state(AggregatingStateDescriptor("mean", Mean(), Types.PICKLED_BYTE_ARRAY()))

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        key, round_ = value
        self.count.update((self.count.value() or 0) + 1)
        self.cached.update(round_)
        self.account.update(Account(key, round_ * 100))
        self.mixed.update(round_ if key < "k05" else str(round_))
        self.seen.add(round_)
        self.by_parity.put("odd" if round_ % 2 else "even", round_)
        self.total.add(round_)
        self.mean.add(round_)
        ctx.timer_service().register_event_time_timer(10**15 + round_)
        yield key, self.count.value()


class Remembering(MapFunction, CheckpointedFunction):
    def open(self, runtime_context: RuntimeContext) -> None: ...

    def initialize_state(self, context: Any) -> None:
        store = context.get_operator_state_store()
        self.list = store.get_list_state(ListStateDescriptor("buffered", Types.INT()))
        self.union = store.get_union_list_state(ListStateDescriptor("shared", Types.INT()))
        self.buffered = list(self.list.get())

    def snapshot_state(self, context: Any) -> None:
        self.list.update(self.buffered)
        self.union.update([len(self.buffered)])

    def map(self, value: Any) -> Any:
        self.buffered.append(value[1])
        return value


class Applying(BroadcastProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        yield value

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        ctx.get_broadcast_state(RULES).put(value[0], value[1])


class Counting(WindowFunction):
    def apply(self, key: Any, window: Any, inputs: Any) -> Iterable[Any]:
        yield key, len(list(inputs))


class EventTime(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return value[1] * 1000  # type: ignore[no-any-return]


def program(parallelism: int = 2, rounds: int = ROUNDS) -> StreamExecutionEnvironment:
    """A program with state of every kind."""
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(EventTime())
    records = [(f"k{key:02}", round_) for round_ in range(rounds) for key in range(KEYS)]
    readings = env.from_collection(records).assign_timestamps_and_watermarks(strategy)
    keyed = readings.map(Remembering()).uid("remembering").key_by(lambda value: value[0])
    keyed.process(Everything()).uid("everything").print()
    windows = keyed.window(TumblingEventTimeWindows.of(Time.seconds(4)))
    windows.pre_combine(False).reduce(lambda a, b: (a[0], a[1] + b[1])).uid("windows").print()
    sessions = keyed.window(EventTimeSessionWindows.with_gap(Time.hours(1)))
    sessions.apply(Counting()).uid("sessions").print()
    rules = env.from_collection([("low", 1), ("high", 9)]).broadcast(RULES)
    readings.connect(rules).process(Applying()).uid("applying").print()
    return env


class Snapshot(NamedTuple):
    """A checkpoint of the program after some rounds, and what its states were."""

    path: str
    rounds: int
    timers: list[Timer]
    states: dict[str, dict[Any, Any]]


def snapshots(directory: Path, rounds: tuple[int, ...] = (3, 7), parallelism: int = 2) -> list[Snapshot]:
    """Checkpoints after so many rounds, each a copy of its own."""
    found = []
    job = directory / "job"
    with GraphHarness(
        program(parallelism), directory=str(directory), name="job", epoch_records=KEYS, check_mutation=False
    ) as harness:
        for done in range(1, max(rounds) + 1):
            harness.step()
            if done in rounds:
                copy = directory / f"after-{done}"
                shutil.copytree(job, copy)
                states = {name: harness.state("everything", name) for name in NAMES}
                found.append(Snapshot(newest(copy), done, harness.timers("everything"), states))
    return found


def newest(job: Path) -> str:
    """The newest checkpoint of a job."""
    return str(max(job.glob("inc-*/chk-*"), key=lambda path: int(path.name[4:])))
