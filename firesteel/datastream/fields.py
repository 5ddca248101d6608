"""A record's fields, by position (tuples, lists, rows) or by name (rows, named tuples, dicts, attributes of objects).

A plain value is its own field 0.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from firesteel.common.typeinfo import RowTypeInfo, TupleTypeInfo, TypeInformation
from firesteel.common.types import Row
from firesteel.errors import GraphError

Field = int | str


class FieldSelector:
    """A function that gives a record's field; a class, so that it can be pickled."""

    def __init__(self, field: Field) -> None:
        self._field = field

    def __call__(self, value: Any) -> Any:
        return field_of(value, self._field)


class FieldsSelector:
    """A function that gives several fields of a record as a tuple."""

    def __init__(self, fields: Iterable[Field]) -> None:
        self._fields = tuple(fields)

    def __call__(self, value: Any) -> tuple[Any, ...]:
        return tuple([field_of(value, field) for field in self._fields])


def check_field(method: str, field: Any, declared: TypeInformation | None) -> Field:
    """A field as the user gave it, compared with the stream's type if that is declared."""
    if not isinstance(field, (int, str)) or isinstance(field, bool):
        raise GraphError(f"{method}() takes the position (int) or the name (str) of a field, not {field!r:.200}")
    if isinstance(declared, (TupleTypeInfo, RowTypeInfo)):
        count = len(declared.field_types)
        names = declared.get_field_names() if isinstance(declared, RowTypeInfo) else []
        if not (-count <= field < count if isinstance(field, int) else field in names):
            raise GraphError(f"{method}({field!r}): there is no such field in the stream's type {declared!r}")
    return field


def type_of_field(field: Field, declared: TypeInformation | None) -> TypeInformation | None:
    """The type of a checked field; None where it is not declared."""
    if not isinstance(declared, (TupleTypeInfo, RowTypeInfo)):
        return None
    if isinstance(field, str):
        assert isinstance(declared, RowTypeInfo)
        field = declared.get_field_names().index(field)
    return declared.field_types[field]


def field_of(value: Any, field: Field) -> Any:
    """The record's field."""
    if isinstance(value, (Row, dict)):
        return value[field]
    if isinstance(field, int):
        if isinstance(value, (tuple, list)):
            return value[field]
        if field == 0:
            return value
        raise TypeError(
            f"there is no field {field} in {value!r:.200}: it has no positions, so only 0 can be selected, which is the "
            f"value itself"
        )
    try:
        return getattr(value, field)
    except AttributeError:
        raise TypeError(f"there is no field {field!r} in {value!r:.200} of type {type(value).__qualname__}") from None


def with_field(value: Any, field: Field, new: Any) -> Any:
    """A copy of the record with one field replaced."""
    if isinstance(value, tuple):
        named: Any = value
        if hasattr(named, "_replace"):
            return named._replace(**{named._fields[field] if isinstance(field, int) else field: new})
        members: Any = list(value)
        members[field] = new
        return tuple(members)
    if isinstance(value, Row):
        row = Row.of_kind(value.get_row_kind(), *value)
        if value._fields is not None:
            row.set_field_names(value._fields)
        row[field] = new
        return row
    if isinstance(value, (list, dict)):
        changed: Any = copy.copy(value)
        changed[field] = new
        return changed
    if isinstance(field, int):
        return new
    changed = copy.copy(value)
    object.__setattr__(changed, field, new)  # also where the class is frozen: nobody else has the copy yet
    return changed
