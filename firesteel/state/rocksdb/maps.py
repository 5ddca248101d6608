"""Maps in RocksDB: a row for each entry, those of a key together, so a large map is not read for one of its entries.

In memory are those entries that were asked for. A map whose entries are all wanted is read whole and remembered as such.
"""

from __future__ import annotations

import pickle
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from rocksdict import WriteBatch

from firesteel.graph.keys import KeyGroups
from firesteel.state.rocksdb.cache import NativeTable, ObjectCache, RocksDBTable
from firesteel.state.rocksdb.encoding import MISSING, after, decoded, encoded_part, exact, unpack
from firesteel.state.rocksdb.values import key_bytes
from firesteel.state.tables import CurrentKey, Entry, MapAccessors, MapTable

_ONE_BY_ONE = 10_000
"""A map with more entries than that is deleted as a range: too many of those make the rows around them slow to read."""
_NOTHING: dict[Any, Any] = {}


class RocksDBMapTable(RocksDBTable, NativeTable, MapTable):
    def __init__(self, cache: ObjectCache, key_groups: KeyGroups, uid: str, name: str, kind: str) -> None:
        super().__init__(cache, uid, name, kind)
        self._key_groups = key_groups
        self._data: dict[Any, dict[Any, Any]] = {}  # entries that are there
        self._whole: dict[Any, None] = {}  # keys that have no others
        self._dirty: dict[Any, dict[Any, None]] = {}  # key -> map keys that the database has otherwise, or not at all
        self._viewed: Any = self  # the key whose map somebody may be iterating over, so that it stays
        self._held = 0

    # ---- rows

    def _range(self, key: Any) -> bytes:
        return self._prefix(self._key_groups.of(key)) + key_bytes(key)

    def _read(self, key: Any, map_key: Any) -> Any:
        """An entry that is not in memory; MISSING if there is none."""
        dirty = self._dirty.get(key, _NOTHING)
        if map_key in dirty or key in self._whole:
            return MISSING
        data = self._database.get(self._range(key) + encoded_part(map_key, self._name))
        if data is None:
            return MISSING
        value = unpack(data)
        self._data.setdefault(key, {})[map_key] = value
        self._came()
        return value

    def _came(self, entries: int = 1) -> None:
        self._held += entries
        self._cache.came_all(entries)

    def _rows_of(self, key: Any) -> Iterator[Entry]:
        """Map keys and values that are only in the database, and hold there."""
        start = self._range(key)
        dirty = self._dirty.get(key, _NOTHING)
        for row_key, data in self._database.rows(start):
            (_, map_key), value = map_entry(row_key, data)
            if map_key not in dirty:
                yield map_key, value

    def _all(self, key: Any) -> dict[Any, Any]:
        """The whole map, which may be changed through accessors only."""
        self._viewed = key
        known = self._data.get(key, _NOTHING)
        if key in self._whole:
            return known
        content = dict(self._rows_of(key))
        came = len(content.keys() - known.keys())
        content.update(known)
        self._data[key], self._whole[key] = content, None
        self._came(came)
        return content

    # ---- access

    def _note(self, key: Any, map_key: Any) -> None:
        """It differs from what the database has."""
        dirty = self._dirty.setdefault(key, {})
        if map_key not in dirty:
            if not exact(map_key):
                encoded_part(map_key, self._name)  # refuses it here and not at the next barrier
            dirty[map_key] = None
            self._held += 1
            self._cache.room -= 1

    def _clear(self, key: Any) -> None:
        known = self._data.get(key, _NOTHING)
        if key not in self._whole:
            stored = [map_key for map_key, _ in islice(self._rows_of(key), _ONE_BY_ONE)]
            if len(stored) < _ONE_BY_ONE:
                known = {**dict.fromkeys(stored), **known}
            else:
                batch, start = self._database.batch(), self._range(key)
                batch.delete_range(start, after(start))
                self._database.write(batch)
                self._dirty.pop(key, None)
                known = _NOTHING
        for map_key in known:
            self._note(key, map_key)
        self._data.pop(key, None)
        self._whole[key] = None

    def bind(self, current: CurrentKey) -> MapAccessors:
        data, find, read, note, came, whole = self._data, self._data.get, self._read, self._note, self._came, self._all
        dirty_of = self._dirty.get

        def get(map_key: Any) -> Any:
            found = find(current.key, _NOTHING).get(map_key, MISSING)
            if found is MISSING:
                found = read(current.key, map_key)
                return None if found is MISSING else found
            return found

        def put(map_key: Any, value: Any) -> None:
            key = current.key
            if map_key not in dirty_of(key, _NOTHING):
                note(key, map_key)
            found = find(key)
            if found is None:
                found = data[key] = {}
            if map_key in found:
                found[map_key] = value
            else:
                found[map_key] = value
                came()

        def put_all(entries: Mapping[Any, Any] | Iterable[tuple[Any, Any]]) -> None:
            for map_key, value in dict(entries).items():
                put(map_key, value)

        def remove(map_key: Any) -> None:
            key = current.key
            found = find(key, _NOTHING)
            if map_key in found:
                del found[map_key]
            elif key in self._whole:
                return
            note(key, map_key)
            came(0)

        def contains(map_key: Any) -> bool:
            return map_key in find(current.key, _NOTHING) or read(current.key, map_key) is not MISSING

        def keys() -> Collection[Any]:
            return whole(current.key).keys()

        def values() -> Collection[Any]:
            return whole(current.key).values()

        def items() -> Collection[tuple[Any, Any]]:
            return whole(current.key).items()

        def is_empty() -> bool:
            key = current.key
            if find(key):
                return False
            return key in self._whole or next(self._rows_of(key), None) is None

        def clear() -> None:
            self._clear(current.key)
            came(0)

        return MapAccessors(get, put, put_all, remove, contains, keys, values, items, is_empty, clear)

    def scan(self, groups: Container[int] | None = None) -> Iterator[Entry]:
        """What comes after the scan has begun, and is not written back meanwhile, is not in it."""
        self._cache.write_back()
        for group in range(self._key_groups.max_parallelism):
            if groups is None or group in groups:
                for row_key, data in self._database.slices(self._prefix(group)):
                    (key, map_key), value = map_entry(row_key, data)
                    if map_key in self._dirty.get(key, _NOTHING):
                        value = self._data.get(key, _NOTHING).get(map_key, MISSING)
                    if value is not MISSING:
                        yield (key, map_key), value

    def __len__(self) -> int:
        return sum(1 for _ in self.scan())

    def load(self, keys: list[Any], values: list[Any], deleted: list[Any]) -> None:
        current = _Key()
        states = self.bind(current)
        for current.key, (map_keys, parts, removed) in zip(keys, values, strict=True):
            states.put_all(zip(map_keys, parts, strict=True))
            for map_key in removed:
                states.remove(map_key)
        for current.key in deleted:
            states.clear()

    # ---- the cache

    def held(self) -> int:
        return self._held

    def write_back(self, batch: WriteBatch) -> None:
        for key, dirty in self._dirty.items():
            start, found = self._range(key), self._data.get(key, _NOTHING)
            for map_key in dirty:
                row_key = start + encoded_part(map_key, self._name)
                if map_key in found:
                    batch.put(row_key, self._pickled((key, map_key), found[map_key], _pack))
                else:
                    batch.delete(row_key)
        self._dirty.clear()
        self._held = sum(map(len, self._data.values()))

    def evict(self, share: float) -> None:
        goal = self._held * (1 - share)
        for key in list(self._data):
            if self._held <= goal:
                break
            if key == self._viewed:
                continue
            self._held -= len(self._data.pop(key))
        self._whole = dict.fromkeys(key for key in self._whole if key in self._data)


def _pack(entry_key: tuple[Any, Any], value: Any) -> bytes:
    if exact(entry_key):
        return pickle.dumps(value, 5)
    return pickle.dumps((entry_key, value), 5) + b"K"


def map_entry(row_key: bytes, data: bytes) -> tuple[tuple[Any, Any], Any]:
    """The key and map key, and the value, of a row."""
    if data.endswith(b"K"):
        entry_key, value = pickle.loads(data)
        return entry_key, value
    key, at = decoded(row_key, 4)
    return (key, decoded(row_key, at)[0]), pickle.loads(data)


@dataclass
class _Key:
    key: Any = None
