"""Where state lives while a job runs: a store per operator and subtask, a table per state.

Typed states (`ValueState` and its kin) are written once over the tables' accessors; time-to-live wraps them. A state's
kind decides how its table is laid out. Stores differ in how they keep what belongs to keys; the state of subtasks is in memory
for all of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from firesteel.errors import StateError
from firesteel.graph.keys import KeyGroups
from firesteel.state.files import BROADCAST, NO_GROUP, OPERATOR_KINDS
from firesteel.state.layouts import TTL
from firesteel.state.operator import BroadcastTable, OperatorListTable, OperatorTable, create_operator_table
from firesteel.state.subtask import SubtaskTable
from firesteel.state.tables import (
    Accessors,
    CurrentKey,
    Entry,
    ListAccessors,
    ListTable,
    MapAccessors,
    MapTable,
    Table,
    ValueTable,
)
from firesteel.state.timers import MAX_TIME, TimerTable
from firesteel.state.windows import WindowTable

__all__ = [
    "MAX_TIME",
    "NO_GROUP",
    "TTL",
    "WINDOWS",
    "Accessors",
    "CurrentKey",
    "Entry",
    "ListAccessors",
    "ListTable",
    "MapAccessors",
    "MapTable",
    "Store",
    "SubtaskTable",
    "Table",
    "TimerTable",
    "ValueTable",
    "WindowTable",
]


WINDOWS = "+windows"
"""Ends the kind of states with a value for each window of a key."""


class Store(ABC):
    """The tables of one operator in one subtask."""

    def __init__(self, key_groups: KeyGroups) -> None:
        self.key_groups = key_groups
        self._tables: dict[str, Table] = {}
        self._kinds: dict[str, str] = {}

    @abstractmethod
    def _create_values(self, name: str, kind: str) -> ValueTable: ...

    @abstractmethod
    def _create_lists(self, name: str, kind: str) -> ListTable: ...

    @abstractmethod
    def _create_maps(self, name: str, kind: str) -> MapTable: ...

    def _create_timers(self, name: str) -> TimerTable:
        return TimerTable(self.key_groups)

    def _create_windows(self, name: str, kind: str) -> WindowTable:
        return WindowTable(lambda: self._create_values(name, kind))

    def table(self, name: str, kind: str) -> Table:
        """The table of that name, made when it is new. Its class follows from the kind.

        :raises StateError: the name is in use for another kind of state, here or in the checkpoint restored from.
        """
        known = self._kinds.get(name)
        if known is None:
            self._tables[name] = self._create(name, kind)
            self._kinds[name] = kind
        elif known != kind:
            raise StateError(_two_kinds(name, known, kind))
        return self._tables[name]

    def value_table(self, name: str, kind: str = "value") -> ValueTable:
        table = self.table(name, kind)
        assert isinstance(table, ValueTable)
        return table

    def window_table(self, name: str, kind: str) -> WindowTable:
        """A value of that kind for each pair of key and window."""
        table = self.table(name, kind + WINDOWS)
        assert isinstance(table, WindowTable)
        return table

    def list_table(self, name: str, kind: str = "list") -> ListTable:
        table = self.table(name, kind)
        assert isinstance(table, ListTable)
        return table

    def map_table(self, name: str, kind: str = "map") -> MapTable:
        table = self.table(name, kind)
        assert isinstance(table, MapTable)
        return table

    def timer_table(self, name: str) -> TimerTable:
        table = self.table(name, "timers")
        assert isinstance(table, TimerTable)
        return table

    def subtask_table(self, name: str) -> SubtaskTable:
        table = self.table(name, "subtask")
        assert isinstance(table, SubtaskTable)
        return table

    def operator_list_table(self, name: str, kind: str) -> OperatorListTable:
        table = self.table(name, kind)
        assert isinstance(table, OperatorListTable)
        return table

    def broadcast_table(self, name: str) -> BroadcastTable:
        table = self.table(name, BROADCAST)
        assert isinstance(table, BroadcastTable)
        return table

    def operator_tables(self) -> dict[str, tuple[str, OperatorTable]]:
        """Name -> kind and table of the states that belong to the subtask, as far as users made them."""
        return {name: (kind, table) for name, kind, table in self.tables() if isinstance(table, OperatorTable)}

    def _create(self, name: str, kind: str) -> Table:
        if kind.endswith(WINDOWS):
            return self._create_windows(name, kind)
        layout = kind.removesuffix(TTL)
        if layout in ("value", "reducing", "aggregating"):
            return self._create_values(name, kind)
        if layout == "list":
            return self._create_lists(name, kind)
        if layout == "map":
            return self._create_maps(name, kind)
        if kind == "timers":
            return self._create_timers(name)
        if kind == "subtask":
            return SubtaskTable()
        if kind in OPERATOR_KINDS:
            return create_operator_table(kind)
        raise StateError(f"state {name!r} is a {kind} state, which this firesteel does not know")

    def tables(self) -> Iterator[tuple[str, str, Table]]:
        """Name, kind and table of each state."""
        for name, table in self._tables.items():
            yield name, self._kinds[name], table

    def load(self, name: str, kind: str, keys: list[Any], values: list[Any], deleted: list[Any]) -> None:
        """Take part of a restored checkpoint."""
        self.table(name, kind).load(keys, values, deleted)

    def touch(self) -> None:
        """Count everything as changed: the files that it was restored from are not those to go on with."""
        for table in self._tables.values():
            table.touch()

    def completed(self, checkpoint: int) -> None:
        for table in self._tables.values():
            table.completed(checkpoint)

    def forget_changes(self) -> None:
        """For jobs without checkpoints, now and then: what was deleted would be remembered for ever."""
        for table in self._tables.values():
            table.forget_changes()


def _two_kinds(name: str, known: str, kind: str) -> str:
    if known.removesuffix(TTL) == kind.removesuffix(TTL):
        has, wants = ("has", "without") if known.endswith(TTL) else ("has no", "with")
        return (
            f"state {name!r} {has} time-to-live already, here or in the checkpoint, and cannot be used {wants} it; "
            f"use another name"
        )
    return f"state {name!r} is a {known} state already and cannot be a {kind} state too; use another name"
