"""Whether records are of the type that was declared for their stream, a batch at a time.

A broken declaration would show up far from where it was broken. Accepted is what PyFlink 2.3's coders take
(tests/common/test_typecheck.py), with these differences:

* An INT must be integral: PyFlink's coders cut 1.5 down to 1 without a word. A BOOLEAN is a bool, 0 or 1, and a BIG_DEC a
  Decimal or an int.
* Python's ints do not overflow: 300 passes as a BYTE, which PyFlink cannot encode.
* More containers pass: tuples and lists as a ROW or TUPLE, a Row as a TUPLE, a tuple as a LIST, a list of numbers as an
  array of bytes.
* A tuple or row has exactly as many fields as declared. PyFlink drops those that are too many.

None passes where PyFlink has a null: as a field of a row, an element of a list, an object or basic array, the value of
a map entry, and as an INSTANT. It does not pass as a record, a field of a tuple or the key of a map entry.

What a record becomes by being declared is `conform`'s business.
"""

from __future__ import annotations

import datetime
import decimal
import numbers
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, repeat
from operator import attrgetter
from typing import Any, NamedTuple

from firesteel.common.time import Instant
from firesteel.common.typeinfo import (
    BasicArrayTypeInfo,
    BasicType,
    BasicTypeInfo,
    DateTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
    TupleTypeInfo,
    TypeInformation,
)
from firesteel.common.types import Row
from firesteel.errors import TypeMismatchError

__all__ = ["checker"]

_NONE = type(None)


def checker(type_info: TypeInformation | None) -> Callable[[Sequence[Any]], None] | None:
    """A function that raises TypeMismatchError when one of the records it is given is not of this type.

    None when there is nothing to check: nothing declared, or only that values are pickled.
    """
    shape = _shape(type_info, nullable=False) if type_info is not None else None
    if shape is None:
        return None
    fits = shape.fits

    def check(records: Sequence[Any]) -> None:
        if not fits(records):
            _report(records, shape)

    return check


def _report(records: Sequence[Any], shape: Shape) -> None:
    for index, record in enumerate(records):
        wrong = shape.find(record, "")
        if wrong is not None:
            place = f"field {wrong.path} of " if wrong.path else ""
            raise TypeMismatchError(
                f"{place}the record {record!r:.300} should be {wrong.declared!r}, but is {wrong.value!r:.200} of Python type "
                f"{_name(type(wrong.value))}{wrong.detail}. Convert it in the function that emits it, declare another "
                f"type there (output_type or type_info), or declare none",
                record=record,
                index=index,
                path=wrong.path,
                value=wrong.value,
                declared=wrong.declared,
            )


class Mismatch(NamedTuple):
    """The first wrong value in a record, and where it is."""

    path: str
    value: Any
    declared: TypeInformation
    detail: str = ""


class Shape:
    """One declared type. Batches are checked by the set of their Python types; new ones are examined once and learnt."""

    def __init__(self, type_info: TypeInformation, nullable: bool) -> None:
        self.type_info = type_info
        self.known: set[type] = {_NONE} if nullable else set()
        self.nullable = nullable

    def learn(self, python_type: type) -> bool:
        """Whether values of a type that is not known yet are accepted."""
        raise NotImplementedError

    def typed(self, types: set[type]) -> bool:
        """Whether values of all these types are accepted."""
        known = self.known
        if types <= known:
            return True
        for python_type in types - known:
            if not self.learn(python_type):
                return False
            known.add(python_type)
        return True

    def fits(self, values: Sequence[Any]) -> bool:
        """Whether all values are of the type."""
        return self.typed(set(map(type, values)))

    def find(self, value: Any, path: str) -> Mismatch | None:
        """What is wrong about one value."""
        if self.fits((value,)):
            return None
        return Mismatch(path, value, self.type_info)


class Plain(Shape):
    """A value without parts."""

    def __init__(
        self, type_info: TypeInformation, nullable: bool, exact: tuple[type, ...], more: tuple[type, ...]
    ) -> None:
        super().__init__(type_info, nullable or Instant in exact)
        self.known.update(exact)
        self._bases = exact + more

    def learn(self, python_type: type) -> bool:
        return issubclass(python_type, self._bases)


class Flag(Plain):
    """A boolean: also numpy's, which is no subclass of anything, and the numbers 0 and 1."""

    def learn(self, python_type: type) -> bool:
        name = f"{python_type.__module__}.{python_type.__name__}"
        return super().learn(python_type) or name in ("numpy.bool", "numpy.bool_")

    def fits(self, values: Sequence[Any]) -> bool:
        if self.typed(set(map(type, values))):
            return True
        return self.typed({type(value) for value in values if type(value) is not int or value not in (0, 1)})


class Nested(Shape):
    """A value with parts, which are checked as batches of their own."""

    def fits(self, values: Sequence[Any]) -> bool:
        types = set(map(type, values))
        if not self.typed(types):
            return False
        if _NONE in types:
            types.remove(_NONE)
            values = [value for value in values if value is not None]
        return not values or self.parts_fit(values, types)

    def parts_fit(self, values: Sequence[Any], types: set[type]) -> bool:
        """The same for the parts of values that are of these types."""
        raise NotImplementedError

    def find(self, value: Any, path: str) -> Mismatch | None:
        if self.fits((value,)):
            return None
        if self.typed({type(value)}):
            return self.find_part(value, path)
        return Mismatch(path, value, self.type_info)

    def find_part(self, value: Any, path: str) -> Mismatch | None:
        raise NotImplementedError


class Fields(Nested):
    """Tuples and rows: each field is a column."""

    def __init__(self, type_info: TupleTypeInfo | RowTypeInfo, nullable: bool) -> None:
        super().__init__(type_info, nullable)
        is_row = isinstance(type_info, RowTypeInfo)
        self.fields = [_shape(field_type, nullable=is_row) for field_type in type_info.field_types]
        self.names = tuple(type_info.get_field_names()) if isinstance(type_info, RowTypeInfo) else None
        self.paths = [f"[{i}]" for i in range(len(self.fields))]
        if isinstance(type_info, RowTypeInfo) and type_info.field_names is not None:
            self.paths = [f".{name}" for name in type_info.field_names]
        self.known.update((tuple, list, Row))

    def learn(self, python_type: type) -> bool:
        return issubclass(python_type, tuple)

    def parts_fit(self, values: Sequence[Any], types: set[type]) -> bool:
        if Row in types:
            in_order = self._in_order(values, mixed=len(types) > 1)
            if in_order is None:
                return False
            values = in_order
        try:
            columns = list(zip(*values, strict=True))
        except ValueError:  # not all of one length
            return False
        if len(columns) != len(self.fields):
            return False
        return all(field is None or field.fits(column) for field, column in zip(self.fields, columns, strict=True))

    def _in_order(self, values: Sequence[Any], mixed: bool) -> Sequence[Any] | None:
        """The fields of each row, in the declared order; None if a row has other names than those declared."""
        names = self.names
        if not mixed and (names is None or _all_equal(list(map(_NAMES, values)), (None, names))):
            return list(map(_VALUES, values))
        try:
            return [_fields(value, names) if type(value) is Row else value for value in values]
        except ValueError:
            return None

    def find_part(self, value: Any, path: str) -> Mismatch | None:
        ordered = self._in_order((value,), mixed=False) if type(value) is Row else (value,)
        if ordered is None:
            return Mismatch(path, value, self.type_info, f" with the fields {list(value._fields)}")
        fields = ordered[0]
        if len(fields) != len(self.fields):
            return Mismatch(path, value, self.type_info, f" with {len(fields)} fields instead of {len(self.fields)}")
        for i, field in enumerate(self.fields):
            wrong = field.find(fields[i], path + self.paths[i]) if field is not None else None
            if wrong is not None:
                return wrong
        return None


def _fields(row: Row, names: tuple[str, ...] | None) -> list[Any]:
    return row._values if names is None else row.get_fields_by_names(names)


def _all_equal(values: list[Any], accepted: tuple[Any, ...]) -> bool:
    return values[0] in accepted and values.count(values[0]) == len(values)


_VALUES = attrgetter("_values")
_NAMES = attrgetter("_fields")


class Elements(Nested):
    """Lists and arrays."""

    def __init__(self, type_info: TypeInformation, nullable: bool, element: TypeInformation, nulls: bool) -> None:
        super().__init__(type_info, nullable)
        self.element = _shape(element, nullable=nulls)
        self.known.update((list, tuple))
        if element == BasicTypeInfo(BasicType.BYTE):
            self.known.update((bytes, bytearray))

    def learn(self, python_type: type) -> bool:
        return issubclass(python_type, tuple(self.known - {_NONE}))

    def parts_fit(self, values: Sequence[Any], types: set[type]) -> bool:
        return self.element is None or self.element.fits(list(chain.from_iterable(values)))

    def find_part(self, value: Any, path: str) -> Mismatch | None:
        return _first(value, repeat(self.element), (f"{path}[{i}]" for i in range(len(value))))


class Entries(Nested):
    """Maps."""

    def __init__(self, type_info: MapTypeInfo, nullable: bool) -> None:
        super().__init__(type_info, nullable)
        self.key = _shape(type_info.key_type, nullable=False)
        self.item = _shape(type_info.value_type, nullable=True)
        self.known.add(dict)

    def learn(self, python_type: type) -> bool:
        return issubclass(python_type, dict)

    def parts_fit(self, values: Sequence[Any], types: set[type]) -> bool:
        if self.key is not None and not self.key.fits(list(chain.from_iterable(values))):
            return False
        return self.item is None or self.item.fits(list(chain.from_iterable(value.values() for value in values)))

    def find_part(self, value: Any, path: str) -> Mismatch | None:
        keys = _first(value, repeat(self.key), (f"{path}(key {key!r:.50})" for key in value))
        return keys or _first(value.values(), repeat(self.item), (f"{path}[{key!r:.50}]" for key in value))


def _first(values: Iterable[Any], shapes: Iterable[Shape | None], paths: Iterable[str]) -> Mismatch | None:
    for value, shape, path in zip(values, shapes, paths, strict=False):
        wrong = shape.find(value, path) if shape is not None else None
        if wrong is not None:
            return wrong
    return None


_INTEGRAL = ((int,), (numbers.Integral,))
_REAL = ((float, int), (numbers.Real, decimal.Decimal))
_PLAIN: dict[BasicType, tuple[tuple[type, ...], tuple[type, ...]]] = {
    BasicType.STRING: ((str,), ()),
    BasicType.CHAR: ((str,), ()),
    BasicType.BYTE: _INTEGRAL,
    BasicType.SHORT: _INTEGRAL,
    BasicType.INT: _INTEGRAL,
    BasicType.LONG: _INTEGRAL,
    BasicType.BIG_INT: _INTEGRAL,
    BasicType.FLOAT: _REAL,
    BasicType.DOUBLE: _REAL,
    BasicType.BIG_DEC: ((decimal.Decimal, int), (numbers.Integral,)),
    BasicType.INSTANT: ((Instant,), ()),
}
"""The Python types of each basic type: those to expect, and those that pass as well."""


def _shape(type_info: TypeInformation, nullable: bool) -> Shape | None:
    match type_info:
        case BasicTypeInfo(BasicType.BOOLEAN):
            return Flag(type_info, nullable, (bool,), ())
        case BasicTypeInfo():
            return Plain(type_info, nullable, *_PLAIN[type_info.basic_type])
        case DateTypeInfo():
            return Plain(type_info, nullable, (datetime.date,), ())
        case TimeTypeInfo():
            return Plain(type_info, nullable, (datetime.time,), ())
        case TimestampTypeInfo():
            return Plain(type_info, nullable, (datetime.datetime,), ())
        case TupleTypeInfo() | RowTypeInfo():
            return Fields(type_info, nullable)
        case MapTypeInfo():
            return Entries(type_info, nullable)
        case ListTypeInfo() | ObjectArrayTypeInfo() | BasicArrayTypeInfo():
            return Elements(type_info, nullable, type_info.element_type, nulls=True)
        case PrimitiveArrayTypeInfo():
            return Elements(type_info, nullable, type_info.element_type, nulls=False)
    return None  # anything that can be pickled, or a declaration that is none of ours


def _name(python_type: type) -> str:
    module = python_type.__module__
    return python_type.__qualname__ if module == "builtins" else f"{module}.{python_type.__qualname__}"
