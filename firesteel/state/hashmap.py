"""State as Python objects in dicts: nothing is serialised on access, changed keys are noted in a set."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from firesteel.state.store import Entry, Store, Table


class HashMapTable(Table):
    def __init__(self) -> None:
        values: dict[Any, Any] = {}
        changed: set[Any] = set()
        note = changed.add

        def put(key: Any, value: Any) -> None:
            values[key] = value
            note(key)

        def delete(key: Any) -> None:
            if key in values:
                del values[key]
                note(key)

        self._values = values
        self._changed = changed
        self._unconfirmed: dict[int, set[Any]] = {}  # barrier -> keys changed since the barrier before it
        self.get = values.get
        self.put = put
        self.delete = delete

    def scan(self) -> Iterator[Entry]:
        return iter(self._values.items())

    def __len__(self) -> int:
        return len(self._values)

    def load(self, keys: list[Any], values: list[Any], deleted: list[Any]) -> None:
        self._values.update(zip(keys, values, strict=True))
        for key in deleted:
            self._values.pop(key, None)

    def barrier(self, checkpoint: int) -> tuple[list[Entry], list[Any]]:
        self._unconfirmed[checkpoint] = self._changed.copy()
        self._changed.clear()
        changed = (
            set().union(*self._unconfirmed.values()) if len(self._unconfirmed) > 1 else self._unconfirmed[checkpoint]
        )
        values = self._values
        puts = [(key, values[key]) for key in changed if key in values]
        deleted = [key for key in changed if key not in values] if len(puts) < len(changed) else []
        return puts, deleted

    def completed(self, checkpoint: int) -> None:
        self._unconfirmed = {barrier: keys for barrier, keys in self._unconfirmed.items() if barrier > checkpoint}


class HashMapStore(Store):
    def _create(self, name: str) -> Table:
        return HashMapTable()
