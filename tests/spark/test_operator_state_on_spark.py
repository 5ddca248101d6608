"""Operator state and broadcast state in real slots: when one fails, everybody gets what is theirs again."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

from firesteel.common import Types
from firesteel.datastream import (
    CheckpointedFunction,
    FunctionInitializationContext,
    FunctionSnapshotContext,
    KeyedBroadcastProcessFunction,
    ListStateDescriptor,
    MapFunction,
    MapStateDescriptor,
    StreamExecutionEnvironment,
)
from firesteel.datastream.connectors.number_seq import NumberSequenceSource

RULES = MapStateDescriptor("rules", Types.LONG(), Types.LONG())


class CountsAndDies(MapFunction, CheckpointedFunction):
    """Counts its subtask's records in list state and all restores in union state; raises once, when it has a checkpoint."""

    def __init__(self, marker: str) -> None:
        self.marker = marker

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        store = context.get_operator_state_store()
        self.state = store.get_list_state(ListStateDescriptor("count", Types.LONG()))
        self.union = store.get_union_list_state(ListStateDescriptor("subtasks", Types.LONG()))
        self.count, self.subtasks = sum(self.state.get()), sorted(self.union.get())
        self.restored = context.is_restored()

    def open(self, runtime_context: Any) -> None:
        self.subtask = runtime_context.get_index_of_this_subtask()

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        self.state.update([self.count])
        self.union.update([self.subtask])

    def map(self, value: int) -> tuple[int, int, int]:
        self.count += 1
        if self.state.get() and self.subtask == 1 and not Path(self.marker).exists():
            Path(self.marker).touch()
            raise OSError("this subtask fails once")
        if self.restored:
            assert self.subtasks == [0, 1]
        return value, self.subtask, self.count


class Ruled(KeyedBroadcastProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield (*value, len(list(ctx.get_broadcast_state(RULES).keys())))

    def process_broadcast_element(self, value: int, ctx: Any) -> Any:
        ctx.get_broadcast_state(RULES).put(value, value)


def test_a_failing_subtask_changes_nothing_in_what_operator_and_broadcast_state_give(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    marker = str(tmp_path / "failed")
    env.enable_checkpointing(100)
    numbers = env.from_source(NumberSequenceSource(1, 20_000, 20_000), source_name="numbers")
    rules = env.from_collection(list(range(10))).broadcast(RULES)
    counted = numbers.map(CountsAndDies(marker))
    ruled = counted.key_by(lambda value: value[0] % 7).connect(rules).process(Ruled())
    with ruled.execute_and_collect("operator state") as results:
        found = list(results)
    assert Path(marker).exists()
    assert sorted(value for value, _, _, _ in found) == list(range(1, 20_001))
    counts = defaultdict(list)
    for _, subtask, count, _ in found:
        counts[subtask].append(count)
    for subtask in counts:
        assert sorted(counts[subtask]) == list(range(1, len(counts[subtask]) + 1))
    assert {known for _, _, _, known in found[-1000:]} == {10}
