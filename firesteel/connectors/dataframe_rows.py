"""From Parquet to records: rows as a Spark user knows them from `DataFrame.collect()`.

Structs become `Row`s, arrays lists, maps dicts, and timestamps naive datetimes in the local time zone. Timestamps
without a time zone stay as they are.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable
from itertools import starmap
from typing import Any

import pyarrow

from firesteel.common.types import Row
from firesteel.connectors.file_formats import FileReader
from firesteel.connectors.file_parquet import ParquetColumnarRowInputFormat, ParquetReader
from firesteel.connectors.rows import MakeRecords

Convert = Callable[[Any], Any]


class DataFrameFormat(ParquetColumnarRowInputFormat):
    """Parquet files that Spark wrote into the job's directory, as `Row`s with the names of their columns."""

    kept = True

    def open(self, path: str, size: int) -> FileReader:
        return _RowReader(path, size, self.batch_size)


class _RowReader(ParquetReader):
    def __init__(self, path: str, size: int, batch_size: int) -> None:
        super().__init__(path, size, None, batch_size, list)
        self._make = row_maker(self._file.schema_arrow)


def row_maker(schema: pyarrow.Schema) -> MakeRecords:
    """From columns as Arrow gives them to rows."""
    named = Row(*schema.names)
    converters = [_converter(field.type) for field in schema]

    def make(columns: Iterable[Iterable[Any]]) -> list[Any]:
        converted = [
            column if convert is None else map(convert, column)
            for convert, column in zip(converters, columns, strict=True)
        ]
        return list(starmap(named, zip(*converted, strict=True)))

    return make


def _converter(kind: pyarrow.DataType) -> Convert | None:
    """What turns Arrow's Python value of this type into Spark's; None where they are the same."""
    if pyarrow.types.is_struct(kind):
        return _struct(kind)
    if pyarrow.types.is_map(kind):
        key, item = _converter(kind.key_type) or _same, _converter(kind.item_type) or _same
        return lambda pairs: None if pairs is None else {key(k): item(v) for k, v in pairs}
    if pyarrow.types.is_list(kind) or pyarrow.types.is_large_list(kind):
        element = _converter(kind.value_type)
        return element and (lambda values: None if values is None else [element(value) for value in values])
    if pyarrow.types.is_timestamp(kind) and kind.tz is not None:
        return _local
    return None


def _struct(kind: pyarrow.DataType) -> Convert:
    fields = [kind.field(index) for index in range(kind.num_fields)]
    named = Row(*(field.name for field in fields))
    converters = [_converter(field.type) or _same for field in fields]

    def convert(values: dict[str, Any] | None) -> Row | None:
        if values is None:
            return None
        return named(*(convert(value) for convert, value in zip(converters, values.values(), strict=True)))

    return convert


def _local(instant: datetime.datetime | None) -> datetime.datetime | None:
    return None if instant is None else instant.astimezone().replace(tzinfo=None)


def _same(value: Any) -> Any:
    return value
