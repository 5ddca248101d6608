"""Parquet files, read by row number."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow
import pyarrow.parquet

from firesteel.common.typeinfo import RowTypeInfo
from firesteel.connectors.base import CHUNK
from firesteel.connectors.file_formats import (
    BulkFormat,
    FileReader,
    FileReadError,
    check_unchanged,
    file_size,
)
from firesteel.connectors.rows import MakeRecords, check_row_type, record_maker
from firesteel.errors import ConfigurationError


class ParquetColumnarRowInputFormat(BulkFormat):
    """Rows of Parquet files, as tuples of the chosen `columns` in that order (None: all of the file's).

    With a `row_type` (`Types.ROW_NAMED(...)`, in the place of `columns`) the records are `Row`s with its
    fields. Only the columns asked for are read. A file is shared between subtasks by whole row groups.
    """

    unit = "rows"
    fresh = True

    def __init__(
        self,
        row_type: RowTypeInfo | None = None,
        columns: Sequence[str] | None = None,
        batch_size: int = CHUNK,
    ) -> None:
        if row_type is not None:
            if columns is not None:
                raise ConfigurationError("give ParquetColumnarRowInputFormat either a row_type or columns, not both")
            check_row_type(row_type)
            columns = row_type.get_field_names()
        if columns is not None and (isinstance(columns, str) or not columns):
            raise ConfigurationError(f"columns must be a list of column names or None for all, but is {columns!r}")
        if batch_size < 1:
            raise ConfigurationError(f"batch_size must be at least 1, but is {batch_size}")
        self.row_type = row_type
        self.columns = list(columns) if columns is not None else None
        self.batch_size = batch_size

    def splits(self, path: str, size: int, split_size: int) -> list[tuple[int, int]]:
        """Neighbouring row groups until they have `split_size` compressed bytes. Reads the file's footer."""
        with _open(path, size) as file:
            footer = file.metadata
        splits: list[tuple[int, int]] = []
        start = stop = size_so_far = 0
        for group in map(footer.row_group, range(footer.num_row_groups)):
            stop += group.num_rows
            size_so_far += sum(group.column(i).total_compressed_size for i in range(group.num_columns))
            if size_so_far >= split_size:
                splits.append((start, stop))
                start, size_so_far = stop, 0
        splits.append((start, stop))
        return [(start, stop) for start, stop in splits if start < stop]

    def open(self, path: str, size: int) -> FileReader:
        return ParquetReader(path, size, self.columns, self.batch_size, record_maker(self.row_type))


class ParquetReader(FileReader):
    """One open Parquet file, with the row group that was decoded last.

    An epoch's range rarely ends with a row group. The next one goes on in the same group, so its columns are
    kept, as Arrow memory, until their last row has been given away.
    """

    def __init__(self, path: str, size: int, columns: list[str] | None, batch_size: int, make: MakeRecords) -> None:
        self._path = path
        self._file = _open(path, size)
        self._batch_size = batch_size
        self._make = make
        names = self._file.schema_arrow.names
        missing = [name for name in columns or () if name not in names]
        if missing:
            raise FileReadError(f"file {path!r} has no column {', '.join(missing)}; its columns are {', '.join(names)}")
        self._columns = columns or names
        footer = self._file.metadata
        groups = (footer.row_group(i).num_rows for i in range(footer.num_row_groups))
        self._starts = [
            0,
            *itertools.accumulate(groups),
        ]  # where each row group starts, and where the last one ends
        self._group = -1
        self._table: Any = None

    def read(self, start: int, stop: int) -> Iterator[list[Any]]:
        while start < stop:
            # the last group that starts here or before: empty groups start there too, but come first
            group = bisect.bisect_right(self._starts, start) - 1
            table = self._decoded(group)
            last = min(stop, self._starts[group + 1])
            part = table.slice(start - self._starts[group], last - start)
            for batch in part.to_batches(max_chunksize=self._batch_size):
                yield self._records(batch, start)
                start += batch.num_rows
            if start == self._starts[group + 1]:
                self._group, self._table = -1, None

    def _decoded(self, group: int) -> Any:
        if group != self._group:
            self._table = None  # two decoded groups at once would double the memory
            try:
                # no threads: the other cores have slots of their own, and it measured 30 % slower with them
                table = self._file.read_row_group(group, columns=self._columns, use_threads=False)
            except (pyarrow.ArrowException, OSError) as error:
                raise self._bad_rows(self._starts[group], self._starts[group + 1], error) from error
            self._table = table.select(self._columns)  # a column asked for twice is read once
            self._group = group
        return self._table

    def _records(self, batch: Any, start: int) -> list[Any]:
        try:
            return self._make([column.to_pylist() for column in batch.columns])
        except (pyarrow.ArrowException, ValueError, OverflowError) as error:
            raise self._bad_rows(start, start + batch.num_rows, error) from error

    def _bad_rows(self, start: int, stop: int, error: Exception) -> FileReadError:
        return FileReadError(f"cannot read rows {start} to {stop - 1} of {self._path!r}: {error}")

    def close(self) -> None:
        self._table = None
        self._file.close()


def _open(path: str, size: int) -> Any:
    check_unchanged(path, size, file_size(path))
    try:
        return pyarrow.parquet.ParquetFile(path)
    except (pyarrow.ArrowException, OSError) as error:
        with open(path, "rb") as file:
            begins = file.read(16)
        raise FileReadError(f"{path!r} is not a complete Parquet file: {error}. It begins {begins!r}") from error
