"""Values in RocksDB: a row for each key.

In memory are two dicts: `fresh` with what was written since the last writing back, and `clean` with what the database has
too. Keys that are known to be absent are in them as well.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from itertools import islice
from typing import Any

from rocksdict import WriteBatch

from firesteel.graph.keys import KeyGroups, group_of
from firesteel.state.rocksdb.cache import NativeTable, ObjectCache, RocksDBTable
from firesteel.state.rocksdb.encoding import encoded, encoded_window, pack, unpack, unpack_entry
from firesteel.state.tables import Accessors, CurrentKey, Entry, ValueTable

_GONE = object()
"""In the place of a value that is not there."""


class RocksDBValueTable(RocksDBTable, NativeTable, ValueTable):
    def __init__(self, cache: ObjectCache, key_groups: KeyGroups, uid: str, name: str, kind: str) -> None:
        super().__init__(cache, uid, name, kind)
        self._key_groups = key_groups
        self._fresh: dict[Any, Any] = {}
        self._clean: dict[Any, Any] = {}
        self._prefixes = [self._prefix(group) for group in range(key_groups.max_parallelism)]

    # ---- rows

    def _row_key(self, key: Any) -> bytes:
        if type(key) is str:  # most are; its bytes serve for the group too, without a lookup in a large dict
            data = encoded(key)
            return self._prefixes[group_of(data, len(self._prefixes))] + data
        return self._prefixes[self._key_groups.of(key)] + key_bytes(key)

    def _entry(self, row_key: bytes, data: bytes) -> Entry:
        return unpack_entry(row_key, 4, data)

    def _packed(self, key: Any, value: Any) -> bytes:
        return pack(key, value)

    def _unpacked(self, data: bytes) -> Any:
        return unpack(data)

    # ---- access

    def _read(self, key: Any) -> Any:
        """What the database has, which is remembered."""
        data = self._database.get(self._row_key(key))
        found = _GONE if data is None else self._unpacked(data)
        self._clean[key] = found
        self._cache.came()
        return found

    def get(self, key: Any) -> Any:
        found = self._fresh.get(key)
        if found is None:
            found = self._clean.get(key)
            if found is None:
                found = self._read(key)
        return None if found is _GONE else found

    def put(self, key: Any, value: Any) -> None:
        self._fresh[key] = value
        if len(self._fresh) > self._cache.capacity:
            self._cache.settle()

    def delete(self, key: Any) -> None:
        self.put(key, _GONE)

    def bind(self, current: CurrentKey) -> Accessors:
        fresh, fresh_get, clean_get, read, cache = (
            self._fresh,
            self._fresh.get,
            self._clean.get,
            self._read,
            self._cache,
        )

        def value() -> Any:
            found = fresh_get(current.key)
            if found is None:
                found = clean_get(current.key)
                if found is None:
                    found = read(current.key)
            return None if found is _GONE else found

        def update(value: Any) -> None:
            fresh[current.key] = _GONE if value is None else value
            if len(fresh) > cache.capacity:
                cache.settle()

        def clear() -> None:
            update(None)

        return value, update, clear

    def fold(
        self, current: CurrentKey, key_of: Callable[[Any], Any], reduce: Callable[[Any, Any], Any]
    ) -> Callable[[Any], Any]:
        """Every new entry is counted by reading it, so nothing has to be looked at when it is written."""
        fresh, fresh_get, clean_get, read = self._fresh, self._fresh.get, self._clean.get, self._read

        def step(record: Any) -> Any:
            current.key = key = key_of(record)
            before = fresh_get(key)
            if before is None:
                before = clean_get(key)
                if before is None:
                    before = read(key)
            fresh[key] = result = record if before is _GONE else reduce(before, record)
            return result

        return step

    def scan(self, groups: Container[int] | None = None) -> Iterator[Entry]:
        """What comes after the scan has begun, and is not written back meanwhile, is not in it."""
        self._cache.write_back()
        for group, prefix in enumerate(self._prefixes):
            if groups is None or group in groups:
                yield from self._scan(prefix)

    def _scan(self, prefix: bytes) -> Iterator[Entry]:
        for row_key, data in self._database.slices(prefix):
            key, value = self._entry(row_key, data)
            value = self._fresh.get(key, value)
            if value is not _GONE:
                yield key, value

    def __len__(self) -> int:
        return sum(1 for _ in self.scan())

    # ---- the cache

    def load(self, keys: list[Any], values: list[Any], deleted: list[Any]) -> None:
        self._fresh.update(zip(keys, values, strict=True))
        self._fresh.update(dict.fromkeys(deleted, _GONE))
        self._cache.settle()

    def held(self) -> int:
        return len(self._fresh) + len(self._clean)

    def write_back(self, batch: WriteBatch) -> None:
        put, delete, row_key = batch.put, batch.delete, self._row_key
        for key, value in self._fresh.items():
            if value is _GONE:
                delete(row_key(key))
            else:
                put(row_key(key), self._pickled(key, value, self._packed))
        self._clean.update(self._fresh)
        self._fresh.clear()

    def evict(self, share: float) -> None:
        clean = self._clean
        for key in list(islice(clean, int(len(clean) * share) + 1)):
            del clean[key]


def key_bytes(key: Any) -> bytes:
    """A key's bytes, with its window's after them if it is of one."""
    if type(key) is tuple and len(key) == 3 and key[2] is ...:
        return encoded(key[0]) + encoded_window(key[1])
    return encoded(key)
