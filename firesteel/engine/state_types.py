"""What type of Spark a column of Python objects has: found out from all of them, or declared."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from pyspark.sql import types as spark

from firesteel.common import typeinfo
from firesteel.common.types import Row
from firesteel.errors import ConfigurationError, StateError

REPR = "repr"
"""In the place of a type: the column shows objects as `repr()` does."""

_LEAVES: dict[type, str] = {
    bool: "boolean",
    float: "double",
    str: "string",
    bytes: "binary",
    datetime.date: "date",
}
_SIMPLE: dict[str, spark.DataType] = {
    "void": spark.NullType(),
    "boolean": spark.BooleanType(),
    "bigint": spark.LongType(),
    "double": spark.DoubleType(),
    "string": spark.StringType(),
    "binary": spark.BinaryType(),
    "date": spark.DateType(),
    "timestamp": spark.TimestampType(),
    "timestamp_ntz": spark.TimestampNTZType(),
}
_LARGEST = 2**63
_DIGITS = 38


@dataclass(frozen=True)
class Shape:
    """What is known of some values: a kind, the kinds of their parts, and one of the values."""

    kind: str = "void"  # a type of Spark, void for nothing but None, huge for integers beyond 64 bits, or misfit
    parts: tuple[Shape, ...] = ()
    names: tuple[str, ...] = ()
    digits: tuple[int, int] = (0, 0)  # of a decimal: before and after the point
    of: str = ""  # the class of what is a struct in Spark
    example: str = ""

    @property
    def misfit(self) -> str | None:
        """Why no type of Spark has room for all the values; None if one has."""
        if self.kind == "misfit":
            return self.example
        return next((part.misfit for part in self.parts if part.misfit is not None), None)

    def spark_type(self) -> spark.DataType:
        parts = [part.spark_type() for part in self.parts]
        if self.kind == "struct":
            return spark.StructType(
                [spark.StructField(name, part) for name, part in zip(self.names, parts, strict=True)]
            )
        if self.kind == "array":
            return spark.ArrayType(_known(parts[0]))
        if self.kind == "map":
            return spark.MapType(_known(parts[0]), _known(parts[1]))
        if self.kind == "huge":
            return spark.DecimalType(_DIGITS, 0)
        if self.kind == "decimal":
            return spark.DecimalType(max(1, sum(self.digits)), self.digits[1])
        return _SIMPLE[self.kind]


VOID = Shape()


def _known(part: spark.DataType) -> spark.DataType:
    """Of elements that there are none of, nobody will ask; but not all formats can store a column without a type."""
    return spark.StringType() if isinstance(part, spark.NullType) else part


def _misfit(why: str) -> Shape:
    return Shape("misfit", example=why)


def unite(one: Shape, other: Shape) -> Shape:
    """The shape of all values that have one or the other."""
    if one.kind == "void" or other.kind == "misfit":
        return other
    if other.kind == "void" or one.kind == "misfit":
        return one
    if {one.kind, other.kind} == {"bigint", "huge"}:
        return one if one.kind == "huge" else other
    if (one.kind, one.names, one.of) != (other.kind, other.names, other.of):
        return _misfit(f"there are both {one.example} and {other.example}")
    digits = max(one.digits[0], other.digits[0]), max(one.digits[1], other.digits[1])
    if sum(digits) > _DIGITS:
        return _misfit(f"{one.example} and {other.example} together take more than {_DIGITS} digits")
    parts = tuple(unite(mine, others) for mine, others in zip(one.parts, other.parts, strict=True))
    return Shape(one.kind, parts, one.names, digits, one.of, one.example)


def shape_of(values: Sequence[Any]) -> Shape:
    """The shape of these values, found by the set of their types where that is enough."""
    types = set(map(type, values)) - {type(None)}
    if not types:
        return VOID
    first = next(value for value in values if value is not None)
    if len(types) > 1:
        other = next(value for value in values if value is not None and type(value) is not type(first))
        return _misfit(f"there are both {_shown(first)} and {_shown(other)}")
    there = [value for value in values if value is not None]
    cls = types.pop()
    if cls in _LEAVES:
        return Shape(_LEAVES[cls], example=_shown(first))
    if cls is int:
        return _integers(there)
    if cls is decimal.Decimal:
        return _decimals(there)
    if cls is datetime.datetime:
        return _instants(there)
    if cls is list:
        elements = shape_of(list(chain.from_iterable(there)))
        return Shape("array", (elements,), example=_shown(first))
    if cls is dict:
        keys = shape_of(list(chain.from_iterable(there)))
        return Shape(
            "map", (keys, shape_of([item for value in there for item in value.values()])), example=_shown(first)
        )
    return _records(there, first)


def _integers(values: Sequence[int]) -> Shape:
    largest = max(max(values), -min(values) - 1)
    if largest < _LARGEST:
        return Shape("bigint", example=_shown(values[0]))
    if len(str(largest)) > _DIGITS:
        return _misfit(f"there is {_shown(max(values, key=abs))}, which has more than {_DIGITS} digits")
    return Shape("huge", example=_shown(max(values, key=abs)))


def _decimals(values: Sequence[decimal.Decimal]) -> Shape:
    before = after = 0
    for value in values:
        _, digits, exponent = value.as_tuple()
        if not isinstance(exponent, int):
            return _misfit(f"there is {_shown(value)}, for which Spark's decimals have no room")
        before, after = max(before, len(digits) + exponent), max(after, -exponent)
        if before + after > _DIGITS:
            return _misfit(f"there is {_shown(value)}, with which it takes more than {_DIGITS} digits")
    return Shape("decimal", digits=(before, after), example=_shown(values[0]))


def _instants(values: Sequence[datetime.datetime]) -> Shape:
    kinds = {value.utcoffset() is None for value in values}
    if len(kinds) > 1:
        return _misfit("there are datetimes with and without a time zone")
    return Shape("timestamp_ntz" if kinds.pop() else "timestamp", example=_shown(values[0]))


def _records(values: Sequence[Any], first: Any) -> Shape:
    """Tuples, rows and dataclasses: a struct, if all have the same fields."""
    names = field_names(first)
    if not names:
        return _misfit(f"there is {_shown(first)}, for which Spark has no type")
    for value in values:
        if field_names(value) != names:
            return _misfit(f"there are both {_shown(first)} and {_shown(value)}")
    fields = [fields_of(value) for value in values]
    parts = tuple(shape_of(column) for column in zip(*fields, strict=True))
    cls = type(first)
    return Shape("struct", parts, names, of=f"{cls.__module__}.{cls.__qualname__}", example=_shown(first))


def field_names(record: Any) -> tuple[str, ...]:
    """The fields of a record: `_1`, `_2`, ... as Spark calls them where they have no names. None for what is no record."""
    if isinstance(record, Row):
        return record._fields or position_names(len(record))
    if isinstance(record, tuple):
        named = getattr(record, "_fields", None) or _WINDOW_FIELDS.get(type(record).__name__)
        return tuple(named or position_names(len(record)))
    if dataclasses.is_dataclass(record) and not isinstance(record, type):
        return tuple(field.name for field in dataclasses.fields(record))
    return ()


_WINDOW_FIELDS = {"TimeWindow": ("start", "end"), "CountWindow": ("id",)}


def fields_of(record: Any) -> Sequence[Any]:
    if isinstance(record, (Row, tuple)):
        return record  # type: ignore[return-value]
    return [getattr(record, field.name) for field in dataclasses.fields(record)]


def position_names(count: int) -> tuple[str, ...]:
    return tuple(f"_{index + 1}" for index in range(count))


def _shown(value: Any) -> str:
    return f"{value!r:.100} (a {type(value).__name__})"


# -- declared types ------------------------------------------------------------------------------------------

_BASIC: dict[typeinfo.BasicType, spark.DataType] = {
    typeinfo.BasicType.STRING: spark.StringType(),
    typeinfo.BasicType.CHAR: spark.StringType(),
    typeinfo.BasicType.BOOLEAN: spark.BooleanType(),
    typeinfo.BasicType.BYTE: spark.ByteType(),
    typeinfo.BasicType.SHORT: spark.ShortType(),
    typeinfo.BasicType.INT: spark.IntegerType(),
    typeinfo.BasicType.LONG: spark.LongType(),
    typeinfo.BasicType.FLOAT: spark.FloatType(),
    typeinfo.BasicType.DOUBLE: spark.DoubleType(),
    typeinfo.BasicType.BIG_INT: spark.DecimalType(38, 0),
    typeinfo.BasicType.BIG_DEC: spark.DecimalType(38, 18),
}

Declared = spark.DataType | str | None
"""A type of Spark, REPR, or None: to be found out."""


def declared_type(given: Any, parameter: str) -> Declared:
    """A type as the user gave it: DDL, a type of Spark, one of `Types`, or "repr".

    :raises ConfigurationError: it is none of these.
    """
    if given is None or isinstance(given, spark.DataType):
        return given
    if isinstance(given, typeinfo.PickledBytesTypeInfo):
        return None
    if isinstance(given, typeinfo.TypeInformation):
        return _from_type_info(given, parameter)
    if not isinstance(given, str) or not given.strip():
        raise ConfigurationError(
            f"{parameter} is a type in DDL such as 'BIGINT' or 'name STRING, age INT', a pyspark DataType, one of Types, or "
            f"'repr', not {given!r:.200}"
        )
    if given.strip().lower() == REPR:
        return REPR
    try:
        return spark.DataType.fromDDL(given)
    except Exception as error:
        raise ConfigurationError(
            f"{parameter}={given!r} is not a type that Spark understands. Write it like 'BIGINT', 'ARRAY<STRING>' or "
            f"'name STRING, age INT', or 'repr' to see objects as text"
        ) from error


def _from_type_info(given: typeinfo.TypeInformation, parameter: str) -> spark.DataType:
    if isinstance(given, typeinfo.BasicTypeInfo) and given.basic_type in _BASIC:
        return _BASIC[given.basic_type]
    if isinstance(given, typeinfo.DateTypeInfo):
        return spark.DateType()
    if isinstance(given, typeinfo.TimestampTypeInfo):
        return spark.TimestampNTZType()
    if isinstance(given, typeinfo._ElementsTypeInfo):
        return spark.ArrayType(_from_type_info(given.element_type, parameter))
    if isinstance(given, typeinfo.MapTypeInfo):
        return spark.MapType(_from_type_info(given.key_type, parameter), _from_type_info(given.value_type, parameter))
    if isinstance(given, (typeinfo.TupleTypeInfo, typeinfo.RowTypeInfo)):
        types = [_from_type_info(part, parameter) for part in given.field_types]
        named = given.get_field_names() if isinstance(given, typeinfo.RowTypeInfo) and given.field_names else None
        names = named or position_names(len(types))
        return spark.StructType([spark.StructField(name, part) for name, part in zip(names, types, strict=True)])
    raise ConfigurationError(
        f"{parameter}={given!r}: Spark has no type for it. Give 'repr' to see such objects as text"
    )


def check_fits(shape: Shape, column: str, parameter: str, what: str) -> spark.DataType:
    """The type of a column whose values have this shape.

    :raises StateError: there is none.
    """
    if shape.misfit is not None:
        raise StateError(
            f"the {column}s of {what} are not of one type: {shape.misfit}. Give {parameter}='repr' to see them as text, with "
            f"pickled=True for the objects themselves besides, or {parameter}=<a type> that has room for all of them"
        )
    return shape.spark_type()
