"""Savepoints of jobs with their state in RocksDB: what is large, how far they are, and how jobs end with one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Types
from firesteel.common.storage import LocalStorage
from firesteel.coordinator.completed import locate
from firesteel.coordinator.inspecting import open_states
from firesteel.coordinator.lineage import JobDirectory
from firesteel.coordinator.savepoint_requests import Ending
from firesteel.datastream import (
    EmbeddedRocksDBStateBackend,
    KeyedProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.datastream.state import ListStateDescriptor, MapStateDescriptor
from firesteel.graph.nodes import Collect
from firesteel.graph.settings import StartSettings
from firesteel.state.chains import native_part
from firesteel.state.compaction import compact
from firesteel.state.files import StateFile
from firesteel.state.layouts import merge
from firesteel.state.reading import entries
from firesteel.state.rocksdb import reading
from tests.support.running import Running
from tests.support.slicing import Sliced
from tests.support.summing import NumbersRead, check_consistent, lines, program, windowed

LATER = 10**15
KEYS = 3


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


class Hoard(KeyedProcessFunction):
    """Few keys, with all their numbers in a list, a map and timers of each."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.all = runtime_context.get_list_state(ListStateDescriptor("all", Types.INT()))
        self.by = runtime_context.get_map_state(MapStateDescriptor("by", Types.INT(), Types.INT()))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        self.all.add(value)
        self.by.put(value, -value)
        ctx.timer_service().register_event_time_timer(LATER + value)
        return iter(())


def hoarding(start: str | None, *, rocksdb: bool) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment().set_parallelism(2).enable_checkpointing(20)
    env.start = StartSettings(start)
    if rocksdb:
        in_rocksdb(env)
    numbers = env.from_source(Sliced(NumberSequenceSource(1, 10**9), 2000), source_name="numbers").uid("numbers")
    in_order = numbers.set_parallelism(1).key_by(lambda n: n % KEYS)
    in_order.process(Hoard()).uid("hoard")._end(Collect(), "Collect")
    return env


def in_rocksdb(env: StreamExecutionEnvironment) -> StreamExecutionEnvironment:
    env.set_state_backend(EmbeddedRocksDBStateBackend()).set_rocksdb_option("memory", 100_000)
    return env


def hoard(path: str) -> dict[str, dict[Any, Any]]:
    states, found = open_states(path), dict[str, dict[Any, Any]]()
    for name in ("all", "by", "/event-timers"):
        state = states.find("hoard", name)
        content = found[name] = dict[Any, Any]()
        for piece in states.slices(state):
            for entry in entries(state, piece):
                content.setdefault(entry.key, []).append((entry.part, entry.value))
    return found


def expected(path: str) -> dict[str, dict[Any, Any]]:
    (numbers,) = NumbersRead(locate(path)).ranges()[:1]
    by_key = {key: [n for n in numbers if n % KEYS == key] for key in range(KEYS)}
    return {
        "all": {key: list(enumerate(mine)) for key, mine in by_key.items()},
        "by": {key: [(n, -n) for n in mine] for key, mine in by_key.items()},
        "/event-timers": {key: [(LATER + n, None) for n in mine] for key, mine in by_key.items()},
    }


def check_hoard(path: str) -> None:
    found, wanted = hoard(path), expected(path)
    assert found["all"] == wanted["all"]
    for name in ("by", "/event-timers"):
        assert {key: sorted(mine) for key, mine in found[name].items()} == wanted[name]


def test_large_lists_maps_and_many_timers_go_through_savepoints_unharmed(tmp_path: Path) -> None:
    start: str | None = None
    for round_, rocksdb in enumerate((True, True, False, True)):
        with Running(hoarding(start, rocksdb=rocksdb), str(tmp_path / f"checkpoints-{round_}")) as running:
            running.epochs(10 if start is None else 2)
            start = running.savepoint(tmp_path / "savepoints", Ending.SUSPEND)
        assert running.failure is None
        check_hoard(start)
        of_it = JobDirectory.open(str(tmp_path / f"checkpoints-{round_}"), "job").latest()
        assert of_it is not None and any(map(native_part, of_it.metadata.state)) == rocksdb
        check_hoard(of_it.path)


def test_a_list_goes_on_in_the_next_block_and_all_that_is_read_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Running(hoarding(None, rocksdb=True), str(tmp_path / "checkpoints")) as running:
        running.epochs(6)
        path = running.savepoint(tmp_path / "savepoints", Ending.SUSPEND)
    found = JobDirectory.open(str(tmp_path / "checkpoints"), "job").latest()
    assert found is not None
    monkeypatch.setattr(reading, "_ENTRIES", 3)
    into, largest = LocalStorage(str(tmp_path)), 0
    content: dict[Any, dict[Any, Any]] = {}
    for slot, chain in enumerate(found.metadata.state):
        read: list[int] = []
        handle = compact(found.storage, f"file-{slot}", list(chain), into, on_read=read.append)
        assert sum(each["size"] for each in native_part(chain)) <= sum(read) <= sum(each["size"] for each in chain)
        assert len([size for size in read if size > 0]) > 2
        with StateFile(handle["file"], handle["checksum"], into) as file:
            for state in file.footer["states"]:
                groups = [block[0] for block in state["blocks"]]
                largest = max(largest, *map(groups.count, groups)) if state["name"] == "all" else largest
                for block in state["blocks"]:
                    delta = file.delta(state, block)
                    merge(delta.kind, content.setdefault(delta.name, {}), delta.keys, delta.values, delta.deleted)
    assert largest > 1
    wanted = expected(path)
    assert {key: list(enumerate(mine)) for key, mine in content["all"].items()} == wanted["all"]
    assert {key: sorted(mine.items()) for key, mine in content["by"].items()} == wanted["by"]


@pytest.mark.parametrize("interval", [1, None])
def test_a_job_goes_on_after_a_savepoint_and_is_cancelled_with_another(tmp_path: Path, interval: int | None) -> None:
    with Running(in_rocksdb(program(interval=interval)), str(tmp_path / "checkpoints")) as running:
        running.epochs()
        first = running.savepoint(tmp_path / "savepoints")
        running.epochs()
        second = running.savepoint(tmp_path / "savepoints", Ending.CANCEL)
    for path in (first, second):
        check_consistent(path)
        assert all(len(chain) == 1 and not native_part(chain) for chain in locate(path).metadata.state)


def test_draining_fires_windows_that_are_in_rocksdb(tmp_path: Path) -> None:
    with Running(in_rocksdb(windowed(tmp_path / "out", None, 10**9)), str(tmp_path / "checkpoints")) as running:
        running.epochs()
        path = running.savepoint(tmp_path / "savepoints", Ending.DRAIN)
    assert running.failure is None and locate(path).metadata.final
    read = sum(len(numbers) for numbers in NumbersRead(locate(path)).ranges())
    assert sum(int(line.split()[1]) for line in lines(tmp_path / "out")) >= read > 0


READER = """
import os, signal, sys
from firesteel.common.storage import LocalStorage
from firesteel.coordinator.completed import locate
from firesteel.state.chains import deltas, native_part
found = locate(sys.argv[1])
reading = deltas(found.storage, native_part(found.metadata.state[0]))
next(reading)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_reader_has_copied_is_removed_by_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Running(hoarding(None, rocksdb=True), str(tmp_path / "checkpoints")) as running:
        running.epochs()
        running.savepoint(tmp_path / "savepoints", Ending.SUSPEND)
    found = JobDirectory.open(str(tmp_path / "checkpoints"), "job").latest()
    assert found is not None
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    killed = subprocess.run([sys.executable, "-c", READER, found.path], env={**os.environ, "TMPDIR": str(temporary)})
    assert killed.returncode == -signal.SIGKILL and len(list(temporary.iterdir())) == 1
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    hoard(found.path)
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("backends", [(True, True, True, True), (False, True, True, False, True)])
def test_a_job_that_goes_on_from_its_checkpoints_has_all_its_timers(tmp_path: Path, backends: tuple[bool, ...]) -> None:
    for rocksdb in backends:
        with Running(hoarding(None, rocksdb=rocksdb), str(tmp_path / "checkpoints")) as running:
            running.epochs(5)
            path = running.savepoint(tmp_path / "savepoints", Ending.CANCEL)
        check_hoard(path)
