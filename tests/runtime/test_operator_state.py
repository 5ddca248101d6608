"""State that belongs to a subtask: functions that take part in checkpoints, and what becomes of it when they are restored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from firesteel.common import RestartStrategies, Types
from firesteel.common.storage import local
from firesteel.connectors.base import Sink, SinkWriter, WriterContext
from firesteel.datastream import (
    CheckpointedFunction,
    CheckpointListener,
    FunctionInitializationContext,
    FunctionSnapshotContext,
    KeyedProcessFunction,
    ListStateDescriptor,
    MapFunction,
    MapStateDescriptor,
    ProcessFunction,
    SinkFunction,
    StreamExecutionEnvironment,
    ValueStateDescriptor,
)
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.graph.nodes import Collect
from firesteel.testing import FunctionHarness, GraphHarness
from firesteel.testing.snapshots import temporary_directory
from tests.support.local_engine import LocalRun
from tests.support.slicing import Sliced


def environment(parallelism: int = 1) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism).enable_checkpointing(1)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(5, 0))
    return env


def numbers(env: StreamExecutionEnvironment, count: int) -> Any:
    return env.from_source(NumberSequenceSource(1, count), source_name="numbers").set_parallelism(1)


class PrintInPairs(SinkFunction, CheckpointedFunction):
    """Every two records together, whatever happens in between."""

    def __init__(self) -> None:
        self.buffer: list[int] = []

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        self.kept = context.get_operator_state_store().get_list_state(ListStateDescriptor("kept", Types.LONG()))
        if context.is_restored():
            self.buffer = list(self.kept.get())

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        self.kept.update(self.buffer)

    def invoke(self, value: int, context: SinkFunction.Context) -> None:
        self.buffer.append(value)
        if len(self.buffer) == 2:
            print(*self.buffer)
            self.buffer.clear()


@settings(max_examples=25, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    failures=st.sets(st.integers(1, 20), max_size=4),
    every=st.integers(1, 3),
)
def test_a_sink_that_buffers_two_records_loses_none_and_prints_the_same_pairs_again_at_most(
    sizes: list[int], failures: set[int], every: int
) -> None:
    env = environment()
    numbers(env, 31).add_sink(PrintInPairs()).uid("pairs")
    with GraphHarness(env, epoch_records=sizes, fail_at=failures, checkpoint_every=every) as harness:
        printed = harness.run().printed()
    expected = [f"{n} {n + 1}" for n in range(1, 30, 2)]
    assert list(dict.fromkeys(printed)) == expected
    if not failures:
        assert printed == expected


class Numbering(MapFunction, CheckpointedFunction):
    """Gives records the number they have in their subtask."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        self.calls.append(f"initialize {context.is_restored()} {context.get_restored_checkpoint_id()}")
        self.state = context.get_operator_state_store().get_list_state(ListStateDescriptor("count", Types.LONG()))
        self.count = sum(self.state)

    def open(self, runtime_context: Any) -> None:
        self.calls.append("open")
        self.subtask = runtime_context.get_index_of_this_subtask()

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        self.calls.append(f"snapshot {context.get_checkpoint_id()} at {context.get_checkpoint_timestamp()}")
        self.state.update([self.count])

    def map(self, value: int) -> tuple[int, int]:
        self.count += 1
        return self.subtask, self.count


@settings(max_examples=15, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(
    parallelism=st.integers(1, 3),
    failures=st.lists(st.integers(1, 10), max_size=3, unique=True),
    sizes=st.lists(st.integers(5, 60), min_size=1, max_size=4),
)
def test_failures_neither_lose_nor_repeat_what_a_function_counted(
    tmp_path_factory: pytest.TempPathFactory, parallelism: int, failures: list[int], sizes: list[int]
) -> None:
    env = environment(parallelism)
    source = env.from_source(Sliced(NumberSequenceSource(1, 300), *sizes), source_name="numbers").set_parallelism(1)
    source.rebalance().map(Numbering())._end(Collect(), "Collect")
    run = LocalRun(env, str(tmp_path_factory.mktemp("run")), fail_at=failures).run()
    share = [300 // parallelism + (subtask < 300 % parallelism) for subtask in range(parallelism)]
    found = run.collected()
    if not failures:  # else round robin starts over
        assert sorted(found) == [(s, n) for s, count in enumerate(share) for n in range(1, count + 1)]
    for subtask in range(parallelism):
        counts = [n for s, n in found if s == subtask]
        assert counts == list(range(1, len(counts) + 1))
    assert len(found) == 300


def test_state_comes_before_open_and_is_asked_for_at_every_checkpoint() -> None:
    with FunctionHarness(Numbering(), clock=500) as first:
        first.process("a").process("b")
        snapshot = first.snapshot()
        first.cut()
        assert first.function.calls == ["initialize False None", "open", "snapshot 1 at 500"]
    with FunctionHarness.restore(snapshot, Numbering()) as second:
        assert second.function.calls == ["initialize True 1", "open"]
        assert second.process("c").output() == [(0, 3)]


class Hoard(ProcessFunction, CheckpointedFunction):
    """Keeps all records, in operator state of that kind, and says what it has at each one."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        store = context.get_operator_state_store()
        self.held: list[int] = []
        if self.kind == "raw":
            self.held = [int(piece) for piece in context.get_raw_operator_state_inputs()]
        else:
            ask = store.get_list_state if self.kind == "list" else store.get_union_list_state
            self.state = ask(ListStateDescriptor("held", Types.LONG()))
            self.held = sorted(set(self.state.get()))

    def open(self, runtime_context: Any) -> None:
        subtask, count = runtime_context.get_index_of_this_subtask(), runtime_context.get_number_of_parallel_subtasks()
        if self.kind == "union":
            self.held = [n for n in self.held if n % count == subtask]

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        if self.kind == "raw":
            out = context.get_raw_operator_state_output()
            for n in self.held:
                out.start_new_partition()
                out.write(str(n).encode())
        else:
            self.state.update(self.held)

    def process_element(self, value: int, ctx: Any) -> Any:
        self.held.append(value)
        yield tuple(self.held)


@pytest.mark.parametrize("kind", ["list", "union", "raw"])
@settings(max_examples=8, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(
    parallelisms=st.lists(st.integers(1, 4), min_size=1, max_size=4), failures=st.sets(st.integers(1, 4), max_size=2)
)
def test_operator_state_survives_any_change_of_parallelism(
    kind: str, parallelisms: list[int], failures: set[int]
) -> None:
    """An operator beside it keeps all four slots alive, so that old files of subtasks that are gone are there to mislead."""
    directory = temporary_directory()
    count = 0
    for parallelism in [*parallelisms, 1]:
        env = environment(4)
        stream = numbers(env, 1000)
        held = stream.rebalance().process(Hoard(kind)).uid("hoard").set_parallelism(parallelism)
        stream.rebalance().map(Numbering()).uid("wide").print()
        options: Any = {"collect": held, "epoch_records": 7, "directory": directory.name, "fail_at": failures}
        with GraphHarness(env, **options) as harness:
            harness.step(5)
            count += 7 * (5 - len(failures))
            last = harness.results()[-1]
    assert sorted(last) == list(range(1, count + 1))  # there is one subtask now, and it has them all
    directory.cleanup()


class SeesAll(MapFunction, CheckpointedFunction):
    """Union state on every subtask: who wrote it, at the checkpoint that was restored."""

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        self.state = context.get_operator_state_store().get_union_list_state(ListStateDescriptor("subtasks"))
        self.found = tuple(self.state.get())

    def open(self, runtime_context: Any) -> None:
        self.subtask = runtime_context.get_index_of_this_subtask()

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        self.state.update([f"subtask {self.subtask}"])

    def map(self, value: int) -> tuple[int, tuple[str, ...]]:
        return self.subtask, self.found


def test_a_union_is_everybodys_after_a_failure_too() -> None:
    env = environment(3)
    seen = numbers(env, 12).rebalance().map(SeesAll())
    with GraphHarness(env, collect=seen, epoch_records=6, fail_at=[2]) as harness:
        results = harness.run().results()
    everybody = ("subtask 0", "subtask 1", "subtask 2")
    assert sorted(results[:6]) == sorted([(subtask, ()) for subtask in range(3)] * 2)
    assert sorted(results[6:]) == sorted([(subtask, everybody) for subtask in range(3)] * 2)


class Listening(MapFunction, CheckpointListener):
    def map(self, value: int) -> int:
        return value

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        print("complete", checkpoint_id)

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        print("aborted", checkpoint_id)


class ListeningSink(Listening, SinkFunction):
    def invoke(self, value: int, context: SinkFunction.Context) -> None:
        """Listening is all it does."""


@pytest.mark.parametrize("as_sink", [False, True])
def test_functions_hear_which_checkpoints_are_complete_and_which_were_dropped(
    monkeypatch: pytest.MonkeyPatch, as_sink: bool
) -> None:
    real = local.write_durable

    def write(path: str, data: bytes) -> None:
        if "-chk-2-" in path:
            raise OSError(28, "No space left on device")
        real(path, data)

    monkeypatch.setattr(local, "write_durable", write)
    env = environment()
    stream = numbers(env, 50).map(Numbering())
    if as_sink:
        stream.add_sink(ListeningSink())
    else:
        stream.map(Listening()).map(lambda pair: None).add_sink(lambda value: None)
    with GraphHarness(env, epoch_records=10, checkpoint_every=1) as harness:
        harness.step(5)
        assert harness.printed() == ["complete 1", "aborted 2", "complete 3", "complete 4"]


class KeepingWriter(SinkWriter):
    def __init__(self) -> None:
        self.kept: list[Any] = []

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        self.state = context.get_operator_state_store().get_list_state(ListStateDescriptor("kept"))
        self.kept = list(self.state)

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        self.state.update(self.kept)

    def write(self, values: Any) -> None:
        self.kept += values
        print(len(self.kept))


class KeepingSink(Sink):
    def create_writer(self, context: WriterContext) -> SinkWriter:
        return KeepingWriter()


def test_a_sinks_own_writer_can_have_operator_state() -> None:
    env = environment()
    numbers(env, 30).sink_to(KeepingSink())
    with GraphHarness(env, epoch_records=10, fail_at=[2]) as harness:
        assert harness.run().printed() == ["10", "20", "20", "30"]


class CountsBoth(KeyedProcessFunction, CheckpointedFunction):
    """State of the key and of the subtask in one function."""

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        self.of_key = context.get_keyed_state_store().get_state(ValueStateDescriptor("of key", Types.LONG()))
        self.of_all = context.get_operator_state_store().get_list_state(ListStateDescriptor("of all", Types.LONG()))

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        """The states are used all the time."""

    def process_element(self, value: int, ctx: Any) -> Any:
        self.of_key.update((self.of_key.value() or 0) + 1)
        self.of_all.add(value)
        yield self.of_key.value(), len(tuple(self.of_all.get()))


def test_keyed_and_operator_state_side_by_side() -> None:
    env = environment()
    counts = numbers(env, 12).key_by(lambda n: n % 2).process(CountsBoth())
    with GraphHarness(env, collect=counts, epoch_records=4, fail_at=[2, 4]) as harness:
        assert harness.run().results() == [((n + 1) // 2, n) for n in range(1, 13)]


class Table(MapFunction, CheckpointedFunction):
    """Broadcast state without a broadcast stream: the function itself keeps it the same everywhere."""

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        state = context.get_operator_state_store().get_broadcast_state(MapStateDescriptor("table"))
        self.found = dict(state.items())
        state["generation"] = (state.get("generation") or 0) + 1

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        """It is there already."""

    def map(self, value: int) -> dict[str, int]:
        return self.found


def test_everybody_gets_a_copy_of_broadcast_state_when_the_parallelism_changes(tmp_path: Path) -> None:
    for generation, parallelism in enumerate([2, 3, 1]):
        env = environment(parallelism)
        found = numbers(env, 100).rebalance().map(Table()).uid("table")
        with GraphHarness(env, collect=found, epoch_records=6, directory=str(tmp_path)) as harness:
            harness.step()
            assert harness.results() == [{"generation": generation} if generation else {}] * 6
