"""The key that a program gives to `key_by` or to a join: a function, a field, or several fields."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

from firesteel.common.typeinfo import RowTypeInfo, TupleTypeInfo, TypeInformation, Types
from firesteel.datastream.fields import Field, FieldSelector, FieldsSelector, check_field, type_of_field
from firesteel.datastream.functions import KeySelector
from firesteel.errors import GraphError

Selector = Callable[[Any], Any] | KeySelector | Field | Sequence[Field]


def check_key_type(method: str, key_type: Any) -> TypeInformation | None:
    """The type of a key as the user gave it."""
    if key_type is not None and not isinstance(key_type, TypeInformation):
        raise GraphError(
            f"{method}(): key_type must be a TypeInformation such as Types.STRING(), not {key_type!r:.200}. Several fields "
            f"are given as a list: [0, 1]"
        )
    return key_type


def key_selection(
    given: Any, key_type: Any, declared: TypeInformation | None
) -> tuple[Callable[[Any], Any] | KeySelector, TypeInformation | None]:
    """What gives a record's key, and the key's type if it is known.

    :param declared: the type of the records.
    """
    key_type = check_key_type("key_by", key_type)
    if isinstance(given, (int, str, list, tuple)):
        fields = [
            check_field("key_by", each, declared) for each in (given if isinstance(given, (list, tuple)) else [given])
        ]
        return _selector(fields, declared), key_type or _type(fields, declared)
    if not isinstance(given, KeySelector) and not callable(given):
        raise GraphError(
            f"key_by() takes a KeySelector, a function or the position or name of a field, not {given!r:.200}"
        )
    return given, key_type


def _selector(fields: list[Field], declared: TypeInformation | None) -> Callable[[Any], Any]:
    if not fields:
        raise GraphError("key_by() takes at least one field")
    indexed = declared is None or isinstance(declared, (TupleTypeInfo, RowTypeInfo))
    if indexed and all(isinstance(field, int) for field in fields):
        return itemgetter(*fields)  # of all ways the fastest, and called twice for each record
    return FieldSelector(fields[0]) if len(fields) == 1 else FieldsSelector(fields)


def _type(fields: list[Field], declared: TypeInformation | None) -> TypeInformation | None:
    types = [known for field in fields if (known := type_of_field(field, declared)) is not None]
    if len(types) < len(fields):
        return None
    return types[0] if len(types) == 1 else Types.TUPLE(types)
