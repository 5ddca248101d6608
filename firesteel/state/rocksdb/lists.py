"""Lists in RocksDB: rows with some elements each, numbered in the order in which they were written.

Adding to a list needs nothing of what is there: the new elements become one more row. A list that is read is read whole.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from typing import Any

from rocksdict import WriteBatch

from firesteel.graph.keys import KeyGroups
from firesteel.state.layouts import merge
from firesteel.state.rocksdb.cache import NativeTable, ObjectCache, RocksDBTable
from firesteel.state.rocksdb.encoding import pack, unpack, unpack_entry
from firesteel.state.rocksdb.values import key_bytes
from firesteel.state.tables import CurrentKey, Entry, ListAccessors, ListTable, elements_of, no_none

_ROW_ELEMENTS = 1024
_MANY_ROWS = 32
"""A list that is in memory is put into fewer rows when it has so many, with few elements in each."""


class RocksDBListTable(RocksDBTable, NativeTable, ListTable):
    def __init__(self, cache: ObjectCache, key_groups: KeyGroups, uid: str, name: str, kind: str) -> None:
        super().__init__(cache, uid, name, kind)
        self._key_groups = key_groups
        self._data: dict[Any, list[Any]] = {}  # lists that have been read
        self._rows: dict[Any, list[bytes]] = {}  # and the row keys they have in the database
        self._dirty: dict[Any, int] = {}  # and from which index on the database has them otherwise
        self._tails: dict[Any, list[Any]] = {}  # elements that were added to lists that have not been read
        self._held = 0

    def _range(self, key: Any) -> bytes:
        return self._prefix(self._key_groups.of(key)) + key_bytes(key)

    def _came(self, elements: int = 1) -> None:
        self._held += elements
        self._cache.came_all(elements)

    def _read(self, key: Any) -> list[Any]:
        """The list, in memory from now on."""
        found: list[Any] = []
        rows = self._rows[key] = []
        for row_key, data in self._database.rows(self._range(key)):
            rows.append(row_key)
            found += unpack(data)
        came = len(found) + 1
        tail = self._tails.pop(key, None)
        if tail is not None:
            self._dirty[key] = len(found)
            found += tail
        self._data[key] = found
        self._came(came)
        return found

    def _replace(self, key: Any, new: list[Any]) -> None:
        if key not in self._data:
            self._read(key)
        if key not in self._data:  # it was put out again at once: there is no room for it
            self._rows[key] = [row_key for row_key, _ in self._database.rows(self._range(key))]
        self._data[key], self._dirty[key] = new, 0
        self._came(len(new))

    def bind(self, current: CurrentKey) -> ListAccessors:
        find, dirty, tails = self._data.get, self._dirty, self._tails
        read, replace, came = self._read, self._replace, self._came

        def get() -> tuple[Any, ...]:
            found = find(current.key)
            return tuple(read(current.key) if found is None else found)

        def add_all(values: Iterable[Any]) -> None:
            new = elements_of(values)
            if new:
                key = current.key
                found = find(key)
                if found is None:
                    tails.setdefault(key, []).extend(new)
                else:
                    dirty.setdefault(key, len(found))
                    found += new
                came(len(new))

        def add(value: Any) -> None:
            if value is None:
                raise no_none()
            add_all((value,))

        def update(values: Iterable[Any]) -> None:
            replace(current.key, elements_of(values))

        def clear() -> None:
            replace(current.key, [])

        return ListAccessors(get, add, add_all, update, clear)

    def scan(self, groups: Container[int] | None = None) -> Iterator[Entry]:
        """A list as it is when its first element's turn comes. Lists that come after the scan has begun, and are not written
        back meanwhile, are not in it."""
        self._cache.write_back()
        for group in range(self._key_groups.max_parallelism):
            if groups is None or group in groups:
                last: Any = self  # no key
                for row_key, data in self._database.slices(self._prefix(group)):
                    key = unpack_entry(row_key, 4, data)[0]
                    if key != last:
                        last = key
                        for index, element in enumerate(self._peek(key)):
                            yield (key, index), element

    def _peek(self, key: Any) -> list[Any]:
        """A copy of the list, which does not come into memory by it."""
        found = self._data.get(key)
        if found is not None:
            return list(found)
        elements = [element for _, data in self._database.rows(self._range(key)) for element in unpack(data)]
        return elements + self._tails.get(key, [])

    def __len__(self) -> int:
        return sum(1 for _ in self.scan())

    def load(self, keys: list[Any], values: list[Any], deleted: list[Any]) -> None:
        for key, change in zip(keys, values, strict=True):
            content = {key: self._peek(key)}
            merge("list", content, [key], [change], [])
            self._replace(key, content.get(key, []))
        for key in deleted:
            self._replace(key, [])

    # ---- the cache

    def held(self) -> int:
        return self._held

    def write_back(self, batch: WriteBatch) -> None:
        for key, tail in self._tails.items():
            self._append(batch, key, tail)
        for key, start in self._dirty.items():
            found, rows = self._data[key], self._rows[key]
            if start and len(rows) >= _MANY_ROWS and len(found) < len(rows) * _ROW_ELEMENTS // 2:
                start = 0
            if start == 0:
                for row_key in rows:
                    batch.delete(row_key)
                rows.clear()
            rows += self._append(batch, key, found[start:])
        self._tails.clear()
        self._dirty.clear()
        self._held = sum(map(len, self._data.values())) + len(self._data)

    def _append(self, batch: WriteBatch, key: Any, elements: list[Any]) -> list[bytes]:
        start, rows = self._range(key), []
        for index in range(0, len(elements), _ROW_ELEMENTS):
            rows.append(start + self._database.next_sequence())
            batch.put(rows[-1], self._pickled(key, tuple(elements[index : index + _ROW_ELEMENTS]), pack))
        return rows

    def evict(self, share: float) -> None:
        goal = self._held * (1 - share)
        for key in list(self._data):
            if self._held <= goal:
                break
            self._held -= len(self._data.pop(key)) + 1
            del self._rows[key]
