"""Parquet files."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence
from typing import Any, BinaryIO

import pyarrow
import pyarrow.parquet

from firesteel.common.typeinfo import (
    BasicArrayTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
    TypeInformation,
    Types,
)
from firesteel.connectors.dataframe_columns import RecordColumns
from firesteel.connectors.file_bulk import BulkWriter, BulkWriterFactory
from firesteel.errors import ConfigurationError

ROW_GROUP = 64 * 1024
"""Records in memory before they are written."""


class ParquetBulkWriters:
    """Parquet files with a given schema."""

    @staticmethod
    def for_row_type(
        row_type: RowTypeInfo | pyarrow.Schema,
        hadoop_config: Any = None,
        utc_timestamp: bool = False,
        *,
        compression: str = "snappy",
    ) -> BulkWriterFactory:
        """
        :param row_type: a `Types.ROW_NAMED(...)`, or a pyarrow schema for what that cannot say. Records that do not fit fail
            the job.
        :param hadoop_config: accepted, and without effect: there is no Hadoop here.
        :param utc_timestamp: the same: timestamps are written as they are, without a time zone.
        :param compression: any that pyarrow knows.
        """
        if isinstance(row_type, RowTypeInfo):
            names, types = row_type.get_field_names(), row_type.get_field_types()
            schema = pyarrow.schema([(name, arrow_type(kind, name)) for name, kind in zip(names, types, strict=True)])
        elif isinstance(row_type, pyarrow.Schema):
            schema = pyarrow.schema([field.remove_metadata() for field in row_type])
        else:
            raise ConfigurationError(
                f"ParquetBulkWriters takes a Types.ROW_NAMED(...) or a pyarrow schema, not {row_type!r:.200}"
            )
        for field in schema:
            _check(field)
        if not _known(compression):
            raise ConfigurationError(
                f"pyarrow does not know the compression {compression!r}; there is 'zstd', 'none', ..."
            )
        return _ParquetFactory(schema, compression)


@dataclasses.dataclass(frozen=True)
class _ParquetFactory(BulkWriterFactory):
    schema: pyarrow.Schema
    compression: str

    def create(self, out: BinaryIO) -> BulkWriter:
        return _ParquetWriter(out, self.schema, self.compression)


class _ParquetWriter(BulkWriter):
    def __init__(self, out: BinaryIO, schema: pyarrow.Schema, compression: str) -> None:
        self._columns = RecordColumns(schema)
        self._file = pyarrow.parquet.ParquetWriter(out, schema, compression=compression)
        self._waiting: list[pyarrow.Table] = []
        self._rows = 0

    def add_element(self, element: Any) -> None:
        self.add_elements([element])

    def add_elements(self, elements: Sequence[Any]) -> None:
        self._waiting.append(self._columns.table(elements))
        self._rows += len(elements)
        if self._rows >= ROW_GROUP:
            self.flush()

    def flush(self) -> None:
        if self._waiting:
            self._file.write_table(pyarrow.concat_tables(self._waiting), row_group_size=2 * ROW_GROUP)
            self._waiting, self._rows = [], 0

    def finish(self) -> None:
        self.flush()
        self._file.close()

    def discard(self) -> None:
        self._waiting = []
        with contextlib.suppress(pyarrow.ArrowException, OSError, ValueError):
            self._file.close()


_BASIC: dict[TypeInformation, pyarrow.DataType] = {
    Types.STRING(): pyarrow.string(),
    Types.CHAR(): pyarrow.string(),
    Types.BOOLEAN(): pyarrow.bool_(),
    Types.BYTE(): pyarrow.int8(),
    Types.SHORT(): pyarrow.int16(),
    Types.INT(): pyarrow.int32(),
    Types.LONG(): pyarrow.int64(),
    Types.FLOAT(): pyarrow.float32(),
    Types.DOUBLE(): pyarrow.float64(),
    Types.BIG_INT(): pyarrow.decimal128(38, 0),
    Types.BIG_DEC(): pyarrow.decimal128(38, 18),
    Types.SQL_DATE(): pyarrow.date32(),
    Types.SQL_TIMESTAMP(): pyarrow.timestamp("us"),
    Types.PRIMITIVE_ARRAY(Types.BYTE()): pyarrow.binary(),
}


def arrow_type(declared: TypeInformation, name: str) -> pyarrow.DataType:
    """
    :raises ConfigurationError: a column cannot be of that type.
    """
    if declared in _BASIC:
        return _BASIC[declared]
    if isinstance(declared, (ListTypeInfo, ObjectArrayTypeInfo, PrimitiveArrayTypeInfo, BasicArrayTypeInfo)):
        return pyarrow.list_(arrow_type(declared.element_type, f"{name}[]"))
    if isinstance(declared, MapTypeInfo):
        return pyarrow.map_(arrow_type(declared.key_type, f"{name} key"), arrow_type(declared.value_type, f"{name}[]"))
    if isinstance(declared, (RowTypeInfo, TupleTypeInfo)):
        types = declared.get_field_types()
        names = (
            declared.get_field_names() if isinstance(declared, RowTypeInfo) else [f"f{i}" for i in range(len(types))]
        )
        return pyarrow.struct(
            [(each, arrow_type(kind, f"{name}.{each}")) for each, kind in zip(names, types, strict=True)]
        )
    raise ConfigurationError(
        f"a Parquet file cannot have a column of type {declared!r}: {name}. Map it to a number or string, or declare it"
    )


def _known(compression: str) -> bool:
    try:
        return compression.lower() == "none" or bool(pyarrow.Codec.is_available(compression.lower()))
    except (ValueError, AttributeError):
        return False


def _check(field: pyarrow.Field) -> None:
    """Say now, not in a slot, that records cannot be made to fit."""
    try:
        RecordColumns(pyarrow.schema([field]))
    except (StopIteration, KeyError):
        raise ConfigurationError(
            f"the Parquet column {field.name} cannot be written: there is no conversion from records to {field.type}"
        ) from None
