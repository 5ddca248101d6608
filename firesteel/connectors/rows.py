"""Turning columns of values into the records a format yields: tuples, or `Row`s when a row type is given."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Iterable, Sequence
from itertools import starmap
from typing import Any

from firesteel.common.typeinfo import RowTypeInfo, TypeInformation, Types
from firesteel.common.types import Row
from firesteel.errors import ConfigurationError

MakeRecords = Callable[[Iterable[Iterable[Any]]], "list[Any]"]
"""From columns of equal length to one record per row."""

Convert = Callable[[str], Any]
"""From a text field to a value; ValueError if it is none."""


def record_maker(row_type: RowTypeInfo | None) -> MakeRecords:
    """Tuples when `row_type` is None, else `Row`s with its field names."""
    if row_type is None:
        return lambda columns: list(zip(*columns, strict=True))
    named = Row(*row_type.get_field_names())
    return lambda columns: list(starmap(named, zip(*columns, strict=True)))


def check_row_type(row_type: RowTypeInfo) -> None:
    if not isinstance(row_type, RowTypeInfo):
        raise ConfigurationError(f"row_type must be a Types.ROW_NAMED(names, types), but is {row_type!r}")


def converters(types: Sequence[Any]) -> list[Convert | None]:
    """What makes a text field each of these (TypeInformation, or a function from str); None: stays text."""
    return [_converter(wanted) for wanted in types]


def _converter(wanted: Any) -> Convert | None:
    if isinstance(wanted, TypeInformation) and wanted in _CONVERTERS:
        return _CONVERTERS[wanted]
    if wanted is None or wanted is str:
        return None
    if wanted is bool:
        return parse_bool
    if callable(wanted):
        return wanted  # type: ignore[no-any-return]
    raise ConfigurationError(f"a text field cannot be read as {wanted!r}; give a function from str instead")


def parse_bool(text: str) -> bool:
    """`bool("false")` is True, so text needs its own rule."""
    lower = text.strip().lower()
    if lower in ("true", "1"):
        return True
    if lower in ("false", "0"):
        return False
    raise ValueError(f"neither true nor false: {text!r}")


def parse_decimal(text: str) -> decimal.Decimal:
    try:
        return decimal.Decimal(text)
    except decimal.InvalidOperation as error:  # an ArithmeticError, where the other types raise ValueError
        raise ValueError(f"not a decimal number: {text!r}") from error


_CONVERTERS: dict[TypeInformation, Convert | None] = {
    Types.STRING(): None,
    Types.CHAR(): None,
    Types.BYTE(): int,
    Types.SHORT(): int,
    Types.INT(): int,
    Types.LONG(): int,
    Types.BIG_INT(): int,
    Types.FLOAT(): float,
    Types.DOUBLE(): float,
    Types.BOOLEAN(): parse_bool,
    Types.BIG_DEC(): parse_decimal,
    Types.SQL_DATE(): datetime.date.fromisoformat,
    Types.SQL_TIME(): datetime.time.fromisoformat,
    Types.SQL_TIMESTAMP(): datetime.datetime.fromisoformat,
}
