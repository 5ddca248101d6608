"""Timers in RocksDB: those that are due soon are in memory, as in any store, and all others are rows, ordered by time.

A moment divides the two, the horizon. Timers before it are in memory and in state files, timers from it on are in the
database, and none is in both. When those in memory are used up, the next ones come from the database and the horizon moves on;
when they are too many, the later ones go there and it moves back. Timers of one moment are never divided.
"""

from __future__ import annotations

import heapq
from collections.abc import Container, Iterator
from typing import Any

from rocksdict import WriteBatch

from firesteel.graph.keys import KeyGroups
from firesteel.state.rocksdb.cache import ObjectCache, RocksDBTable
from firesteel.state.rocksdb.database import Row
from firesteel.state.rocksdb.encoding import pack, unpack_entry
from firesteel.state.rocksdb.values import key_bytes
from firesteel.state.tables import CurrentKey, Entry
from firesteel.state.timers import MAX_TIME, Register, TimerTable, whole_time

_MIDDLE = 1 << 63
_NEVER = MAX_TIME + 1
_TIME = slice(4, 12)  # of a row key


class RocksDBTimerTable(RocksDBTable, TimerTable):
    def __init__(self, cache: ObjectCache, key_groups: KeyGroups, uid: str, name: str) -> None:
        TimerTable.__init__(self, key_groups)
        RocksDBTable.__init__(self, cache, uid, name, "timers")
        self._horizon = _NEVER
        self._far: dict[tuple[int, Any], bool] = {}  # timers that came to the database, and that went, not written yet
        self._sending = False
        self._came = 0  # to memory, since they were last counted
        self._fetch()

    def bind(self, current: CurrentKey) -> Register:
        near = super().bind(current)

        def register(timestamp: int) -> None:
            timestamp = whole_time(timestamp)
            if timestamp < self._horizon or timestamp > MAX_TIME:
                near(timestamp)
                self._came += 1
                if self._came > self._cache.near_timers:
                    self._spill()
            else:
                self._note(current.key, timestamp, True)

        return register

    def delete(self, key: Any, timestamp: int) -> None:
        if timestamp < self._horizon or timestamp > MAX_TIME:
            super().delete(key, timestamp)
        else:
            self._note(key, timestamp, False)

    def _note(self, key: Any, timestamp: int, there: bool) -> None:
        self._far[timestamp, key] = there
        self._cache.came()

    def _drop(self, timestamp: int) -> None:
        super()._drop(timestamp)
        self._fetch_if_empty()

    # ---- moving the horizon

    def _fetch_if_empty(self) -> None:
        if not self._due and self._horizon != _NEVER and not self._sending:
            self._fetch()

    def _fetch(self) -> None:
        """Take the next ones into memory, which has none."""
        self._cache.write_back()
        batch = self._database.batch()
        near = super().bind(current := _Key())
        taken, last = 0, None
        for row in heapq.merge(*self._rows_by_group(), key=lambda row: row[0][_TIME]):
            timestamp, key = timer_of(row)
            if taken and taken >= self._cache.near_timers // 2 and timestamp != last:
                self._horizon = timestamp
                break
            current.key, last = key, timestamp
            near(timestamp)
            batch.delete(row[0])
            taken += 1
        else:
            self._horizon = _NEVER
        if taken:
            self._database.write(batch)
        self._came = taken

    def _rows_by_group(self, groups: Container[int] | None = None) -> list[Iterator[Row]]:
        wanted = (group for group in range(self._key_groups.max_parallelism) if groups is None or group in groups)
        prefixes = (self._prefix(group) for group in wanted)
        return [self._database.rows(prefix) for prefix in prefixes if self._database.has(prefix)]

    def _spill(self) -> None:
        """There may be too many in memory: leave half of what there may be, and at least one moment's."""
        self._came = sum(map(len, self._due.values()))
        if self._came <= self._cache.near_timers:
            return
        left = 0
        for timestamp in sorted(self._due):
            if left and left + len(self._due[timestamp]) > self._cache.near_timers // 2:
                self._horizon = timestamp
                break
            left += len(self._due[timestamp])
        self._send_away()
        self._came = left

    def _send_away(self) -> None:
        """What is in memory and beyond the horizon goes to the database."""
        self._sending = True
        for timestamp in [timestamp for timestamp in self._due if self._horizon <= timestamp <= MAX_TIME]:
            for key in list(self._due[timestamp]):
                TimerTable.delete(self, key, timestamp)
                self._far[timestamp, key] = True
        self._sending = False
        self._cache.came_all(len(self._far))
        self._fetch_if_empty()

    # ---- all of them

    def scan(self, groups: Container[int] | None = None) -> Iterator[Entry]:
        self._cache.write_back()
        yield from super().scan(groups)
        for rows in self._rows_by_group(groups):
            for timestamp, key in list(map(timer_of, rows)):
                yield (key, timestamp), None

    def __len__(self) -> int:
        return sum(1 for _ in self.scan())

    def load(self, keys: list[Any], values: list[Any], deleted: list[Any]) -> None:
        """Into memory first, wherever they belong, so that the next delta says of those that do not stay that they went."""
        self._note_fresh()  # what has come from the database or gone there since it was opened is in no state file
        near = super().bind(current := _Key())
        for current.key, (registered, removed) in zip(keys, values, strict=True):
            for timestamp in registered:
                near(timestamp)
            for timestamp in removed:
                if timestamp in self._due:
                    TimerTable.delete(self, current.key, timestamp)
                if timestamp >= self._horizon:
                    self._far[timestamp, current.key] = False
        self._forget_fresh()
        self._send_away()
        self._spill()

    # ---- the cache

    def held(self) -> int:
        return len(self._far)

    def write_back(self, batch: WriteBatch) -> None:
        of, far = self._key_groups.of, self._far
        for (timestamp, key), there in far.items():
            row_key = self._prefix(of(key)) + (timestamp + _MIDDLE).to_bytes(8, "big") + key_bytes(key)
            if there:
                batch.put(row_key, self._pickled(key, None, pack))
            else:
                batch.delete(row_key)
        far.clear()

    def evict(self, share: float) -> None:
        """Whatever is in memory has to be there."""


def timer_of(row: Row) -> tuple[int, Any]:
    """The time and key that a row stands for."""
    row_key, data = row
    return int.from_bytes(row_key[_TIME], "big") - _MIDDLE, unpack_entry(row_key, 12, data)[0]


class _Key:
    key: Any = None
