"""A checkpointed database as deltas, like those in state files: for other stores, parallelisms and readers."""

from __future__ import annotations

import contextlib
import pickle
import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any

from xxhash import xxh3_64

from firesteel.common.storage import Storage
from firesteel.graph.settings import RocksDBSettings
from firesteel.state.chains import ROCKSDB
from firesteel.state.files import Delta, everything
from firesteel.state.layouts import TTL
from firesteel.state.origin import FileHandle
from firesteel.state.rocksdb.database import Database, Row, TableName
from firesteel.state.rocksdb.directories import LocalDirectory
from firesteel.state.rocksdb.encoding import PREFIX, unpack_entry
from firesteel.state.rocksdb.files import download
from firesteel.state.rocksdb.maps import map_entry
from firesteel.state.rocksdb.timers import timer_of
from firesteel.state.rocksdb.windows import CLASS, window_entry
from firesteel.state.store import WINDOWS
from firesteel.state.tables import Entry

_ENTRIES = 4096
"""As many entries are in a delta, about: the state is not to be in memory as a whole."""


class CheckpointedDatabase:
    """A database as a checkpoint has it, opened for reading."""

    def __init__(self, database: Database) -> None:
        self._database, self._tables = database, database.tables()

    def places(self) -> Iterator[tuple[TableName, int]]:
        """The tables and their key groups that have something in them."""
        for name, number in self._tables.items():
            for group in _groups(self._database, number):
                yield name, group

    def deltas(self, name: TableName, group: int) -> Iterator[Delta]:
        """A table's key group. A key's entries may be in several deltas that follow each other."""
        if (number := self._tables.get(name)) is not None:
            rows = self._database.rows(PREFIX.pack(number, group))
            for keys, changes in _slices(_entries_of(self._database, name, number)(rows)):
                yield Delta(*name, group, keys, changes, [])

    def block(self, name: TableName, group: int) -> list[Any] | None:
        """How large a table's key group is, as a footer of a state file would have it, of which it is no part: entries are
        rows. Nothing is unpickled. Where checksums are equal, so is what they are of. None: there is nothing in it."""
        if name not in self._tables:
            return None
        size = entries = 0
        hashed = xxh3_64()
        for row_key, value in self._database.rows(PREFIX.pack(self._tables[name], group)):
            entries += 1
            size += len(row_key) + len(value)
            hashed.update(b"%d %d " % (len(row_key), len(value)) + row_key + value)
        return [group, ROCKSDB, 0, size, entries, hashed.hexdigest()] if entries else None

    def footer(self) -> dict[str, Any]:
        """What the footer of a state file with the same content would say, as far as readers ask for it."""
        states = []
        for name, places in groupby(self.places(), lambda place: place[0]):
            blocks = [self.block(name, group) for _, group in places]
            states.append({"uid": name[0], "name": name[1], "kind": name[2], "blocks": blocks})
        return {"states": states}


@contextlib.contextmanager
def open_checkpointed(
    storage: Storage, handles: Sequence[FileHandle], on_read: Callable[[int], None] | None = None
) -> Iterator[CheckpointedDatabase]:
    """A database's checkpoint, in a directory for temporary files. If this process is killed, the next reader removes it.

    :param on_read: called once in a while; that a file is here says nothing about how much of it has been read.
    :raises RestoreError: a file is missing or damaged.
    """
    directory = LocalDirectory.create(tempfile.gettempdir(), "reading", 0)
    try:
        directory.sweep()
        download(storage, handles, directory.database, on_restored=on_read and (lambda size: on_read(0)))
        database = Database(directory.database, RocksDBSettings(block_cache_size=8 << 20), read_only=True)
        try:
            yield CheckpointedDatabase(database)
        finally:
            database.close()
    finally:
        directory.remove()


def native_deltas(
    storage: Storage,
    handles: Sequence[FileHandle],
    wanted: Callable[[str, int], bool] = everything,
    on_read: Callable[[int], None] | None = None,
) -> Iterator[Delta]:
    """What is in a database's checkpoint of the operator uids and key groups that are wanted. A key's entries may be in
    several deltas that follow each other.

    :param on_read: told how much was read, key group by key group: the files' size in all.
    :raises RestoreError: a file is missing or damaged.
    """
    size, told = sum(handle["size"] for handle in handles), 0
    with open_checkpointed(storage, handles, on_read) as database:
        places = [(name, group) for name, group in database.places() if wanted(name[0], group)]
        for done, (name, group) in enumerate(places, 1):
            yield from database.deltas(name, group)
            if on_read is not None:
                share = size * done // len(places)
                on_read(share - told)
                told = share
    if on_read is not None and told < size:
        on_read(size - told)


def _groups(database: Database, number: int) -> Iterator[int]:
    """Those that there are rows of."""
    table = PREFIX.pack(number, 0)[:2]
    row = next(database.rows(table), None)
    while row is not None:
        group = PREFIX.unpack_from(row[0])[1]
        yield group
        row = next(database.rows(table, PREFIX.pack(number, group + 1)), None) if group < 0xFFFF else None


def _slices(entries: Iterator[Entry]) -> Iterator[tuple[list[Any], list[Any]]]:
    keys: list[Any] = []
    changes: list[Any] = []
    for key, change in entries:
        keys.append(key)
        changes.append(change)
        if len(keys) >= _ENTRIES:
            yield keys, changes
            keys, changes = [], []
    if keys:
        yield keys, changes


def _entries_of(database: Database, name: TableName, number: int) -> Callable[[Iterator[Row]], Iterator[Entry]]:
    """What turns a table's rows into keys and changes as layouts.py describes them."""
    kind = name[2]
    if kind.endswith(WINDOWS):
        noted = database.noted(CLASS, number)
        window = None if noted is None else pickle.loads(noted)
        return lambda rows: (window_entry(row_key, data, window) for row_key, data in rows)
    if kind == "timers":
        return lambda rows: ((key, ((time,), ())) for time, key in map(timer_of, rows))
    layout = kind.removesuffix(TTL)
    if layout == "map":
        return _maps
    if layout == "list":
        return _lists
    return lambda rows: (unpack_entry(row_key, 4, data) for row_key, data in rows)


def _maps(rows: Iterator[Row]) -> Iterator[Entry]:
    entries = (map_entry(row_key, data) for row_key, data in rows)
    for key, found in groupby(entries, lambda entry: entry[0][0]):
        for map_keys, values in _slices((entry_key[1], value) for entry_key, value in found):
            yield key, (tuple(map_keys), tuple(values), ())


def _lists(rows: Iterator[Row]) -> Iterator[Entry]:
    entries = (unpack_entry(row_key, 4, data) for row_key, data in rows)
    for key, found in groupby(entries, lambda entry: entry[0]):
        start = 0
        for _, elements in found:
            yield key, (start, elements)
            start += len(elements)
