"""Rows: records whose fields have positions and, if given, names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import Any

__all__ = ["Row", "RowKind"]


class RowKind(Enum):
    """What a row says in a stream of changes."""

    INSERT = 0
    UPDATE_BEFORE = 1
    UPDATE_AFTER = 2
    DELETE = 3

    def __str__(self) -> str:
        return _KIND_SIGNS[self.value]


_KIND_SIGNS = ("+I", "-U", "+U", "-D")
_INSERT = RowKind.INSERT


class Row:
    """A record with fields by position, `row[0]`, and by name if it has names, `row["city"]` or `row.city`.

    `Row("Oslo", 3)` has no names; `Row(city="Oslo", n=3)` has. A row of names is also a template:
    `City = Row("city", "n")` and then `City("Oslo", 3)`.

    Rows can be changed with `row[0] = value` and `row["city"] = value`, and hash by value: do not change one
    that is a key. Equality of named rows ignores the order of the names; unnamed rows equal no named one.
    """

    __slots__ = ("_fields", "_row_kind", "_values")

    _fields: tuple[str, ...] | None
    _row_kind: RowKind
    _values: list[Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if kwargs:
            if args:
                raise ValueError("A Row has either positional values or named ones, not both")
            self._fields = tuple(kwargs)
            self._values = list(kwargs.values())
        else:
            self._fields = None
            self._values = list(args)
        self._row_kind = _INSERT

    @staticmethod
    def of_kind(row_kind: RowKind, *args: Any, **kwargs: Any) -> Row:
        row = Row(*args, **kwargs)
        row._row_kind = row_kind
        return row

    def get_row_kind(self) -> RowKind:
        return self._row_kind

    def set_row_kind(self, row_kind: RowKind) -> None:
        self._row_kind = row_kind

    def set_field_names(self, field_names: Sequence[str]) -> None:
        self._fields = tuple(field_names)

    def get_fields_by_names(self, names: Sequence[str]) -> list[Any]:
        """The values in the order of `names`; all values as they are for a row without names."""
        if self._fields is None or tuple(names) == self._fields:
            return self._values
        return [self[name] for name in names]

    def as_dict(self, recursive: bool = False) -> dict[str, Any]:
        """The fields by name; with `recursive`, rows inside lists, dicts and fields become dicts too."""
        if self._fields is None:
            raise TypeError(f"A Row without field names cannot become a dict: {self!r}")
        values = [_rows_as_dicts(value) for value in self._values] if recursive else self._values
        return dict(zip(self._fields, values, strict=False))

    def __call__(self, *args: Any) -> Row:
        if len(args) > len(self._values):
            raise ValueError(f"The template {self!r} cannot take {len(args)} values: {args!r}")
        row = Row(*args)
        row._fields = tuple(self._values)
        row._row_kind = self._row_kind
        return row

    def __contains__(self, item: object) -> bool:
        return item in (self._values if self._fields is None else self._fields)

    def __getitem__(self, item: int | slice | str) -> Any:
        return self._values[self._position(item) if isinstance(item, str) else item]

    def __setitem__(self, key: int | slice | str, value: Any) -> None:
        self._values[self._position(key) if isinstance(key, str) else key] = value

    def __getattr__(self, item: str) -> Any:
        # Underscored names are never fields here: on a half-built row `_fields` itself does not exist yet.
        if item.startswith("_") or self._fields is None or item not in self._fields:
            raise AttributeError(item)
        return self._values[self._fields.index(item)]

    def _position(self, name: str) -> int:
        if self._fields is None:
            raise KeyError(f"{name!r}: this Row has no field names")
        try:
            return self._fields.index(name)
        except ValueError:
            raise ValueError(f"No field {name!r} in a Row with the fields {list(self._fields)}") from None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Row) or type(self) is not type(other):
            return NotImplemented
        if self._row_kind is not other._row_kind:
            return False
        if self._fields == other._fields:
            return self._values == other._values
        if self._fields is None or other._fields is None or sorted(self._fields) != sorted(other._fields):
            return False
        return self.as_dict() == other.as_dict()

    def __hash__(self) -> int:
        if self._fields is None:
            return hash(tuple(self._values))
        return hash(frozenset(self.as_dict().items()))

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        if self._fields is None:
            return f"<Row({', '.join(map(repr, self._values))})>"
        named = zip(self._fields, self._values, strict=False)
        return f"Row({', '.join(f'{name}={value!r}' for name, value in named)})"

    def __reduce__(self) -> tuple[Callable[..., Row], tuple[Any, ...]]:
        # A copy, because copy.copy(row) comes through here and must not share its values.
        return _restore, (self._fields, self._values.copy(), self._row_kind.value)


def _restore(fields: tuple[str, ...] | None, values: list[Any], kind: int) -> Row:
    row = Row.__new__(Row)
    row._fields = fields
    row._values = values
    row._row_kind = _KINDS[kind]
    return row


_KINDS = tuple(RowKind)


def _rows_as_dicts(value: Any) -> Any:
    if isinstance(value, Row):
        return value.as_dict(True)
    if isinstance(value, list):
        return [_rows_as_dicts(item) for item in value]
    if isinstance(value, dict):
        return {key: _rows_as_dicts(item) for key, item in value.items()}
    return value
