"""At random, for every kind of table: whatever checkpoints were dropped or completed late, and however often the job was
restored, the chain of state files of every barrier gives what was there at that barrier."""

from __future__ import annotations

import copy
import os
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.common.storage import LocalStorage, local
from firesteel.runtime.snapshots import KeyedStore, _by_group
from firesteel.state import compaction
from firesteel.state.files import NO_GROUP, StateFile, StateFileWriter
from firesteel.state.store import Store

KEYS = st.sampled_from(["a", ("b", 1)])
VALUES = st.integers(0, 3)
Operation = tuple[Any, ...]


class Model:
    """A plain version of a table, and how operations are done to both."""

    kind: str
    operations: st.SearchStrategy[Operation]

    def __init__(self) -> None:
        self.data: Any = {}

    def do(self, store: Store, operation: Operation) -> None:
        raise NotImplementedError

    def entries(self) -> dict[Any, Any]:
        return dict(self.data)


class Current:
    key: Any = None


class Values(Model):
    kind = "value"
    operations = st.one_of(
        st.tuples(st.just("update"), KEYS, st.one_of(st.none(), VALUES)), st.tuples(st.just("clear"), KEYS)
    )

    def do(self, store: Store, operation: Operation) -> None:
        name, current = operation[0], Current()
        current.key = operation[1]
        value, update, clear = store.value_table("t").bind(current)
        assert value() == self.data.get(current.key)
        if name == "update":
            update(operation[2])
            self.data[current.key] = operation[2]
        else:
            clear()
        if name == "clear" or operation[2] is None:
            self.data.pop(current.key, None)


class Maps(Model):
    kind = "map"
    operations = st.one_of(
        st.tuples(st.just("put"), KEYS, VALUES, st.one_of(st.none(), VALUES)),
        st.tuples(st.just("put_all"), KEYS, st.dictionaries(VALUES, VALUES)),
        st.tuples(st.just("remove"), KEYS, VALUES),
        st.tuples(st.just("clear"), KEYS),
    )

    def do(self, store: Store, operation: Operation) -> None:
        name, key, *arguments = operation
        current = Current()
        current.key = key
        states = store.map_table("t").bind(current)
        getattr(states, name)(*arguments)
        mine = self.data.setdefault(key, {})
        if name == "put":
            mine[arguments[0]] = arguments[1]
        elif name == "put_all":
            mine.update(arguments[0])
        elif name == "remove":
            mine.pop(arguments[0], None)
        else:
            mine.clear()
        assert dict(states.items()) == mine
        assert sorted(states.keys()) == sorted(mine)
        assert len(states.values()) == len(mine)
        assert [states.get(map_key) for map_key in range(4)] == [mine.get(map_key) for map_key in range(4)]
        assert [states.contains(map_key) for map_key in range(4)] == [map_key in mine for map_key in range(4)]
        assert states.is_empty() == (not mine)

    def entries(self) -> dict[Any, Any]:
        return {(key, map_key): value for key, found in self.data.items() for map_key, value in found.items()}


class Lists(Model):
    kind = "list"
    operations = st.one_of(
        st.tuples(st.just("add"), KEYS, VALUES),
        st.tuples(st.just("add_all"), KEYS, st.lists(VALUES, max_size=3)),
        st.tuples(st.just("update"), KEYS, st.lists(VALUES, max_size=5)),
        st.tuples(st.just("clear"), KEYS),
    )

    def do(self, store: Store, operation: Operation) -> None:
        name, key, *arguments = operation
        current = Current()
        current.key = key
        states = store.list_table("t").bind(current)
        getattr(states, name)(*arguments)
        mine = self.data.setdefault(key, [])
        if name in ("update", "clear"):
            mine.clear()
        if name == "add":
            mine.append(arguments[0])
        elif name != "clear":
            mine.extend(arguments[0])
        assert states.get() == tuple(mine)

    def entries(self) -> dict[Any, Any]:
        return {(key, index): value for key, found in self.data.items() for index, value in enumerate(found)}


class Timers(Model):
    kind = "timers"
    operations = st.one_of(
        st.tuples(st.just("register"), KEYS, VALUES),
        st.tuples(st.just("delete"), KEYS, VALUES),
        st.tuples(st.just("pop"), VALUES),
    )

    def do(self, store: Store, operation: Operation) -> None:
        name, *arguments = operation
        table = store.timer_table("t")
        result = getattr(table, name)(*arguments)
        if name == "register":
            self.data[tuple(arguments)] = None
        elif name == "delete":
            self.data.pop(tuple(arguments), None)
        else:
            first = min((time for _, time in self.data), default=None)
            if first is None or first > arguments[0]:
                assert result is None
            else:
                time, key = result
                assert time == first
                del self.data[key, time]


class OfSubtask(Model):
    kind = "subtask"
    operations = st.one_of(
        st.tuples(st.just("put"), st.sampled_from(["w", "x"]), VALUES),
        st.tuples(st.just("delete"), st.sampled_from(["w", "x"])),
    )

    def do(self, store: Store, operation: Operation) -> None:
        name, *arguments = operation
        getattr(store.subtask_table("t"), name)(*arguments)
        if name == "put":
            self.data[arguments[0]] = arguments[1]
        else:
            self.data.pop(arguments[0], None)


class OperatorLists(Model):
    kind = "operator-list"
    operations = st.one_of(
        st.tuples(st.just("add"), VALUES),
        st.tuples(st.just("add_all"), st.lists(VALUES, max_size=3)),
        st.tuples(st.just("update"), st.lists(VALUES, max_size=5)),
        st.tuples(st.just("clear")),
    )

    def do(self, store: Store, operation: Operation) -> None:
        name, *arguments = operation
        table = store.operator_list_table("t", self.kind)
        getattr(table, name)(*arguments)
        mine = [] if name in ("update", "clear") else list(self.data.values())
        mine += [arguments[0]] if name == "add" else arguments[0] if arguments else []
        self.data = dict(enumerate(mine))
        assert table.get() == tuple(mine)


class Broadcasts(Model):
    kind = "broadcast"
    operations = st.one_of(
        st.tuples(st.just("put"), VALUES, st.one_of(st.none(), VALUES)),
        st.tuples(st.just("put_all"), st.dictionaries(VALUES, VALUES)),
        st.tuples(st.just("remove"), VALUES),
        st.tuples(st.just("clear")),
    )

    def do(self, store: Store, operation: Operation) -> None:
        name, *arguments = operation
        table = store.broadcast_table("t")
        getattr(table, name)(*arguments)
        if name == "put":
            self.data[arguments[0]] = arguments[1]
        elif name == "put_all":
            self.data.update(arguments[0])
        elif name == "remove":
            self.data.pop(arguments[0], None)
        else:
            self.data.clear()
        assert table.content() == self.data


class Job:
    """A store that lives, its model, and the files it has written."""

    def __init__(self, create: Callable[[], Store], model: type[Model], directory: str) -> None:
        self.create, self.directory = create, directory
        self.store, self.model = create(), model()
        self.store.table("t", model.kind)
        self.base: tuple[list[dict[str, Any]], Model] = [], model()  # the last completed checkpoint
        self.unconfirmed: dict[int, tuple[list[dict[str, Any]], Model]] = {}
        self.number = 0

    def whole(self) -> None:
        """All there is, as a savepoint without checkpoints has it: it needs no base, and changes nothing."""
        store = self.create()
        for name, kind, table in self.store.tables():
            for delta in _by_group(KeyedStore("op", self.store), name, kind, table, None):
                store.load(delta.name, delta.kind, delta.keys, delta.values, delta.deleted)
        assert dict(store.table("t", self.model.kind).scan()) == self.model.entries()

    def barrier(self) -> None:
        self.whole()
        self.number += 1
        writer = StateFileWriter(0, self.number)
        for name, kind, table in self.store.tables():
            for delta in _by_group(KeyedStore("op", self.store), name, kind, table, self.number):
                assert (delta.group == NO_GROUP) == (kind in ("subtask", "operator-list", "broadcast"))
                writer.add(delta)
        data, checksum = writer.finish()
        file = f"chk-{self.number}"
        with open(os.path.join(self.directory, file), "wb") as out:
            out.write(data)
        handle = {"file": file, "size": len(data), "checksum": checksum}
        # any checkpoint since the base may turn out to be what the delta is put on
        for chain, _ in [self.base, *self.unconfirmed.values()]:
            assert dict(self.restored([*chain, handle]).table("t", self.model.kind).scan()) == self.model.entries()
        self.unconfirmed[self.number] = [*self.base[0], handle], copy.deepcopy(self.model)

    def completed(self, which: int) -> None:
        if self.unconfirmed:
            checkpoint = sorted(self.unconfirmed)[which % len(self.unconfirmed)]
            self.base = self.unconfirmed[checkpoint]
            self.unconfirmed = {n: what for n, what in self.unconfirmed.items() if n > checkpoint}
            self.store.completed(checkpoint)

    def compacted(self) -> None:
        chain, model = self.base
        if chain:
            handle = compaction.compact(LocalStorage(self.directory), f"base-{len(os.listdir(self.directory))}", chain)
            self.base = [handle], model

    def restart(self) -> None:
        self.store, self.model = self.restored(self.base[0]), copy.deepcopy(self.base[1])
        self.unconfirmed = {}

    def restored(self, chain: list[dict[str, Any]]) -> Store:
        store = self.create()
        store.table("t", self.model.kind)
        for handle in chain:
            with StateFile(os.path.join(self.directory, handle["file"]), handle["checksum"]) as file:
                for delta in file.deltas():
                    store.load(delta.name, delta.kind, delta.keys, delta.values, delta.deleted)
        return store


JOB = st.sampled_from(
    [("barrier",)] * 6 + [("completed", which) for which in range(3)] + [("compacted",), ("restart",)]
)


@pytest.fixture(scope="module", autouse=True)
def _no_syncing() -> Iterator[None]:
    def write(path: str, data: bytes) -> None:
        with open(path, "wb") as out:
            out.write(data)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local, "write_durable", write)
        yield


@pytest.mark.parametrize("model", [Values, Maps, Lists, Timers, OfSubtask, OperatorLists, Broadcasts])
@settings(max_examples=200)
@given(data=st.data())
def test_every_chain_gives_the_state_at_its_barrier(
    create_with_deltas: Callable[[], Store], model: type[Model], data: st.DataObject
) -> None:
    step = st.one_of(model.operations, JOB)
    steps = data.draw(st.one_of(st.lists(step, max_size=8), st.lists(step, min_size=15, max_size=40)), "steps")
    with tempfile.TemporaryDirectory() as directory:
        job = Job(create_with_deltas, model, directory)
        for name, *arguments in steps:
            if name in ("barrier", "completed", "compacted", "restart"):
                getattr(job, name)(*arguments)
            else:
                job.model.do(job.store, (name, *arguments))
            table = job.store.table("t", model.kind)
            assert dict(table.scan()) == job.model.entries()  # looking must not make the next delta forget anything
            assert len(table) == len(job.model.entries())
        job.barrier()
        job.completed(-1)
        job.compacted()
        job.restart()
        assert dict(job.store.table("t", model.kind).scan()) == job.model.entries()
