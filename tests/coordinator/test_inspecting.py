"""States found and read in checkpoints without Spark, whatever changes of parallelism lie behind them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Types
from firesteel.coordinator.inspecting import open_states, split
from firesteel.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from firesteel.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from firesteel.state.chains import native_part
from firesteel.state.reading import Entry, entries
from firesteel.testing import GraphHarness
from tests.support.keeping_state import keeping_state

KEYS = 30


class Kept(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.INT()))
        self.all = runtime_context.get_list_state(ListStateDescriptor("all", Types.INT()))
        self.by = runtime_context.get_map_state(MapStateDescriptor("by", Types.INT(), Types.INT()))

    def process_element(self, value: int, ctx: Any) -> Iterable[Any]:
        if value % 7 == 6:
            self.last.clear()
            self.all.clear()
        else:
            self.last.update(value)
            self.all.add(value)
            self.by.put(value % 3, value)
        ctx.timer_service().register_processing_time_timer(10**15 + value % 5)
        return ()


def harness(directory: Path, parallelism: int) -> GraphHarness:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    numbers = env.from_collection(list(range(2000))).set_parallelism(1).key_by(lambda n: n % KEYS)
    numbers.process(Kept()).uid("kept").print()
    return GraphHarness(env, directory=str(directory), name="job", epoch_records=61, check_mutation=False)


def newest(directory: Path) -> Path:
    return max(directory.glob("job/inc-*/chk-*"), key=lambda path: int(path.name[4:]))


def stored(path: Path, name: str, parts: int = 1) -> list[Entry]:
    states = open_states(str(path))
    state = states.find("kept", name)
    return [entry for part in states.parts(state, parts) for piece in part for entry in entries(state, piece)]


@pytest.mark.parametrize("in_rocksdb", [(False,), (True,), (False, True), (True, False)])
@pytest.mark.parametrize("parallelisms", [(1,), (2, 3), (4, 2, 4), (3, 8, 1), (2, 2, 5, 2)])
def test_what_is_read_is_what_the_job_had_after_any_changes_of_parallelism_and_backend(
    tmp_path: Path, parallelisms: tuple[int, ...], in_rocksdb: tuple[bool, ...]
) -> None:
    for parallelism, rocksdb in zip(parallelisms, cycle(in_rocksdb), strict=False):
        with keeping_state(rocksdb, str(tmp_path)), harness(tmp_path, parallelism) as running:
            running.step(7)
            path = newest(tmp_path)
            assert any(map(native_part, open_states(str(path)).metadata.state)) == rocksdb
            last = stored(path, "last")
            assert {entry.key: entry.value for entry in last} == running.state("kept", "last")
            assert len({entry.key for entry in last}) == len(last)
            lists: dict[Any, list[int]] = {}
            for entry in stored(path, "all"):
                assert entry.part == len(lists.setdefault(entry.key, []))
                lists[entry.key].append(entry.value)
            assert lists == running.state("kept", "all")
            maps: dict[Any, dict[int, int]] = {}
            for entry in stored(path, "by"):
                maps.setdefault(entry.key, {})[entry.part] = entry.value
            assert maps == running.state("kept", "by")
            timers = {(entry.key, entry.part) for entry in stored(path, "/processing-timers")}
            assert timers == {(timer.key, timer.time) for timer in running.timers("kept")}


def test_parts_are_worth_a_task_and_never_too_large() -> None:
    mega = 1 << 20
    assert split([], {}, 4) == []
    assert split([1, 2, 3], {1: 10, 2: 10, 3: 10}, 4) == [[1, 2, 3]]
    sizes = dict.fromkeys(range(100), mega)
    assert [len(run) for run in split(list(sizes), sizes, 4)] == [25, 25, 25, 25]
    assert [len(run) for run in split(list(sizes), sizes, 1)] == [64, 36]
    assert split([1, 2], {1: 500 * mega, 2: 1}, 1) == [[1], [2]]
