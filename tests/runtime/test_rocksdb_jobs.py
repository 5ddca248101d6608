"""Whole jobs with their state in RocksDB, in one process: backends in turn, damage, full disks, time-to-live."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import RestartStrategies, Time, Types
from firesteel.common.storage import LocalStorage
from firesteel.coordinator.completed import Completed
from firesteel.coordinator.engine import EpochOrder, EpochResult
from firesteel.coordinator.lineage import JobDirectory
from firesteel.coordinator.listing import list_checkpoints
from firesteel.datastream import (
    EmbeddedRocksDBStateBackend,
    HashMapStateBackend,
    KeyedProcessFunction,
    RuntimeContext,
    StateTtlConfig,
    StreamExecutionEnvironment,
)
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from firesteel.errors import RestoreError, SlotLostError, StateError
from firesteel.graph.nodes import Collect
from firesteel.state.chains import deltas, native_part
from firesteel.state.files import NO_GROUP
from firesteel.state.rocksdb.database import Database
from tests.support.local_engine import DescribingEngine, LocalRun
from tests.support.slicing import Sliced

LAST = 6000
KEYS = 200


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


class EveryKindOfState(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.PICKLED_BYTE_ARRAY()))
        self.kinds = runtime_context.get_map_state(MapStateDescriptor("kinds", Types.INT(), Types.INT()))
        self.all = runtime_context.get_list_state(ListStateDescriptor("all", Types.INT()))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        self.total.update((self.total.value() or 0) + value)
        self.kinds.put(value % 7, (self.kinds.get(value % 7) or 0) + 1)
        self.all.add(value)
        ctx.timer_service().register_event_time_timer(10**15 + value)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        if timestamp - 10**15 == max(self.all.get()):
            yield ctx.get_current_key(), self.total.value(), sum(self.kinds.values()), sorted(self.all.get())


class FailsAfterACheckpoint(DescribingEngine):
    """Once it has run an epoch after the first checkpoint of its own."""

    begun: int | None = -1

    def run_epoch(self, order: EpochOrder) -> EpochResult:
        if self.begun == -1:
            self.begun = order.completed
        self.fail_next = order.completed != self.begun
        return super().run_epoch(order)


def run(
    tmp_path: Path,
    backend: Any = None,
    fail_at: tuple[int, ...] = (),
    restarts: int = 3,
    engine: type[DescribingEngine] = DescribingEngine,
) -> list[Any]:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2).enable_checkpointing(5)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(restarts, 0))
    backend = EmbeddedRocksDBStateBackend() if backend is None else backend
    if isinstance(backend, EmbeddedRocksDBStateBackend):
        backend.set_db_storage_paths(str(tmp_path / "local"))
    env.set_state_backend(backend).set_rocksdb_option("memory", 100_000)
    numbers = env.from_source(Sliced(NumberSequenceSource(1, LAST, 10_000), 300), source_name="numbers").uid("numbers")
    numbers.key_by(lambda n: n % KEYS).process(EveryKindOfState()).uid("states")._end(Collect(), "Collect")
    local = LocalRun(env, str(tmp_path / "c"), fail_at=fail_at)
    local.engine.__class__ = engine
    return local.run().collected()


def expected() -> list[Any]:
    values = {key: [n for n in range(1, LAST + 1) if n % KEYS == key] for key in range(KEYS)}
    return [(key, sum(found), len(found), found) for key, found in values.items()]


def newest(tmp_path: Path) -> Completed:
    found = JobDirectory.open(str(tmp_path / "c"), "job").latest()
    assert found is not None
    return found


def test_a_job_that_fails_again_and_again_loses_and_repeats_nothing(tmp_path: Path) -> None:
    assert sorted(run(tmp_path, fail_at=(6, 9, 14))) == expected()
    assert all(native_part(chain) for chain in newest(tmp_path).metadata.state)
    assert list((tmp_path / "local").iterdir()) == []


def test_a_job_goes_on_with_the_other_backend_and_with_the_first_one_again(tmp_path: Path) -> None:
    backends = [HashMapStateBackend(), EmbeddedRocksDBStateBackend(), HashMapStateBackend()]
    for backend in backends:
        with pytest.raises(SlotLostError, match="InjectedFailure"):
            run(tmp_path, backend, restarts=0, engine=FailsAfterACheckpoint)
        chains = newest(tmp_path).metadata.state
        assert all(bool(native_part(chain)) != isinstance(backend, HashMapStateBackend) for chain in chains)
    assert sorted(run(tmp_path)) == expected()


def test_without_checkpoints_a_job_works_and_keeps_to_its_memory(tmp_path: Path) -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    env.set_state_backend(EmbeddedRocksDBStateBackend()).set_rocksdb_option("memory", 100_000)
    numbers = env.from_source(Sliced(NumberSequenceSource(1, LAST, 10_000), 300), source_name="numbers")
    numbers.key_by(lambda n: n % KEYS).process(EveryKindOfState())._end(Collect(), "Collect")
    assert sorted(LocalRun(env, str(tmp_path / "c")).run().collected()) == expected()


def test_a_full_storage_drops_checkpoints_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    takes = [0]

    def take(self: LocalStorage, name: str, source: Any, source_name: str, *, real: Any = LocalStorage.take) -> None:
        into_checkpoint = name.startswith("inc-")
        takes[0] += into_checkpoint
        if into_checkpoint and 3 < takes[0] < 6:  # the final one may be among these, and the job restarts then
            raise OSError(errno.ENOSPC, "No space left on device", name)
        real(self, name, source, source_name)

    monkeypatch.setattr(LocalStorage, "take", take)
    assert sorted(run(tmp_path, fail_at=(12,))) == expected()
    assert takes[0] > 4  # how many checkpoints there are depends on the machine


def test_a_full_local_disk_fails_the_job_and_says_which(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Database, path: str) -> None:
        raise StateError(f"a checkpoint of the RocksDB in {self.path} cannot be taken: No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Database, "checkpoint", full)
        with pytest.raises(StateError, match=r"local/.*No space left on device"):
            run(tmp_path, restarts=0)
    assert sorted(run(tmp_path)) == expected()


class Remembers(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        descriptor = ValueStateDescriptor("seen", Types.INT())
        ttl = StateTtlConfig.new_builder(Time.milliseconds(1)).cleanup_incrementally(10, True).build()
        descriptor.enable_time_to_live(ttl)
        self.seen = runtime_context.get_state(descriptor)

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        self.seen.update(value)
        yield value


def test_what_has_expired_is_removed_although_it_is_only_in_the_database(tmp_path: Path) -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1).enable_checkpointing(1)
    env.set_state_backend(EmbeddedRocksDBStateBackend()).set_rocksdb_option("memory", 100_000)
    numbers = env.from_source(Sliced(NumberSequenceSource(1, 12_000, 10_000), 300), source_name="numbers")
    numbers.key_by(lambda n: n).process(Remembers())._end(Collect(), "Collect")
    run = LocalRun(env, str(tmp_path / "c")).run()
    assert len(run.collected()) == 12_000
    found = newest(tmp_path)
    found_in = [delta for chain in found.metadata.state for delta in deltas(found.storage, chain)]
    left = sum(len(delta.keys) for delta in found_in if delta.group != NO_GROUP)
    assert left < 9_000  # a thousand are looked at in each of its 40 epochs


def test_verifying_checkpoints_reads_the_files_of_databases_too(tmp_path: Path) -> None:
    run(tmp_path)
    found = newest(tmp_path)
    (listed,) = [
        one for one in list_checkpoints(found.path, verify=True) if one.checkpoint == found.metadata.checkpoint
    ]
    assert listed.problem is None
    handle = native_part(found.metadata.state[0])[0]
    path = Path(found.storage.at(handle["file"]))
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    (listed,) = list_checkpoints(found.path, verify=True)
    assert listed.problem is not None and path.name in listed.problem and "damaged" in listed.problem
    with pytest.raises(RestoreError, match=path.name):
        run(tmp_path, restarts=0)
