"""What declaring a type does to a record, as crossing into Java does in PyFlink.

A tuple or list declared as a ROW becomes a `Row` with the declared field names, a list or Row declared as a TUPLE becomes
a tuple, a FLOAT is rounded to 32 bits, and an int declared as a FLOAT or DOUBLE becomes a float. Whether the record fits
its type at all is `typecheck`'s business. Batches that need no change are found out by column and passed on as they are.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

from firesteel.common.typeinfo import BasicType, BasicTypeInfo, RowTypeInfo, TupleTypeInfo, TypeInformation
from firesteel.common.types import Row

__all__ = ["conformer"]


def conformer(type_info: TypeInformation | None) -> Callable[[list[Any]], list[Any]] | None:
    """A function that makes a batch of records what they are declared as; None when the type changes nothing."""
    shape = _shape(type_info)
    if shape is None:
        return None
    conforms, convert = shape.conforms, shape.convert
    return lambda values: values if conforms(values) else [convert(value) for value in values]


class _Double:
    def conforms(self, values: Sequence[Any]) -> bool:
        return set(map(type, values)) <= {float, type(None)}

    def convert(self, value: Any) -> Any:
        return None if value is None else float(value)


class _Float:
    def conforms(self, values: Sequence[Any]) -> bool:
        return False

    def convert(self, value: Any) -> Any:
        return None if value is None else array("f", (value,))[0]


class _Fields:
    """Tuples and rows: by field."""

    def __init__(self, type_info: TupleTypeInfo | RowTypeInfo) -> None:
        self._fields = [(index, _shape(field)) for index, field in enumerate(type_info.field_types)]
        self._changing = [(itemgetter(index), shape) for index, shape in self._fields if shape is not None]

    def conforms(self, values: Sequence[Any]) -> bool:
        return all(shape.conforms(list(map(get, values))) for get, shape in self._changing)

    def _convert_fields(self, value: Any) -> list[Any]:
        fields = list(value)
        for index, shape in self._fields:
            if shape is not None:
                fields[index] = shape.convert(fields[index])
        return fields


class _Tuple(_Fields):
    def conforms(self, values: Sequence[Any]) -> bool:
        return all(issubclass(kind, tuple) for kind in set(map(type, values))) and super().conforms(values)

    def convert(self, value: Any) -> Any:
        return None if value is None else tuple(self._convert_fields(value))


class _Row(_Fields):
    def __init__(self, type_info: RowTypeInfo) -> None:
        super().__init__(type_info)
        self._names = tuple(type_info.get_field_names())

    def conforms(self, values: Sequence[Any]) -> bool:
        return (
            set(map(type, values)) == {Row}
            and {value._fields for value in values} == {self._names}
            and super().conforms(values)
        )

    def convert(self, value: Any) -> Any:
        if value is None:
            return None
        if isinstance(value, Row):
            row = Row.of_kind(value.get_row_kind(), *self._convert_fields(value.get_fields_by_names(self._names)))
        else:
            row = Row(*self._convert_fields(value))
        row.set_field_names(self._names)
        return row


_Shape = _Double | _Float | _Tuple | _Row
_BASIC: dict[BasicType, _Shape] = {BasicType.FLOAT: _Float(), BasicType.DOUBLE: _Double()}


def _shape(type_info: TypeInformation | None) -> _Shape | None:
    if isinstance(type_info, BasicTypeInfo):
        return _BASIC.get(type_info.basic_type)
    if isinstance(type_info, RowTypeInfo):
        return _Row(type_info)
    if isinstance(type_info, TupleTypeInfo):
        return _Tuple(type_info)
    return None
