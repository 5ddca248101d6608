"""State that belongs to a subtask and not to a key, such as its watermark."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Any

from firesteel.state.changes import Changes, latest
from firesteel.state.files import NO_GROUP
from firesteel.state.tables import Entry, Table


class SubtaskTable(Table):
    """A few values under names. No value is ever None: None means absent."""

    grouped = False

    def __init__(self) -> None:
        self._data: dict[str, Any] = {}
        self._changes = Changes()

    def get(self, name: str) -> Any:
        return self._data.get(name)

    def put(self, name: str, value: Any) -> None:
        """Set a value; None deletes it. An equal one is no change, so give a new value instead of changing the old."""
        if value is None:
            self.delete(name)
            return
        found = self._data.get(name)
        if found is value or found != value:
            self._data[name] = value
            self._changes.fresh[name] = None

    def delete(self, name: str) -> None:
        if self._data.pop(name, None) is not None:
            self._changes.fresh[name] = None

    def scan(self, groups: Container[int] | None = None) -> Iterator[Entry]:
        if groups is None or NO_GROUP in groups:
            yield from list(self._data.items())

    def __len__(self) -> int:
        return len(self._data)

    def load(self, keys: list[Any], values: list[Any], deleted: list[Any]) -> None:
        self._data.update(zip(keys, values, strict=True))
        for name in deleted:
            self._data.pop(name, None)

    def barrier(self, checkpoint: int) -> tuple[list[Entry], list[Any]]:
        changed = latest(self._changes.barrier(checkpoint))
        data = self._data
        return [(name, data[name]) for name in changed if name in data], [name for name in changed if name not in data]

    def touch(self) -> None:
        self._changes.fresh.update(dict.fromkeys(self._data))

    def completed(self, checkpoint: int) -> None:
        self._changes.completed(checkpoint)

    def forget_changes(self) -> None:
        self._changes.forget()
