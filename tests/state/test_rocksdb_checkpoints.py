"""At random, for every kind of table: a database's checkpoints give what was there at their barriers, in whatever store."""

from __future__ import annotations

import copy
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_deltas import Broadcasts, Lists, Maps, Model, OfSubtask, Timers, Values

from firesteel.common.storage import LocalStorage
from firesteel.graph.keys import KeyGroups
from firesteel.graph.settings import RocksDBSettings
from firesteel.runtime.snapshots import KeyedStore, _by_group
from firesteel.state.chains import deltas, native_part, state_files
from firesteel.state.compaction import merged
from firesteel.state.files import StateFile, StateFileWriter, everything
from firesteel.state.hashmap import HashMapStore
from firesteel.state.parts import Part
from firesteel.state.rocksdb.state import RocksDBState
from firesteel.state.store import Store
from tests.support.tiny_cache import TinyCache

Chain = list[dict[str, Any]]

_FAST = "/dev/shm" if os.path.isdir("/dev/shm") else None
"""Where syncing costs nothing: RocksDB does it with every checkpoint."""


class Job:
    """A slot with a database, the model of one of its tables, and the files that it has written."""

    def __init__(self, model: type[Model], directory: str, tiny: bool) -> None:
        self.storage, self.local, self.tiny = LocalStorage(f"{directory}/storage"), f"{directory}/local", tiny
        os.makedirs(self.storage.path("state"))
        self.model = model()
        self.base: tuple[Chain, Model] = [], model()  # the last completed checkpoint
        self.on: Chain = []  # the chain that the next checkpoint is put on
        self.unconfirmed: dict[int, tuple[Chain, Model]] = {}
        self.number = 0
        self.open([])

    def open(self, restored: Chain) -> None:
        self.state = RocksDBState(RocksDBSettings(), self.local, "job", 0, self.storage, restored, {"op"})
        if self.tiny:
            self.state._cache = TinyCache(self.state._database)
            self.state._cache.near_timers = 2
        self.store = self.state.store("op", KeyGroups(128))
        self.store.table("t", self.model.kind)

    def barrier(self) -> None:
        self.number += 1
        chain, writer = state_files(self.on), StateFileWriter(0, self.number)
        for name, kind, table in self.store.tables():
            for delta in _by_group(KeyedStore("op", self.store), name, kind, table, self.number):
                writer.add(delta)
        data, checksum = writer.finish()
        self.storage.write(f"state/{self.number}", data)
        self.state.barrier(self.number)
        native = self.state.write(self.number, self.storage, "state", native_part(self.on))
        chain = [*native, *chain, writer.handle(f"state/{self.number}", data, checksum)]
        self.unconfirmed[self.number] = chain, copy.deepcopy(self.model)

    def completed(self, which: int) -> None:
        if self.unconfirmed:
            checkpoint = sorted(self.unconfirmed)[which % len(self.unconfirmed)]
            self.base = self.unconfirmed[checkpoint]
            self.on = self.base[0]
            self.unconfirmed = {n: what for n, what in self.unconfirmed.items() if n > checkpoint}
            self.store.completed(checkpoint)
            self.state.completed(checkpoint)

    def restart(self) -> None:
        """From the database's files, which is what happens when a job goes on with the same backend."""
        self.state.close()
        self.model, self.unconfirmed = copy.deepcopy(self.base[1]), {}
        self.on = self.base[0]
        self.open(native_part(self.on))
        with ExitStack() as opened:
            handles = state_files(self.on)
            files = [opened.enter_context(StateFile(each["file"], each["checksum"], self.storage)) for each in handles]
            for delta in merged([(file, everything) for file in files]):  # as one: see restoring._beside
                self.store.load(delta.name, delta.kind, delta.keys, delta.values, delta.deleted)

    def switched(self) -> None:
        """The chain in a hashmap store, which is what happens when a job goes on with the other backend; and half of it."""
        for number in self.unconfirmed:
            chain, model = self.unconfirmed[number]
            store = HashMapStore(KeyGroups(128))
            self.load(store, chain)
            assert dict(store.table("t", model.kind).scan()) == model.entries()
            low = {(delta.name, delta.group) for delta in deltas(self.storage, chain, Part({"op": range(64)}, ()))}
            assert low == {(d.name, d.group) for d in deltas(self.storage, chain) if 0 <= d.group < 64}

    def copied(self) -> None:
        """The chain of a hashmap store in a database."""
        if not self.base[0]:
            return
        hashmap = HashMapStore(KeyGroups(128))
        self.load(hashmap, self.base[0])
        hashmap.touch()
        self.state.close()
        self.model, self.unconfirmed = copy.deepcopy(self.base[1]), {}
        self.open([])
        for name, kind, table in hashmap.tables():
            for delta in _by_group(KeyedStore("op", hashmap), name, kind, table, 1):
                self.store.load(name, kind, delta.keys, delta.values, delta.deleted)
        self.store.touch()
        self.on = []

    def load(self, store: Store, chain: Chain) -> None:
        for delta in deltas(self.storage, chain):
            store.load(delta.name, delta.kind, delta.keys, delta.values, delta.deleted)


JOB = st.sampled_from(
    [("barrier",)] * 5
    + [("completed", which) for which in range(3)]
    + [("switched",), ("restart",), ("restart",), ("copied",)]
)
_OWN = frozenset(("barrier", "completed", "switched", "restart", "copied"))


@pytest.fixture(scope="module", autouse=True)
def _no_syncing() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.mark.parametrize("tiny", [False, True])
@pytest.mark.parametrize("model", [Values, Maps, Lists, Timers, OfSubtask, Broadcasts])
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_every_checkpoint_gives_the_state_at_its_barrier(model: type[Model], tiny: bool, data: st.DataObject) -> None:
    step = st.one_of(model.operations, JOB)
    steps = data.draw(st.one_of(st.lists(step, max_size=8), st.lists(step, min_size=10, max_size=25)), "steps")
    with tempfile.TemporaryDirectory(dir=_FAST) as directory:
        job = Job(model, directory, tiny)
        for name, *arguments in steps:
            if name in _OWN:
                getattr(job, name)(*arguments)
            else:
                job.model.do(job.store, (name, *arguments))
            assert dict(job.store.table("t", model.kind).scan()) == job.model.entries()
        job.barrier()
        job.switched()
        job.completed(-1)
        job.restart()
        assert dict(job.store.table("t", model.kind).scan()) == job.model.entries()
        job.state.close()
