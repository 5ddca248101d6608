"""What the `print()` sink shows for a record. Checked against PyFlink 2.3 (tests/common/test_display.py).

PyFlink shows an undeclared value with Python's `str`: `('a', 1)`. A declared one has crossed into Java and
looks like Java: `(a,1)`, `true`, `1.0E10`. Only a declared Row is shown by Python after all: `+I[a,1]`, its
fields with `str`.
"""

from __future__ import annotations

import math
from array import array
from datetime import datetime, time, timezone
from decimal import Decimal
from typing import Any

from firesteel.common.time import Instant
from firesteel.common.typeinfo import (
    BasicType,
    BasicTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PickledBytesTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TimeTypeInfo,
    TupleTypeInfo,
    TypeInformation,
)
from firesteel.common.types import Row, RowKind

__all__ = ["java_text", "to_display"]


def to_display(value: Any, type_info: TypeInformation | None = None) -> str:
    """The text of a record of a stream whose declared type is `type_info`, None if nothing was declared.

    A value that is not of its declared type is shown all the same. So are values that PyFlink fails on or
    shows as memory addresses: undeclared bytes, None in a declared tuple, arrays.
    """
    if type_info is None or isinstance(type_info, PickledBytesTypeInfo):
        return str(value)
    if isinstance(type_info, RowTypeInfo) and isinstance(value, Row | tuple | list):
        return f"{_kind(value)}[{','.join(map(str, value))}]"
    return java_text(value, type_info)


def java_text(value: Any, type_info: TypeInformation) -> str:
    """A declared value as Java shows it: what PyFlink's file sink writes."""
    if value is None:
        return "null"
    match type_info, value:
        case TupleTypeInfo(), tuple() | list() | Row():
            return f"({','.join(_fields(value, type_info))})"
        case RowTypeInfo(), tuple() | list() | Row():
            return f"{_kind(value)}[{', '.join(_fields(value, type_info))}]"
        case MapTypeInfo(), dict():
            keys, items = type_info.key_type, type_info.value_type
            entries = (f"{java_text(key, keys)}={java_text(item, items)}" for key, item in value.items())
            return f"{{{', '.join(entries)}}}"
        case (
            ListTypeInfo() | ObjectArrayTypeInfo() | PrimitiveArrayTypeInfo(),
            list() | tuple() | bytes() | bytearray(),
        ):
            return f"[{', '.join(java_text(item, type_info.element_type) for item in value)}]"
        case PickledBytesTypeInfo(), _:
            return str(value)
        case BasicTypeInfo(BasicType.FLOAT), int() | float():
            return _java_double(_shortest(array("f", (value,))[0]))
        case BasicTypeInfo(BasicType.DOUBLE), int():
            return _java_double(float(value))
        case TimeTypeInfo(), time():
            return f"{value:%H:%M:%S}"  # java.sql.Time has no fractions
        case BasicTypeInfo(BasicType.BOOLEAN), _:
            return "true" if value else "false"
    return _java_scalar(value)


def _fields(values: Any, type_info: TupleTypeInfo | RowTypeInfo) -> list[str]:
    fields = zip(values, type_info.field_types, strict=False)
    return [java_text(value, field_type) for value, field_type in fields]


def _kind(value: Any) -> RowKind:
    return value.get_row_kind() if isinstance(value, Row) else RowKind.INSERT


def _java_scalar(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return _java_double(float(value))  # numpy's floats are floats with another repr
        case datetime():
            return f"{value:%Y-%m-%d %H:%M:%S}.{f'{value.microsecond:06d}'.rstrip('0') or '0'}"
        case Instant():
            seconds = datetime.fromtimestamp(value.seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
            nanos = f"{value.nanos:09d}"
            while nanos.endswith("000"):
                nanos = nanos[:-3]
            return f"{seconds}.{nanos}Z" if nanos else f"{seconds}Z"
    return str(value)


def _shortest(value: float) -> float:
    """The number with the fewest digits that is nearer to this float of 32 bits than to any other: 0.1 for the 0.1000000015
    that it is. Java shows two digits at least, and nine are always enough."""
    if not math.isfinite(value):
        return value
    for digits in range(1, 8):
        mantissa, exponent = f"{value:.{digits}e}".split("e")
        last = float(f"1e{int(exponent) - digits}")
        # The next one upwards may do where the nearest does not: below a power of two floats are twice as dense as above.
        for candidate in (
            float(f"{mantissa}e{exponent}"),
            float(f"{value + math.copysign(last, value) / 2:.{digits}e}"),
        ):
            if array("f", (candidate,))[0] == value:
                return candidate
    return float(f"{value:.8e}")


def _java_double(value: float) -> str:
    """Java's notation: scientific outside of [0.001, 10 million), and always with a digit after the point."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    # of numbers for which one digit would do, all below 1E-320, Java shows the nearest with two
    text = repr(value) if abs(value) > 1e-320 else max(f"{value:.1e}", repr(value), key=len)
    sign, digits, exponent = Decimal(text).normalize().as_tuple()
    assert isinstance(exponent, int)
    first, rest = digits[0], "".join(map(str, digits[1:])) or "0"
    return f"{'-' if sign else ''}{first}.{rest}E{exponent + len(digits) - 1}"
