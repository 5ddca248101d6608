"""A program with every kind of state there is, and how golden savepoints are made of it.

    python -m tests.golden.everything tests/golden/v1

A golden savepoint shows that what an older version wrote can still be restored. So one that is there is never made anew: if
formats change, another one is added beside it.
"""

from __future__ import annotations

import datetime
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from firesteel.common import Duration, RestartStrategies, Row, Time, Types, WatermarkStrategy
from firesteel.common.storage import MemoryStorage
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.coordinator.savepoint_requests import Ending
from firesteel.datastream import (
    AggregateFunction,
    AggregatingStateDescriptor,
    CheckpointedFunction,
    EmbeddedRocksDBStateBackend,
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
)
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.datastream.window import EventTimeSessionWindows, TumblingEventTimeWindows
from firesteel.graph.nodes import Collect
from firesteel.graph.settings import StartSettings
from tests.support.local_engine import LocalRun
from tests.support.running import Running
from tests.support.slicing import Sliced

LAST = 1699
NEVER = 32_503_680_000_000  # the year 3000
RULES = MapStateDescriptor("rules", Types.STRING(), Types.LONG())


class Average(AggregateFunction):
    def create_accumulator(self) -> Any:
        return 0, 0

    def add(self, value: int, accumulator: Any) -> Any:
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator: Any) -> Any:
        return accumulator[0] / accumulator[1]

    def merge(self, a: Any, b: Any) -> Any:
        return a[0] + b[0], a[1] + b[1]


class EveryKeyedState(KeyedProcessFunction):
    """Gives out what all its states hold, for each record, and when its timers fire."""

    def open(self, runtime_context: RuntimeContext) -> None:
        living = StateTtlConfig.new_builder(Time.days(100_000)).build()
        self.value = runtime_context.get_state(ValueStateDescriptor("value"))
        self.row = runtime_context.get_state(ValueStateDescriptor("row"))
        self.list = runtime_context.get_list_state(ListStateDescriptor("list", Types.LONG()))
        self.map = runtime_context.get_map_state(MapStateDescriptor("map", Types.STRING(), Types.LONG()))
        self.reducing = runtime_context.get_reducing_state(ReducingStateDescriptor("reducing", max))
        self.aggregating = runtime_context.get_aggregating_state(AggregatingStateDescriptor("aggregating", Average()))
        with_ttl = ValueStateDescriptor("value-ttl")
        with_ttl.enable_time_to_live(living)
        self.value_ttl = runtime_context.get_state(with_ttl)
        map_ttl = MapStateDescriptor("map-ttl", Types.STRING(), Types.LONG())
        map_ttl.enable_time_to_live(living)
        self.map_ttl = runtime_context.get_map_state(map_ttl)
        list_ttl = ListStateDescriptor("list-ttl", Types.LONG())
        list_ttl.enable_time_to_live(living)
        self.list_ttl = runtime_context.get_list_state(list_ttl)

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Any:
        self.value.update((self.value.value() or 0) + value)
        day = datetime.date(2000, 1, 1) + datetime.timedelta(value % 1000)
        self.row.update(Row(day, value))
        self.list.update([*list(self.list.get())[-3:], value])
        self.map.put(str(value % 4), value)
        self.reducing.add(value)
        self.aggregating.add(value)
        self.value_ttl.update((self.value_ttl.value() or 0) + 1)
        self.map_ttl.put(str(value % 3), value)
        self.list_ttl.update([*list(self.list_ttl.get())[-1:], value])
        if value % 7 == 0:
            ctx.timer_service().register_event_time_timer(value * 1000 + 500_000)
            ctx.timer_service().register_processing_time_timer(NEVER + value)
        yield "\t".join(map(str, ("record", value, *self.held())))

    def held(self) -> list[Any]:
        return [
            self.value.value(), self.row.value(), list(self.list.get()), sorted(self.map.items()), self.reducing.get(),
            self.aggregating.get(), self.value_ttl.value(), sorted(self.map_ttl.items()), list(self.list_ttl.get()),
        ]  # fmt: skip

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
        yield f"timer\t{ctx.get_current_key()}\t{timestamp}"


class EveryOperatorState(MapFunction, CheckpointedFunction):
    """Counts in a list, a union list and raw bytes."""

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        states = context.get_operator_state_store()
        self.list = states.get_list_state(ListStateDescriptor("counts", Types.LONG()))
        self.union = states.get_union_list_state(ListStateDescriptor("all-counts", Types.LONG()))
        self.count = sum(self.list)
        self.others = sum(self.union) if context.is_restored() else 0
        raw = [int(part) for part in context.get_raw_operator_state_inputs()]
        assert sum(raw) == self.count, (raw, self.count)

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        self.list.update([self.count])
        self.union.update([self.count])
        context.get_raw_operator_state_output().write(str(self.count).encode())

    def map(self, value: int) -> str:
        self.count += 1
        return f"counted\t{value}\t{self.count}"


class Rules(KeyedBroadcastProcessFunction):
    """The rule that a record meets."""

    def process_element(self, value: int, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext) -> Any:
        yield f"ruled\t{value}\t{ctx.get_broadcast_state(RULES).get(str(value % 5))}"

    def process_broadcast_element(self, value: int, ctx: KeyedBroadcastProcessFunction.Context) -> Any:
        ctx.get_broadcast_state(RULES).put(str(value), value * 100)


class Seconds(TimestampAssigner):
    def extract_timestamp(self, value: int, record_timestamp: int) -> int:
        return value * 1000


def program(
    start_from: str | None = None, parallelism: int = 2, *, rocksdb: bool = False, interval: int | None = 1
) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment().set_parallelism(parallelism)
    if interval is not None:
        env.enable_checkpointing(interval)
    if rocksdb:
        env.set_state_backend(EmbeddedRocksDBStateBackend()).set_rocksdb_option("memory", 100_000)
    env.set_restart_strategy(RestartStrategies.no_restart())
    env.start = StartSettings(start_from)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Seconds())
    numbers = (
        env.from_source(Sliced(NumberSequenceSource(0, LAST), 20), strategy, "numbers")
        .uid("numbers")
        .set_parallelism(1)
    )
    rules = env.from_collection(list(range(5))).uid("rules")
    keyed = numbers.key_by(lambda n: f"key-{n % 11}")
    states = keyed.process(EveryKeyedState(), Types.STRING()).uid("states")
    tumbling = (
        keyed.window(TumblingEventTimeWindows.of(Duration.of_minutes(10)))
        .reduce(lambda a, b: a + b)
        .uid("tumbling")
        .map(lambda total: f"tumbling\t{total}", Types.STRING())
        .uid("tumbling-lines")
    )
    averages = (
        keyed.window(TumblingEventTimeWindows.of(Duration.of_minutes(5)))
        .aggregate(Average())
        .uid("averages")
        .map(lambda average: f"average\t{average}", Types.STRING())
        .uid("average-lines")
    )
    sessions = (
        numbers.filter(lambda n: n % 100 < 50)
        .uid("gaps")
        .key_by(lambda n: n % 3)
        .window(EventTimeSessionWindows.with_gap(Duration.of_seconds(20)))
        .aggregate(Average())
        .uid("sessions")
        .map(lambda average: f"session\t{average}", Types.STRING())
        .uid("session-lines")
    )
    counts = (
        keyed.count_window(7)
        .reduce(lambda a, b: a + b)
        .uid("count-windows")
        .map(lambda total: f"seven\t{total}", Types.STRING())
        .uid("count-lines")
    )
    counted = numbers.map(EveryOperatorState(), Types.STRING()).uid("operator-state").set_parallelism(1)
    ruled = keyed.connect(rules.broadcast(RULES)).process(Rules(), Types.STRING()).uid("broadcast-state")
    states.union(tumbling, averages, sessions, counts, counted, ruled)._end(Collect(), "Collect")
    return env


def rest_of(savepoint: Path, parallelism: int = 2, *, rocksdb: bool = False) -> list[str]:
    """What a job gives out that goes on from it to the end of the input."""
    with tempfile.TemporaryDirectory() as directory:
        run = LocalRun(program(str(savepoint), parallelism, rocksdb=rocksdb), directory).unread()
        return sorted(run.run().collected())


def make(target: Path) -> None:
    with tempfile.TemporaryDirectory() as directory:
        with Running(program(), MemoryStorage()) as running:
            running.epochs(60)
            path = running.savepoint(f"{directory}/savepoints", Ending.SUSPEND)
        assert running.failure is None
        before = running.run.collected()
        rest = rest_of(Path(path))
        without = LocalRun(program(), f"{directory}/without").unread()
        assert Counter(before) + Counter(rest) == Counter(without.run().collected())
        shutil.copytree(path, target / "savepoint")
    (target / "rest.txt").write_text("".join(f"{line}\n" for line in rest))


if __name__ == "__main__":
    make(Path(sys.argv[1]))
