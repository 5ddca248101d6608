"""From records to Arrow columns of a given schema, or an error that names the record and the column."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pyarrow
from pyarrow import types

from firesteel.common.types import Row
from firesteel.errors import TypeMismatchError

SPARK_TYPE = b"spark"
"""Where a field's metadata has the name of its type in Spark."""

_NONE = type(None)


class _MisfitError(Exception):
    """A value that does not fit; `path` is where inside its column, `declared` what it should be."""

    def __init__(self, path: str, value: Any, why: str, declared: str = "") -> None:
        super().__init__(why)
        self.path, self.value, self.declared = path, value, declared


class RecordColumns:
    """Makes tables of records: `Row`s, tuples and lists by position, dicts, dataclasses and `Row`s with names by name.

    Where there is one column, records may also be the bare values. A column that a dict leaves out is null, as in Spark's
    own createDataFrame.
    """

    def __init__(self, schema: pyarrow.Schema) -> None:
        self.schema = schema
        self._names = list(schema.names)
        self._columns = [_Column(field) for field in schema]

    def table(self, records: Sequence[Any]) -> pyarrow.Table:
        """
        :raises TypeMismatchError: a record does not fit.
        """
        rows = self._rows(records)
        arrays = []
        for index, column in enumerate(self._columns):
            values = [row[index] for row in rows]
            try:
                arrays.append(column.array(values))
            except (_MisfitError, pyarrow.ArrowException, ValueError, TypeError, OverflowError) as error:
                raise self._explain(column, values, records, error) from error
        return pyarrow.Table.from_arrays(arrays, schema=self.schema)

    def _rows(self, records: Sequence[Any]) -> list[Sequence[Any]]:
        width = len(self._names)
        if set(map(type, records)) == {tuple} and set(map(len, records)) == {width}:
            return list(records)
        rows = []
        for record in records:
            try:
                rows.append((record,) if width == 1 and _is_bare(record) else _fields(record, self._names))
            except _MisfitError as misfit:
                raise TypeMismatchError(f"the record {record!r:.500} {misfit}", record=record) from None
        return rows

    def _explain(self, column: _Column, values: list[Any], records: Sequence[Any], error: Exception) -> Exception:
        """The first record that does not fit on its own."""
        for record, value in zip(records, values, strict=True):
            try:
                column.array([value])
            except _MisfitError as misfit:
                path, declared, value, why = column.name + misfit.path, misfit.declared, misfit.value, str(misfit)
            except (pyarrow.ArrowException, ValueError, TypeError, OverflowError) as reason:
                path, declared, why = column.name, column.declared, str(reason)
            else:
                continue
            return TypeMismatchError(
                f"the record {record!r:.500} does not fit the schema: column {path} is {declared}, but its value is "
                f"{value!r:.200} ({why})",
                record=record, path=path, value=value, declared=declared,
            )  # fmt: skip
        return error


class _Column:
    """One column, top level. Values of simple types are checked by the set of their types, not one by one."""

    def __init__(self, field: pyarrow.Field) -> None:
        self.name, self.declared = field.name, _declared(field)
        self._kind, self._nullable, self._convert = field.type, field.nullable, _converter(field)
        self._exact = _EXACT.get(field.type.id, frozenset())

    def array(self, values: list[Any]) -> pyarrow.Array:
        seen = set(map(type, values))
        if not self._nullable and _NONE in seen:
            raise _MisfitError("", None, "it must not be null", self.declared)
        if not seen - {_NONE} <= self._exact:
            values = [None if value is None else self._convert(value, "") for value in values]
        return pyarrow.array(values, self._kind)


def _fields(record: Any, names: list[str]) -> Sequence[Any]:
    """A record's values in the order of the columns."""
    if isinstance(record, Row) and record._fields is not None:
        return _by_name(record.as_dict(), names, missing=False)
    if isinstance(record, (Row, tuple, list)):
        if len(record) != len(names):
            raise _MisfitError("", record, f"has {len(record)} fields, and the schema {len(names)}: {', '.join(names)}")
        return record  # type: ignore[return-value]
    if isinstance(record, Mapping):
        return _by_name(record, names, missing=True)
    if dataclasses.is_dataclass(record) and not isinstance(record, type):
        known = {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}
        return _by_name(known, names, missing=False)
    raise _MisfitError("", record, f"is neither a Row, tuple, list, dict nor dataclass with {', '.join(names)}")


def _is_bare(record: Any) -> bool:
    return not isinstance(record, (Row, tuple, list, Mapping)) and not dataclasses.is_dataclass(record)


def _by_name(values: Mapping[Any, Any], names: list[str], *, missing: bool) -> list[Any]:
    unknown = [name for name in values if name not in names]
    if unknown:
        raise _MisfitError("", values, f"has {', '.join(map(str, unknown))}, and the schema only {', '.join(names)}")
    absent = [] if missing else [name for name in names if name not in values]
    if absent:
        raise _MisfitError("", values, f"has no {', '.join(absent)}, which the schema has")
    return [values.get(name) for name in names]


Convert = Callable[[Any, str], Any]
"""From a value that is not None, and its path, to what Arrow takes for it."""


def _declared(field: pyarrow.Field) -> str:
    """A field's type as the user knows it: engine.dataframes notes Spark's name for it."""
    return field.metadata[SPARK_TYPE].decode() if field.metadata else str(field.type)


def _converter(field: pyarrow.Field) -> Convert:
    kind, declared = field.type, _declared(field)
    if types.is_struct(kind):
        return _struct(kind, declared)
    if types.is_map(kind):
        return _map(kind, declared)
    if types.is_list(kind):
        return _list(kind, declared)
    if types.is_timestamp(kind):
        return _timestamp(declared, local=kind.tz is not None)
    accepted, refused = next((accepted, refused) for test, accepted, refused in _ACCEPTED if test(kind))

    def check(value: Any, path: str) -> Any:
        if type(value).__module__ == "numpy":
            value = value.item()
        if not isinstance(value, accepted) or isinstance(value, refused):
            raise _MisfitError(path, value, f"it is of type {type(value).__name__}", declared)
        return value

    return check


def _struct(kind: pyarrow.DataType, declared: str) -> Convert:
    fields = [kind.field(index) for index in range(kind.num_fields)]
    names = [field.name for field in fields]
    converters = [_nullable(field) for field in fields]

    def convert(value: Any, path: str) -> dict[str, Any]:
        try:
            values = _fields(value, names)
        except _MisfitError as misfit:
            raise _MisfitError(path, value, f"it {misfit}", declared) from None
        return {
            name: convert(item, f"{path}.{name}") for name, convert, item in zip(names, converters, values, strict=True)
        }

    return convert


def _map(kind: pyarrow.DataType, declared: str) -> Convert:
    key, item = _nullable(kind.key_field), _nullable(kind.item_field)

    def convert(value: Any, path: str) -> list[tuple[Any, Any]]:
        if not isinstance(value, Mapping):
            raise _MisfitError(path, value, "it is no dict", declared)
        return [(key(k, f"{path} key"), item(v, f"{path}[{k!r:.50}]")) for k, v in value.items()]

    return convert


def _list(kind: pyarrow.DataType, declared: str) -> Convert:
    element = _nullable(kind.value_field)

    def convert(value: Any, path: str) -> list[Any]:
        if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
            raise _MisfitError(path, value, "it is no list", declared)
        return [element(each, f"{path}[{index}]") for index, each in enumerate(value)]

    return convert


def _nullable(field: pyarrow.Field) -> Convert:
    convert, nullable, declared = _converter(field), field.nullable, _declared(field)

    def converted(value: Any, path: str) -> Any:
        if value is None:
            if not nullable:
                raise _MisfitError(path, None, "it must not be null", declared)
            return None
        return convert(value, path)

    return converted


def _timestamp(declared: str, *, local: bool) -> Convert:
    """With a time zone, where a naive datetime is local time as everywhere in PySpark; or without one."""

    def convert(value: Any, path: str) -> datetime.datetime:
        if not isinstance(value, datetime.datetime):
            raise _MisfitError(path, value, f"it is of type {type(value).__name__}", declared)
        if not local and value.tzinfo is not None:
            raise _MisfitError(path, value, "it has a time zone", declared)
        return value.astimezone(datetime.timezone.utc) if local else value

    return convert


_ACCEPTED: list[tuple[Callable[[pyarrow.DataType], bool], tuple[type, ...], tuple[type, ...]]] = [
    (types.is_boolean, (bool,), ()),
    (types.is_integer, (numbers.Integral,), (bool,)),
    (types.is_floating, (numbers.Real,), (bool,)),
    (types.is_decimal, (decimal.Decimal, numbers.Integral), (bool,)),
    (types.is_string, (str,), ()),
    (types.is_binary, (bytes, bytearray), ()),
    (types.is_date, (datetime.date,), (datetime.datetime,)),
    (types.is_null, (), ()),
]
"""What may be in a column, and what not although it is an instance of that: Arrow alone would cut 1.5 down to 1 in a
column of integers, and a datetime down to its date."""

_EXACT: dict[int, frozenset[type]] = {
    pyarrow.bool_().id: frozenset({bool}),
    **{kind.id: frozenset({int}) for kind in (pyarrow.int8(), pyarrow.int16(), pyarrow.int32(), pyarrow.int64())},
    **{kind.id: frozenset({float, int}) for kind in (pyarrow.float32(), pyarrow.float64())},
    pyarrow.string().id: frozenset({str}),
    pyarrow.binary().id: frozenset({bytes}),
    pyarrow.date32().id: frozenset({datetime.date}),
    pyarrow.decimal128(1, 0).id: frozenset({decimal.Decimal}),
}
"""Types of Python whose values need no further look."""
