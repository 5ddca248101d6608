"""The state that a slot starts with: its own of the checkpoint, and operator state that was other subtasks'."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace

from firesteel.common.storage import Storage
from firesteel.graph.keys import groups_of
from firesteel.graph.plan import JobPlan, PlannedOperator
from firesteel.runtime.place import SlotPlace
from firesteel.runtime.snapshots import FileHandle
from firesteel.state.chains import deltas, native_part, state_files
from firesteel.state.compaction import merged
from firesteel.state.files import OPERATOR_KINDS, Delta, StateFile
from firesteel.state.native import NativeState
from firesteel.state.operator import OperatorTable, create_operator_table
from firesteel.state.origin import Origin
from firesteel.state.parts import Part, without_part
from firesteel.state.redistribution import needs_others, redistribute
from firesteel.state.store import Store

CreateStore = Callable[[PlannedOperator, NativeState | None], Store]


@dataclass(frozen=True)
class RestoredState:
    """A slot's state, and what its next checkpoint is put on."""

    stores: Mapping[str, Store]  # by operator uid
    native: NativeState | None
    chain: list[FileHandle]

    def discard(self) -> None:
        """The slot cannot start: leave nothing of it on this machine."""
        if self.native is not None:
            self.native.discard()


def restore_state(plan: JobPlan, place: SlotPlace, create: CreateStore) -> RestoredState:
    """The stores of all operators that have a subtask in this slot, with their part of the checkpoint."""
    operators = [operator for operator in plan.operators if place.slot < operator.parallelism]
    chain = [{key: value for key, value in handle.items() if key != "data"} for handle in place.restore]
    database = native_part(chain)
    as_it_is = bool(database) and place.rocksdb is not None and not _moved(place, operators)
    if as_it_is:
        # what is not the slot's is dropped by opening it, so all of the files stands in the chain again
        database = [without_part(handle) for handle in database]
        chain = [*database, *state_files(chain)]
    native = _open(place, database if as_it_is else [], {operator.uid for operator in operators})
    restored = RestoredState({}, native, chain)
    try:
        restored = replace(restored, stores={operator.uid: create(operator, native) for operator in operators})
        _load(plan, place, restored.stores, chain, as_it_is=as_it_is)
    except BaseException:
        restored.discard()
        raise
    if bool(database) != (native is not None) or (database and not as_it_is):
        for store in restored.stores.values():  # the files are another store's, and cannot be gone on with
            store.touch()
        restored = replace(restored, chain=[])
    return restored


def _load(
    plan: JobPlan, place: SlotPlace, stores: Mapping[str, Store], chain: list[FileHandle], *, as_it_is: bool
) -> None:
    """Give stores their part of what a chain holds, and of what other slots' do.

    :param as_it_is: the chain's database has been opened.
    """
    operators = [operator for operator in plan.operators if operator.uid in stores]
    owned = {each.uid: groups_of(place.slot, each.parallelism, each.max_parallelism) for each in operators}
    mine = Part(owned, stores.keys())
    for delta in _beside(place, chain, mine) if as_it_is else deltas(place.storage, chain, mine, place.on_restored):
        stores[delta.uid].load(delta.name, delta.kind, delta.keys, delta.values, delta.deleted)
    if place.origin is not None:
        parallelism = {operator.uid: operator.parallelism for operator in plan.operators}
        redistribute_operator_state(place.origin, place.storage, place.slot, parallelism, stores)


def _beside(place: SlotPlace, chain: list[FileHandle], mine: Part) -> Iterator[Delta]:
    """What is not in the database that was opened.

    State files are merged before a store sees them: a timer that went to the database was removed from them, and is not to be
    removed there.
    """
    with ExitStack() as opened:
        files = [
            (opened.enter_context(StateFile(each["file"], each["checksum"], place.storage)), mine.within(each).has)
            for each in state_files(chain)
        ]
        yield from merged(files, on_read=place.on_restored)


def _moved(place: SlotPlace, operators: Collection[PlannedOperator]) -> bool:
    """Whether keys belong to other slots than they did when the checkpoint was taken."""
    rescaled = place.origin.rescaled if place.origin is not None else {}
    return any(operator.keyed and operator.uid in rescaled for operator in operators)


def _open(place: SlotPlace, database: list[FileHandle], uids: Collection[str]) -> NativeState | None:
    if place.rocksdb is None:
        return None
    from firesteel.state.rocksdb.state import RocksDBState  # rocksdict is an optional package

    places = place.rocksdb.local_directories or (place.scratch or tempfile.gettempdir(),)
    base = places[place.slot % len(places)]
    return RocksDBState(place.rocksdb, base, place.job_id, place.slot, place.storage, database, uids, place.on_restored)


def redistribute_operator_state(
    origin: Origin, storage: Storage, slot: int, parallelism: Mapping[str, int], stores: Mapping[str, Store]
) -> None:
    """Give the subtasks in this slot their part of what all subtasks had.

    What they get counts as changes, so that it is in the next checkpoint's delta: in their own files there is, if anything,
    what they get this instead of.

    :param parallelism: operator uid -> its parallelism now.
    :param stores: operator uid -> its store in this slot.
    """
    known: dict[tuple[str, str], tuple[str, list[OperatorTable]]] = {}
    of_subtasks = Part({}, stores.keys())
    for subtask, chain in enumerate(origin.chains):
        for delta in deltas(storage, state_files(chain), of_subtasks):
            uid, kind = delta.uid, delta.kind
            if kind not in OPERATOR_KINDS:
                continue
            before = origin.rescaled.get(uid, parallelism[uid])
            # checkpoints of format 1 may hold what a subtask had that there was no more when they were taken
            if subtask < before and needs_others(kind, rescaled=uid in origin.rescaled):
                if (uid, delta.name) not in known:
                    known[uid, delta.name] = kind, [create_operator_table(kind) for _ in range(before)]
                known[uid, delta.name][1][subtask].load(delta.keys, delta.values, delta.deleted)
    for (uid, name), (kind, tables) in known.items():
        mine = redistribute(kind, [table.content() for table in tables], parallelism[uid])[slot]
        table = stores[uid].table(name, kind)
        assert isinstance(table, OperatorTable)
        table.replace(mine)
