"""Values of windows in RocksDB: a row for each pair of window and key, those of a window and a key group together.

The panes of a window table in memory are tables of their own. Here they are views of one table, because there may be a window
for each key, and a view costs nothing while nobody looks through it.
"""

from __future__ import annotations

import pickle
from collections.abc import Container, Iterator
from typing import Any

from firesteel.graph.keys import KeyGroups, namespaced
from firesteel.state.rocksdb.cache import NativeTable, ObjectCache
from firesteel.state.rocksdb.encoding import decoded, decoded_times, encoded, encoded_window, exact
from firesteel.state.rocksdb.values import RocksDBValueTable
from firesteel.state.tables import Accessors, CurrentKey, Entry, ValueTable
from firesteel.state.windows import WindowTable

CLASS = b"c"


class RocksDBWindowRows(RocksDBValueTable):
    """A value under each namespaced key, ordered by window.

    The class of windows that are pairs of times is noted once for the table; other windows are in their rows.
    """

    def __init__(self, cache: ObjectCache, key_groups: KeyGroups, uid: str, name: str, kind: str) -> None:
        super().__init__(cache, key_groups, uid, name, kind)
        known = self._database.noted(CLASS, self._number)
        self._class: type | None = None if known is None else pickle.loads(known)

    def _row_key(self, key: Any) -> bytes:
        plain, window, _ = key
        return self._prefixes[self._key_groups.of(plain)] + encoded_window(window) + encoded(plain)

    def _packed(self, key: Any, value: Any) -> bytes:
        plain, window, _ = key
        if self._class is None:
            self._class = type(window)
            self._database.note(CLASS, self._number, pickle.dumps(self._class, 5))
        if type(window) is self._class and decoded_times(encoded_window(window)) is not None and exact(plain):
            return pickle.dumps(value, 5)
        return pickle.dumps((key, value), 5) + b"K"

    def _entry(self, row_key: bytes, data: bytes) -> Entry:
        return window_entry(row_key, data, self._class)

    def scan_window(self, window: Any, groups: Container[int] | None = None) -> Iterator[Entry]:
        """The entries of one window, by plain key."""
        self._cache.write_back()
        wanted = encoded_window(window)
        for group, prefix in enumerate(self._prefixes):
            if groups is None or group in groups:
                for key, value in self._scan(prefix + wanted):
                    yield key[0], value

    def windows(self) -> list[Any]:
        self._cache.write_back()
        found: dict[Any, None] = {}
        for prefix in self._prefixes:
            start: bytes | None = prefix
            while start is not None:
                row = next(self._database.rows(prefix, start), None)
                start = None
                if row is not None:
                    window = self._entry(*row)[0][1]
                    found[window] = None
                    start = prefix + encoded_window(window) + b"\xff"
        return list(found)


class RocksDBWindowTable(NativeTable, WindowTable):
    def __init__(self, rows: RocksDBWindowRows) -> None:
        super().__init__(self._never)
        self._rows = rows

    def _never(self) -> ValueTable:
        raise AssertionError("panes are views")

    def pane(self, window: Any) -> ValueTable:
        return _Pane(self._rows, window)

    def windows(self) -> list[Any]:
        return self._rows.windows()

    def get(self, key: Any) -> Any:
        return self._rows.get(key)

    def put(self, key: Any, value: Any) -> None:
        self._rows.put(key, value)

    def delete(self, key: Any) -> None:
        self._rows.delete(key)

    def bind(self, current: CurrentKey) -> Accessors:
        return self._rows.bind(current)

    def scan(self, groups: Container[int] | None = None) -> Iterator[Entry]:
        return self._rows.scan(groups)

    def __len__(self) -> int:
        return len(self._rows)

    def load(self, keys: list[Any], values: list[Any], deleted: list[Any]) -> None:
        self._rows.load(keys, values, deleted)


class _Pane(NativeTable, ValueTable):
    """The values of all keys in one window, by plain key."""

    def __init__(self, rows: RocksDBWindowRows, window: Any) -> None:
        self._rows, self._window = rows, window

    def get(self, key: Any) -> Any:
        return self._rows.get(namespaced(key, self._window))

    def put(self, key: Any, value: Any) -> None:
        self._rows.put(namespaced(key, self._window), value)

    def delete(self, key: Any) -> None:
        self._rows.delete(namespaced(key, self._window))

    def bind(self, current: CurrentKey) -> Accessors:
        window = self._window
        get, put, delete = self._rows.get, self._rows.put, self._rows.delete

        def value() -> Any:
            return get((current.key, window, ...))

        def update(value: Any) -> None:
            if value is None:
                delete((current.key, window, ...))
            else:
                put((current.key, window, ...), value)

        def clear() -> None:
            delete((current.key, window, ...))

        return value, update, clear

    def scan(self, groups: Container[int] | None = None) -> Iterator[Entry]:
        return self._rows.scan_window(self._window, groups)

    def __len__(self) -> int:
        return sum(1 for _ in self.scan())

    def load(self, keys: list[Any], values: list[Any], deleted: list[Any]) -> None:
        window = self._window
        self._rows.load([namespaced(key, window) for key in keys], values, [namespaced(key, window) for key in deleted])


def window_entry(row_key: bytes, data: bytes, kind: type | None) -> Entry:
    """The namespaced key and the value of a row. Windows that are pairs of times are of that class."""
    if data.endswith(b"K"):
        key, value = pickle.loads(data)
        return key, value
    times = decoded_times(row_key[4:21])
    assert times is not None and kind is not None
    return namespaced(decoded(row_key, 21)[0], kind(*times)), pickle.loads(data)
