"""One database for everything that a slot keeps under keys: its tables, and the rows that say which tables there are.

It is a working copy. What a slot has to find again is in checkpoints, so nothing here is logged or synced: after a crash the
database is made anew from the checkpoint's files.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from rocksdict import (
    AccessType,
    BlockBasedIndexType,
    BlockBasedOptions,
    Cache,
    Checkpoint,
    DBCompactionStyle,
    DBCompressionType,
    Options,
    Rdict,
    ReadOptions,
    WriteBatch,
    WriteOptions,
)

from firesteel.errors import StateError
from firesteel.graph.settings import RocksDBSettings
from firesteel.state.rocksdb.encoding import PREFIX, after

Row = tuple[bytes, bytes]
TableName = tuple[str, str, str]  # operator uid, name, kind

_CATALOGUE = PREFIX.pack(0, 0)
_SLICE = 512


class Database:
    """A directory with a RocksDB in it, opened."""

    def __init__(self, path: str, settings: RocksDBSettings, *, read_only: bool = False) -> None:
        self.path = path
        self._writing = WriteOptions()
        self._writing.disable_wal = True  # type: ignore[method-assign, assignment]  # its stubs call the property a method
        access = AccessType.read_only(False) if read_only else AccessType.read_write()
        try:
            self._rows = Rdict(path, _options(settings), access_type=access)
        except Exception as error:
            raise StateError(f"the RocksDB in {path} cannot be opened: {error}") from error
        self._rows.set_write_options(self._writing)
        self.get = self._rows.get
        """The value of a row, None if there is none."""
        self.writes = 0
        """How often something was written: whoever read rows before knows by it that they may be old."""
        self._sequence = int.from_bytes(self.get(_CATALOGUE + b"q") or b"", "big")
        self._tables: dict[TableName, int] = {}
        for row_key, value in self.rows(_CATALOGUE + b"t"):
            uid, name, kind = json.loads(value)
            self._tables[uid, name, kind] = int.from_bytes(row_key[5:7], "big")

    # ---- tables

    def tables(self) -> dict[TableName, int]:
        """Those there are, and the numbers that their rows begin with."""
        return dict(self._tables)

    def table(self, name: TableName) -> int:
        """A table's number, the next free one if it is new."""
        number = self._tables.get(name)
        if number is None:
            number = self._tables[name] = max(self._tables.values(), default=0) + 1
            self.note(b"t", number, json.dumps(name).encode())
        return number

    def note(self, what: bytes, number: int, content: bytes) -> None:
        """Remember something about a table."""
        batch = self.batch()
        batch.put(_CATALOGUE + what + number.to_bytes(2, "big"), content)
        self.write(batch)

    def noted(self, what: bytes, number: int) -> bytes | None:
        found: bytes | None = self.get(_CATALOGUE + what + number.to_bytes(2, "big"))
        return found

    def drop(self, name: TableName) -> None:
        """Forget a table and all that is in it."""
        number = self._tables.pop(name)
        batch = self.batch()
        batch.delete_range(PREFIX.pack(number, 0), PREFIX.pack(number + 1, 0))
        for what in (b"t", b"c"):
            batch.delete(_CATALOGUE + what + number.to_bytes(2, "big"))
        self.write(batch)

    def next_sequence(self) -> bytes:
        """A number higher than any before, also in checkpoints that this database was made of."""
        self._sequence += 1
        return self._sequence.to_bytes(8, "big")

    def note_sequence(self, batch: WriteBatch) -> None:
        batch.put(_CATALOGUE + b"q", self._sequence.to_bytes(8, "big"))

    # ---- rows

    def batch(self) -> WriteBatch:
        return WriteBatch(raw_mode=True)

    def write(self, batch: WriteBatch) -> None:
        """Write a batch, all of it or nothing."""
        self.writes += 1
        try:
            self._rows.write(batch, self._writing)
        except Exception as error:
            raise StateError(f"state cannot be written to the RocksDB in {self.path}: {error}") from error

    def rows(self, prefix: bytes, start: bytes | None = None) -> Iterator[Row]:
        """The rows whose keys begin so, from `start` on, as they are now. To be used up at once: it keeps files open."""
        rows: Iterator[Any] = iter(())
        # rocksdict's iterator points into it: it has to be there as long as that, and go after it
        reading = ReadOptions()
        reading.set_iterate_upper_bound(after(prefix))
        rows = self._rows.items(from_key=prefix if start is None else start, read_opt=reading)
        yield from rows

    def slices(self, prefix: bytes) -> Iterator[Row]:
        """The same at leisure: a few rows at a time, and read again if something was written meanwhile."""
        start: bytes | None = prefix
        while start is not None:
            written, some = self.writes, []
            for row in self.rows(prefix, start):
                some.append(row)
                if len(some) == _SLICE:
                    break
            start = None
            if len(some) == _SLICE:
                start = some[-1][0] + b"\0"
            for row in some:
                yield row
                if self.writes != written:
                    start = row[0] + b"\0"
                    break

    def has(self, prefix: bytes) -> bool:
        """Whether there is a row whose key begins so."""
        return next(self.rows(prefix), None) is not None

    # ---- life

    def checkpoint(self, path: str) -> None:
        """Hard links to what the database is now, in a directory that there is not yet."""
        try:
            Checkpoint(self._rows).create_checkpoint(path)
        except Exception as error:
            raise StateError(f"a checkpoint of the RocksDB in {self.path} cannot be taken: {error}") from error

    def memory(self) -> int:
        """Bytes that RocksDB itself takes for what it writes and reads."""
        names = ("rocksdb.cur-size-all-mem-tables", "rocksdb.block-cache-usage", "rocksdb.estimate-table-readers-mem")
        return sum(self._rows.property_int_value(name) or 0 for name in names)

    def close(self) -> None:
        self._rows.close()


def _options(settings: RocksDBSettings) -> Options:
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_max_background_jobs(settings.background_jobs)
    options.set_write_buffer_size(settings.write_buffer_size)
    options.set_max_write_buffer_number(settings.write_buffers)
    options.set_max_manifest_file_size(1 << 18)  # it is part of every checkpoint
    options.set_keep_log_file_num(1)
    options.set_max_log_file_size(1 << 20)
    options.set_max_open_files(settings.open_files)
    options.set_target_file_size_base(settings.target_file_size)
    options.set_max_bytes_for_level_base(settings.level_base_size)
    options.set_level_compaction_dynamic_level_bytes(settings.dynamic_levels)
    options.set_compaction_style(getattr(DBCompactionStyle, settings.compaction_style)())
    options.set_compression_per_level([getattr(DBCompressionType, name)() for name in settings.compression])
    blocks = BlockBasedOptions()
    blocks.set_block_cache(Cache(settings.block_cache_size))
    blocks.set_block_size(settings.block_size)
    # Indexes and filters count as memory of the cache. In one piece they may be larger than what a shard of it takes, and are
    # then read again for every single row.
    blocks.set_index_type(BlockBasedIndexType.two_level_index_search())
    blocks.set_partition_filters(True)
    blocks.set_metadata_block_size(4 << 10)
    blocks.set_cache_index_and_filter_blocks(True)
    blocks.set_pin_top_level_index_and_filter(True)
    blocks.set_pin_l0_filter_and_index_blocks_in_cache(True)
    if settings.bloom_filter_bits:
        blocks.set_bloom_filter(settings.bloom_filter_bits, False)
    options.set_block_based_table_factory(blocks)
    return options
