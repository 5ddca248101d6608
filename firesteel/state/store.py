"""Where keyed state lives while a job runs: a store per operator and subtask, a table per state.

Typed states (`ValueState` and its kin) are written once over this interface; TTL, metrics and caching wrap it. A table
maps a key to a value. It remembers which keys changed since the last *completed* checkpoint, so that a checkpoint which
was dropped on the way leaves no hole: its changes are part of the next one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterator
from typing import Any, Protocol

from firesteel.errors import StateError
from firesteel.graph.keys import KeyGroups

Entry = tuple[Any, Any]


class CurrentKey(Protocol):
    """Whoever knows which key is being processed."""

    key: Any


Accessors = tuple[Callable[[], Any], Callable[[Any], None], Callable[[], None]]
"""Read, write and delete the current key's value; writing None deletes it."""


class Table(ABC):
    """One state of one operator in one subtask. No value is ever None: None means absent."""

    @abstractmethod
    def get(self, key: Any) -> Any: ...

    @abstractmethod
    def put(self, key: Any, value: Any) -> None: ...

    @abstractmethod
    def delete(self, key: Any) -> None: ...

    @abstractmethod
    def bind(self, current: CurrentKey) -> Accessors:
        """Accessors of the current key's value, as cheap as the store can make them: they run for every record."""

    @abstractmethod
    def scan(self, groups: Container[int] | None = None) -> Iterator[Entry]:
        """Every entry, or those of these key groups."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def load(self, keys: list[Any], values: list[Any], deleted: list[Any]) -> None:
        """Take part of a restored checkpoint; it does not count as a change."""

    @abstractmethod
    def barrier(self, checkpoint: int) -> tuple[list[Entry], list[Any]]:
        """Entries put and keys deleted since the last completed checkpoint, up to now, which is barrier `checkpoint`."""

    @abstractmethod
    def completed(self, checkpoint: int) -> None:
        """That checkpoint is the base of the deltas to come."""


class Store(ABC):
    """The tables of one operator in one subtask."""

    def __init__(self, key_groups: KeyGroups) -> None:
        self.key_groups = key_groups
        self._tables: dict[str, Table] = {}
        self._kinds: dict[str, str] = {}

    @abstractmethod
    def _create(self, name: str) -> Table: ...

    def table(self, name: str, kind: str) -> Table:
        """The table of that name, made when it is new.

        :raises StateError: the name is in use for another kind of state, here or in the checkpoint restored from.
        """
        known = self._kinds.setdefault(name, kind)
        if known != kind:
            raise StateError(
                f"state {name!r} is a {known} state already and cannot be a {kind} state too; use another name"
            )
        if name not in self._tables:
            self._tables[name] = self._create(name)
        return self._tables[name]

    def tables(self) -> Iterator[tuple[str, str, Table]]:
        """Name, kind and table of each state."""
        for name, table in self._tables.items():
            yield name, self._kinds[name], table

    def completed(self, checkpoint: int) -> None:
        for table in self._tables.values():
            table.completed(checkpoint)
