"""A record's fields, by position (tuples, lists, rows) or by name (rows, named tuples, dicts, attributes of objects).

A plain value is its own field 0. Only `key_by(0)` on a stream whose type is not declared takes `value[0]` of whatever comes:
it is called twice for each record, and asking every time what it is given would take longer than all the rest of it.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from operator import itemgetter
from typing import Any

from firesteel.common.typeinfo import BasicTypeInfo, RowTypeInfo, TupleTypeInfo, TypeInformation
from firesteel.common.types import Row
from firesteel.errors import GraphError, InvalidKeyError

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
    elif isinstance(declared, BasicTypeInfo) and isinstance(field, int) and field != 0:
        raise GraphError(
            f"{method}({field!r}): there is no such field in the stream's type {declared!r}, whose values have no positions: "
            f"only 0 can be selected, which is the value itself"
        )
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
    by_position = isinstance(field, int)
    if isinstance(value, (Row, dict)) or (by_position and isinstance(value, (tuple, list))):
        try:
            return value[field]  # type: ignore[index]
        except (LookupError, ValueError):
            raise _no_field(value, field) from None
    if by_position:
        if field == 0:
            return value
        raise TypeError(
            f"there is no field {field} in {value!r:.200}: it has no positions, so only 0 can be selected, which is the "
            f"value itself"
        )
    try:
        return getattr(value, str(field))
    except AttributeError:
        raise TypeError(f"there is no field {field!r} in {value!r:.200} of type {type(value).__qualname__}") from None


def _no_field(value: Any, field: Field) -> TypeError:
    names = list(value) if isinstance(value, dict) else getattr(value, "_fields", None) or []
    if names and not isinstance(field, int):
        has = f"the fields {', '.join(map(repr, names)):.200}"
    else:
        has = f"{len(value)} field{'' if len(value) == 1 else 's'}, the first of them 0"
    return TypeError(f"there is no field {field!r} in {value!r:.200}, which has {has}")


def taken_fields(selector: Any) -> tuple[Any, ...]:
    """The fields that an `itemgetter` takes; none of other selectors."""
    return selector.__reduce__()[1] if isinstance(selector, itemgetter) else ()  # type: ignore[return-value]


def explain_key(selector: Any, value: Any) -> InvalidKeyError | None:
    """Why `key_by(0)` or `key_by(0, 1)` cannot take a record's key; None if they can, or if it is another selector."""
    fields = taken_fields(selector)
    if not fields or not all(isinstance(field, int) for field in fields):
        return None
    try:
        selector(value)
        return None
    except (TypeError, LookupError):
        pass
    try:
        for field in fields:
            field_of(value, field)
    except TypeError as error:
        return InvalidKeyError(f"the record has no key: {error}")
    return InvalidKeyError(
        f"the key is field {fields[0]} of a record, and the record {value!r:.200} of type {type(value).__qualname__} has no "
        f"fields. To take the value itself for the key, write key_by(lambda value: value), or declare the stream's type"
    )


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
