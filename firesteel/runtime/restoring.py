"""Operator state that a slot starts with, where its own state files are not enough: parts of it were other subtasks'."""

from __future__ import annotations

from collections.abc import Mapping

from firesteel.common.storage import Storage
from firesteel.state.files import OPERATOR_KINDS, StateFile
from firesteel.state.operator import OperatorTable, create_operator_table
from firesteel.state.origin import Origin
from firesteel.state.parts import Part
from firesteel.state.redistribution import needs_others, redistribute
from firesteel.state.store import Store


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
        for handle in chain:
            with StateFile(handle["file"], handle["checksum"], storage) as file:
                for delta in file.deltas(of_subtasks.within(handle).has):
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
