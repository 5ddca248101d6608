"""The hot part of a database as Python objects: how much of it there may be, and what goes when there is too much.

Tables keep their own entries in dicts, so that a hit costs what it costs without a database. What was changed is written
back at a barrier, when a table is scanned, and when the cache is full.
"""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from typing import Any

from rocksdict import WriteBatch

from firesteel.common.crashpoints import crash_point
from firesteel.errors import SerializationError
from firesteel.state.rocksdb.database import Database
from firesteel.state.rocksdb.encoding import PREFIX
from firesteel.state.serializing import unpicklable
from firesteel.state.tables import Entry, Table

_ENTRY_BYTES = 250
"""What an entry takes in memory beside its key and value: places in dicts, and objects' headers."""
_GROWTH = 2.5
"""How much larger objects are than their pickles."""
_LEAST = 64


class Cached(ABC):
    """A table whose entries are partly in memory."""

    @abstractmethod
    def held(self) -> int:
        """How many entries are in memory."""

    @abstractmethod
    def write_back(self, batch: WriteBatch) -> None:
        """Put what changed into a batch that is about to be written; from then on it counts as unchanged."""

    @abstractmethod
    def evict(self, share: float) -> None:
        """Forget that share of the entries, the older ones. None of them is changed."""


class ObjectCache:
    """All tables of a database, and what they may hold together.

    :param size: bytes, about: entries are counted, and how large one is comes from the rows that were written.
    """

    def __init__(self, database: Database, size: int) -> None:
        self.database = database
        self.tables: list[Cached] = []
        self._size = size
        self._rows = self._bytes = 0
        self.capacity = max(_LEAST, size // (2 * _ENTRY_BYTES))
        self.near_timers = max(_LEAST, size // 4 // _ENTRY_BYTES)
        """How many timers of a table may be in memory."""
        self.room = self.capacity
        """How many more entries may come, at least, before it has to be looked at."""

    def came(self) -> None:
        """One more entry is in memory."""
        self.room -= 1
        if self.room < 0:
            self.settle()

    def came_all(self, entries: int) -> None:
        """So many more entries are in memory."""
        self.room -= entries
        if self.room < 0:
            self.settle()

    def settle(self) -> None:
        """Make room if there is too little. No table may be in the middle of something."""
        held = sum(table.held() for table in self.tables)
        if held > self.capacity:
            self.write_back()
            for table in self.tables:
                table.evict(1 - self.capacity / 2 / held)
            held = sum(table.held() for table in self.tables)
        self.room = self.capacity - held

    def write_back(self) -> None:
        """Make the database what the tables are."""
        batch = self.database.batch()
        for table in self.tables:
            table.write_back(batch)
        rows = len(batch)
        if rows:
            self._measure(rows, batch.size_in_bytes())
            self.database.note_sequence(batch)
            self.database.write(batch)
            crash_point("rocksdb-written")

    def _measure(self, rows: int, size: int) -> None:
        self._rows, self._bytes = self._rows // 2 + rows, self._bytes // 2 + size  # what was written last counts most
        self.capacity = max(_LEAST, int(self._size / (_ENTRY_BYTES + _GROWTH * self._bytes / self._rows)))


class NativeTable(Table):
    """A table that is part of every checkpoint because the database is: there are no deltas of it."""

    def barrier(self, checkpoint: int) -> tuple[list[Entry], list[Any]]:
        return [], []

    def completed(self, checkpoint: int) -> None:
        """Nothing is noted."""

    def forget_changes(self) -> None:
        """Nothing is noted."""

    def touch(self) -> None:
        """All of it is in every checkpoint."""


class RocksDBTable(Cached):
    """What the tables of all layouts have in common."""

    def __init__(self, cache: ObjectCache, uid: str, name: str, kind: str) -> None:
        self._cache, self._database = cache, cache.database
        self._uid, self._name, self._kind = uid, name, kind
        self._number = self._database.table((uid, name, kind))
        cache.tables.append(self)

    def _prefix(self, group: int) -> bytes:
        return PREFIX.pack(self._number, group)

    def _pickled(self, key: Any, value: Any, pack: Any) -> bytes:
        """
        :raises SerializationError: it cannot be pickled.
        """
        try:
            data: bytes = pack(key, value)
        except (pickle.PicklingError, TypeError, AttributeError, ValueError, RecursionError) as error:
            raise self._refusal(key, value, error) from error
        return data

    def _refusal(self, key: Any, value: Any, error: Exception) -> SerializationError:
        return unpicklable(self._uid, self._name, self._kind, [key], [value], error)
