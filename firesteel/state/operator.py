"""Operator state: lists and maps that belong to a subtask and to no key. In memory whatever the store."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any

from firesteel.errors import RestoreError
from firesteel.state.changes import Changes, latest
from firesteel.state.files import BROADCAST, NO_GROUP, OPERATOR_KINDS
from firesteel.state.tables import Entry, Table, elements_of

_ALL = "all"


class OperatorTable(Table):
    """One operator state of one subtask, which restoring may hand to other subtasks (see redistribution.py)."""

    grouped = False

    def __init__(self) -> None:
        self._changes = Changes()

    def content(self) -> Any:
        """A copy of everything in it."""
        raise NotImplementedError

    def replace(self, content: Any) -> None:
        """Hold this instead. It counts as a change."""
        raise NotImplementedError

    def completed(self, checkpoint: int) -> None:
        self._changes.completed(checkpoint)

    def forget_changes(self) -> None:
        self._changes.forget()


class OperatorListTable(OperatorTable):
    """A list. Entry keys are indexes, so a delta holds only what was appended to a long one. No element is None."""

    def __init__(self) -> None:
        super().__init__()
        self._data: list[Any] = []
        self._fresh = self._changes.fresh
        """_ALL -> (index from which on it changed, length at the last barrier)"""

    def get(self) -> tuple[Any, ...]:
        return tuple(self._data)

    def add(self, value: Any) -> None:
        self.add_all((value,))

    def add_all(self, values: Iterable[Any]) -> None:
        new = elements_of(values)
        if new:
            self._note(len(self._data))
            self._data += new

    def update(self, values: Iterable[Any]) -> None:
        new = elements_of(values)
        if new or self._data:
            self._note(0)
            self._data = new

    def clear(self) -> None:
        self.update(())

    def content(self) -> list[Any]:
        return list(self._data)

    def replace(self, content: Iterable[Any]) -> None:
        self.update(content)

    def touch(self) -> None:
        if self._data:
            self._note(0)

    def _note(self, start: int) -> None:
        known = self._fresh.get(_ALL)
        self._fresh[_ALL] = (start, len(self._data)) if known is None else (min(start, known[0]), known[1])

    def scan(self, groups: Container[int] | None = None) -> Iterator[Entry]:
        if groups is None or NO_GROUP in groups:
            yield from list(enumerate(self._data))

    def __len__(self) -> int:
        return len(self._data)

    def load(self, keys: list[Any], values: list[Any], deleted: list[Any]) -> None:
        data = self._data
        for index, value in zip(keys, values, strict=True):
            if index > len(data):
                raise RestoreError(f"an operator's list has element {index}, but not element {len(data)}")
            data[index : index + 1] = [value]
        if deleted:
            del data[min(deleted) :]

    def barrier(self, checkpoint: int) -> tuple[list[Entry], list[Any]]:
        notes = [noted[_ALL] for noted in self._changes.barrier(checkpoint)]
        if not notes:
            return [], []
        start, length = min(note[0] for note in notes), max(note[1] for note in notes)
        data = self._data
        return [(index, data[index]) for index in range(start, len(data))], list(range(len(data), length))


class BroadcastTable(OperatorTable):
    """A map. Entry keys are map keys, so a delta holds only the entries that changed."""

    def __init__(self) -> None:
        super().__init__()
        self.data: dict[Any, Any] = {}
        """Always the same dict, to be read by anybody and changed by this table only."""
        self._fresh = self._changes.fresh

    def put(self, key: Any, value: Any) -> None:
        self._fresh[key] = None
        self.data[key] = value

    def put_all(self, entries: Mapping[Any, Any] | Iterable[tuple[Any, Any]]) -> None:
        new = dict(entries)
        self._fresh.update(dict.fromkeys(new))
        self.data.update(new)

    def remove(self, key: Any) -> None:
        if key in self.data:
            del self.data[key]
            self._fresh[key] = None

    def clear(self) -> None:
        self._fresh.update(dict.fromkeys(self.data))
        self.data.clear()

    def content(self) -> dict[Any, Any]:
        return dict(self.data)

    def replace(self, content: Mapping[Any, Any]) -> None:
        self.clear()
        self.put_all(content)

    def touch(self) -> None:
        self._fresh.update(dict.fromkeys(self.data))

    def scan(self, groups: Container[int] | None = None) -> Iterator[Entry]:
        if groups is None or NO_GROUP in groups:
            yield from list(self.data.items())

    def __len__(self) -> int:
        return len(self.data)

    def load(self, keys: list[Any], values: list[Any], deleted: list[Any]) -> None:
        self.data.update(zip(keys, values, strict=True))
        for key in deleted:
            self.data.pop(key, None)

    def barrier(self, checkpoint: int) -> tuple[list[Entry], list[Any]]:
        changed, data = latest(self._changes.barrier(checkpoint)), self.data
        return [(key, data[key]) for key in changed if key in data], [key for key in changed if key not in data]


def create_operator_table(kind: str) -> OperatorTable:
    assert kind in OPERATOR_KINDS
    return BroadcastTable() if kind == BROADCAST else OperatorListTable()
