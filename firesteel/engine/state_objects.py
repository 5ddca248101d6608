"""From a DataFrame's columns to the Python objects that a state holds.

Spark's types say less than Python's: a struct may have been a tuple, a Row or a dataclass. So an object of the state that is
replaced is the pattern, where there is one; without it structs whose fields are `_1`, `_2`, ... become tuples, and others
Rows.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
from collections.abc import Callable
from typing import Any

from pyspark.sql import types as spark

from firesteel.common.types import Row
from firesteel.engine.state_types import field_names, fields_of, position_names
from firesteel.errors import StateError

Make = Callable[[Any], Any]
"""From a value as Arrow gives it to the object; None stays None."""

_CLASSES: list[tuple[tuple[type[spark.DataType], ...], type]] = [
    ((spark.BooleanType,), bool),
    ((spark.ByteType, spark.ShortType, spark.IntegerType, spark.LongType), int),
    ((spark.FloatType, spark.DoubleType), float),
    ((spark.StringType, spark.CharType, spark.VarcharType), str),
    ((spark.BinaryType,), bytes),
    ((spark.DecimalType,), decimal.Decimal),
    ((spark.TimestampType, spark.TimestampNTZType), datetime.datetime),
    ((spark.DateType,), datetime.date),
]


class _OtherError(Exception):
    """What the column would become, which is not what the state holds."""


def maker(kind: spark.DataType, pattern: Any, alike: bool, column: str, what: str, parameter: str) -> Make:
    """What makes the objects of a column.

    :param pattern: one of the objects that there are already.
    :param alike: there are such objects, so what a struct was must not be guessed.
    :param parameter: of the writer, that takes a function instead.
    :raises StateError: the column cannot become such objects.
    """
    try:
        return _maker(kind, pattern, alike)
    except _OtherError as other:
        raise StateError(
            f"{what} holds {pattern!r:.200} (a {type(pattern).__name__}), and the DataFrame's column {column} is "
            f"{kind.simpleString()}: {other}. Cast the column, or give {parameter}=<function> that makes the objects of its "
            f"values, or read the state with pickled=True and write the column {column}_pickle"
        ) from None


def _maker(kind: spark.DataType, pattern: Any, alike: bool) -> Make:
    if isinstance(kind, spark.NullType):
        return _same
    if isinstance(kind, spark.StructType):
        return _struct(kind, pattern, alike)
    if isinstance(kind, spark.ArrayType):
        return _array(kind, pattern, alike)
    if isinstance(kind, spark.MapType):
        return _map(kind, pattern, alike)
    if isinstance(kind, spark.DecimalType) and type(pattern) is int and kind.scale == 0:
        return _nullable(int)
    made = next((cls for kinds, cls in _CLASSES if isinstance(kind, kinds)), None)
    if made is None:
        raise StateError(f"a column of the type {kind.simpleString()} cannot become state. Cast it to a plain type")
    if pattern is not None and type(pattern) is not made:
        raise _OtherError(f"it would become a {made.__name__}")
    if isinstance(pattern, datetime.datetime):
        aware = isinstance(kind, spark.TimestampType)
        if aware != (pattern.utcoffset() is not None):
            raise _OtherError(f"it would become a datetime {'with' if aware else 'without'} a time zone")
    return _utc if isinstance(kind, spark.TimestampType) else _same


def _struct(kind: spark.StructType, pattern: Any, alike: bool) -> Make:
    if pattern is None and alike:
        raise _OtherError("what its structs are made of cannot be told from that one")
    names = tuple(kind.names)
    expected = field_names(pattern) if pattern is not None else names
    if not expected:
        raise _OtherError("it would become a record")
    if sorted(expected) != sorted(names):
        raise _OtherError(f"it has the fields {', '.join(names)} and not {', '.join(expected)}")
    patterns = dict(zip(expected, fields_of(pattern), strict=True)) if pattern is not None else {}
    makers = {field.name: _maker(field.dataType, patterns.get(field.name), alike) for field in kind.fields}
    build = _builder(pattern, expected)

    def make(value: Any) -> Any:
        return None if value is None else build([makers[name](value[name]) for name in expected])

    return make


def _builder(pattern: Any, names: tuple[str, ...]) -> Callable[[list[Any]], Any]:
    """From the fields' values to a record like the pattern."""
    cls = type(pattern)
    if pattern is None:
        cls = tuple if names == position_names(len(names)) else Row
    if cls is tuple:
        return tuple
    if issubclass(cls, Row):
        if names == position_names(len(names)):
            return lambda values: Row(*values)
        named = Row(*names)
        return lambda values: named(*values)
    if issubclass(cls, tuple):
        return lambda values: cls(*values)
    assert dataclasses.is_dataclass(cls)
    initial = [field.name for field in dataclasses.fields(cls) if field.init]
    if tuple(initial) != names:
        raise _OtherError(f"a {cls.__name__} cannot be made of its fields alone")
    return lambda values: cls(**dict(zip(names, values, strict=True)))


def _array(kind: spark.ArrayType, pattern: Any, alike: bool) -> Make:
    cls: Any = list if pattern is None else type(pattern)
    if cls not in (list, tuple, set, frozenset):
        raise _OtherError("it would become a list")
    element = _maker(kind.elementType, next((each for each in pattern or () if each is not None), None), alike)
    return lambda values: None if values is None else cls(map(element, values))


def _map(kind: spark.MapType, pattern: Any, alike: bool) -> Make:
    if pattern is not None and type(pattern) is not dict:
        raise _OtherError("it would become a dict")
    key, item = next(iter((pattern or {}).items()), (None, None))
    make_key, make_item = _maker(kind.keyType, key, alike), _maker(kind.valueType, item, alike)
    return lambda pairs: None if pairs is None else {make_key(k): make_item(v) for k, v in pairs}


def _nullable(make: Make) -> Make:
    return lambda value: None if value is None else make(value)


def _utc(value: Any) -> Any:
    return None if value is None else value.astimezone(datetime.timezone.utc)


def _same(value: Any) -> Any:
    return value
