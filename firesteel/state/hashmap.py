"""State as Python objects in dicts: nothing is serialised on access.

A table is two dicts: `fresh` holds what was written since the last barrier, `base` everything before it. So noting a
change costs nothing beside making it, keys that change often are found in the smaller dict, and a barrier's delta is
there already.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Any

from firesteel.graph.keys import KeyGroups
from firesteel.state.store import Accessors, CurrentKey, Entry, Store, Table

_GONE = object()
"""In the place of a value that was deleted."""


class HashMapTable(Table):
    def __init__(self, key_groups: KeyGroups) -> None:
        self._key_groups = key_groups
        self._base: dict[Any, Any] = {}
        self._fresh: dict[Any, Any] = {}
        self._unconfirmed: dict[int, dict[Any, Any]] = {}  # barrier -> what was written since the barrier before it

    def get(self, key: Any) -> Any:
        found = self._fresh.get(key)
        if found is None:
            return self._base.get(key)
        return None if found is _GONE else found

    def put(self, key: Any, value: Any) -> None:
        self._fresh[key] = value

    def delete(self, key: Any) -> None:
        self._fresh[key] = _GONE

    def bind(self, current: CurrentKey) -> Accessors:
        fresh, fresh_get, base_get = self._fresh, self._fresh.get, self._base.get

        def value() -> Any:
            found = fresh_get(current.key)
            if found is None:
                return base_get(current.key)
            return None if found is _GONE else found

        def update(value: Any) -> None:
            fresh[current.key] = _GONE if value is None else value

        def clear() -> None:
            fresh[current.key] = _GONE

        return value, update, clear

    def scan(self, groups: Container[int] | None = None) -> Iterator[Entry]:
        of = self._key_groups.of
        for entry in {**self._base, **self._fresh}.items():
            if entry[1] is not _GONE and (groups is None or of(entry[0]) in groups):
                yield entry

    def __len__(self) -> int:
        return sum(1 for _ in self.scan())

    def load(self, keys: list[Any], values: list[Any], deleted: list[Any]) -> None:
        self._base.update(zip(keys, values, strict=True))
        for key in deleted:
            self._base.pop(key, None)

    def barrier(self, checkpoint: int) -> tuple[list[Entry], list[Any]]:
        self._unconfirmed[checkpoint] = dict(self._fresh)
        self._merge_fresh()
        changes: dict[Any, Any] = {}
        for written in self._unconfirmed.values():
            changes.update(written)
        deleted = [key for key, value in changes.items() if value is _GONE]
        for key in deleted:
            del changes[key]
        return list(changes.items()), deleted

    def completed(self, checkpoint: int) -> None:
        self._unconfirmed = {barrier: keys for barrier, keys in self._unconfirmed.items() if barrier > checkpoint}

    def _merge_fresh(self) -> None:
        """Move what is fresh into the base, which only a barrier may do: it has noted what that was.

        Both dicts stay the same objects, because accessors hold on to them.
        """
        self._base.update(self._fresh)
        for key in [key for key, value in self._fresh.items() if value is _GONE]:
            del self._base[key]
        self._fresh.clear()


class HashMapStore(Store):
    def _create(self, name: str) -> Table:
        return HashMapTable(self.key_groups)
