"""A checkpointed database as deltas, like those in state files: for other stores, parallelisms and readers."""

from __future__ import annotations

import pickle
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any

from firesteel.common.storage import Storage
from firesteel.graph.settings import RocksDBSettings
from firesteel.state.files import Delta, everything
from firesteel.state.layouts import TTL
from firesteel.state.origin import FileHandle
from firesteel.state.rocksdb.database import Database, Row, TableName
from firesteel.state.rocksdb.encoding import PREFIX, unpack_entry
from firesteel.state.rocksdb.files import download
from firesteel.state.rocksdb.maps import map_entry
from firesteel.state.rocksdb.timers import timer_of
from firesteel.state.rocksdb.windows import CLASS, window_entry
from firesteel.state.store import WINDOWS
from firesteel.state.tables import Entry

_ENTRIES = 4096
"""As many entries are in a delta, about: the state is not to be in memory as a whole."""


def native_deltas(
    storage: Storage, handles: Sequence[FileHandle], wanted: Callable[[str, int], bool] = everything
) -> Iterator[Delta]:
    """What is in a database's checkpoint of the operator uids and key groups that are wanted. A key's entries may be in
    several deltas that follow each other.

    :raises RestoreError: a file is missing or damaged.
    """
    path = tempfile.mkdtemp(prefix="firesteel-reading-")
    try:
        download(storage, handles, path)
        database = Database(path, RocksDBSettings(block_cache_size=8 << 20), read_only=True)
        try:
            for name, number in database.tables().items():
                yield from _table(database, name, number, wanted)
        finally:
            database.close()
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _table(database: Database, name: TableName, number: int, wanted: Callable[[str, int], bool]) -> Iterator[Delta]:
    entries = _entries_of(database, name, number)
    for group in _groups(database, number):
        if wanted(name[0], group):
            rows = database.rows(PREFIX.pack(number, group))
            for keys, changes in _slices(entries(rows)):
                yield Delta(*name, group, keys, changes, [])


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
