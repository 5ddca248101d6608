"""The canonical encoding of keys, and the key groups it leads to.

State outlives the process that wrote it, so where a key's state lives must not depend on `hash()`, on pickle or on which
of several equal objects was used. Two rules make that so:

* keys that are equal in Python encode equal: `1`, `1.0`, `True` and `Decimal(1)` are one key, as they are in a dict;
* what cannot be encoded that way (NaN, objects compared by identity, mutable containers) is refused.

The bytes: one tag, then the value. Strings, bytes and integers carry their length, so a tuple is the concatenation of
its members' encodings and no two different keys share an encoding.
"""

from __future__ import annotations

import dataclasses
import datetime
import enum
import math
import numbers
import struct
import uuid
from typing import Any

from xxhash import xxh3_64_intdigest

from firesteel.common.types import Row
from firesteel.errors import InvalidKeyError

_DOUBLE = struct.Struct(">d")
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_NAIVE_EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)


def encode_key(key: Any) -> bytes:
    """The canonical bytes of a key, the same on every machine and in every version.

    :raises InvalidKeyError: the key has no canonical form; the message says which part of it and what to use instead.
    """
    return _encode(key, key)


def namespaced(key: Any, namespace: Any) -> tuple[Any, ...]:
    """What stands in a key's place for state of a part of it, such as one of its windows. It has the key's group.

    No key is equal to it, because Ellipsis has no canonical form. A plain tuple, since it is made for every record.
    """
    return (key, namespace, ...)


def _sized(tag: bytes, payload: bytes) -> bytes:
    return tag + len(payload).to_bytes(4, "big") + payload


def _encode(part: Any, whole: Any) -> bytes:
    if part is None:
        return b"n"
    if isinstance(part, str):
        return _sized(b"s", str.encode(part, "utf-8", "surrogatepass"))
    if isinstance(part, bytes):
        return _sized(b"b", bytes(part))
    if isinstance(part, enum.Enum) and not isinstance(part, numbers.Number):
        return _sized(b"e", f"{_type_name(part)}.{part.name}".encode())
    if isinstance(part, numbers.Number) or hasattr(part, "as_integer_ratio"):
        return _encode_number(part, whole)
    if isinstance(part, tuple):
        return _sized(b"t", b"".join(_encode(member, whole) for member in part))
    if isinstance(part, Row):
        return _sized(b"r", b"".join(_encode(member, whole) for member in part))
    if isinstance(part, frozenset):
        return _sized(b"f", b"".join(sorted(_encode(member, whole) for member in part)))
    if isinstance(part, uuid.UUID):
        return b"u" + part.bytes
    if isinstance(part, (datetime.date, datetime.time, datetime.timedelta)):
        return _encode_time(part)
    if _is_value_class(part):
        values = (getattr(part, field.name) for field in dataclasses.fields(part) if field.compare)
        name = _type_name(part).encode()
        return _sized(b"c", _sized(b"s", name) + b"".join(_encode(value, whole) for value in values))
    raise _refusal(part, whole, "it has no canonical form")


def _encode_number(part: Any, whole: Any) -> bytes:
    """Integral values as integers, others as the double they equal exactly, the rest as a reduced fraction."""
    if isinstance(part, numbers.Complex) and not isinstance(part, numbers.Real):
        raise _refusal(part, whole, "complex numbers have no canonical form")
    try:
        numerator, denominator = part.as_integer_ratio()
    except (ValueError, OverflowError):  # NaN and the infinities have no ratio
        value = float(part)
        if math.isnan(value):
            raise _refusal(part, whole, "NaN is not equal to itself, so its state could never be found again") from None
        return b"d" + _DOUBLE.pack(value)
    except AttributeError:
        raise _refusal(part, whole, "it is a number without an exact ratio") from None
    numerator, denominator = int(numerator), int(denominator)
    if denominator == 1:
        return _sized(b"i", _integer(numerator))
    try:
        value = numerator / denominator
        if value.as_integer_ratio() == (numerator, denominator):
            return b"d" + _DOUBLE.pack(value)
    except OverflowError:
        pass  # too large for a double: the fraction below is exact
    return _sized(b"q", _sized(b"i", _integer(numerator)) + _sized(b"i", _integer(denominator)))


def _integer(value: int) -> bytes:
    return value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True)


def _encode_time(part: Any) -> bytes:
    if isinstance(part, datetime.datetime):  # aware ones are equal across time zones, and never equal to naive ones
        if part.utcoffset() is None:
            return _sized(b"l", _integer((part.replace(fold=0) - _NAIVE_EPOCH) // _MICROSECOND))
        return _sized(b"z", _integer((part - _EPOCH) // _MICROSECOND))
    if isinstance(part, datetime.date):
        return _sized(b"a", _integer(part.toordinal()))
    if isinstance(part, datetime.timedelta):
        return _sized(b"g", _integer(part // _MICROSECOND))
    moment = datetime.timedelta(
        hours=part.hour, minutes=part.minute, seconds=part.second, microseconds=part.microsecond
    )
    offset = part.utcoffset()
    if offset is None:
        return _sized(b"h", _integer(moment // _MICROSECOND))
    return _sized(b"k", _integer((moment - offset) // _MICROSECOND))


def _is_value_class(part: Any) -> bool:
    """A frozen dataclass compared by its fields: equal instances have equal fields."""
    if not dataclasses.is_dataclass(part) or isinstance(part, type):
        return False
    parameters = part.__dataclass_params__  # type: ignore[attr-defined]
    return bool(parameters.frozen and parameters.eq)


def _type_name(part: Any) -> str:
    return f"{type(part).__module__}.{type(part).__qualname__}"


def _refusal(part: Any, whole: Any, why: str) -> InvalidKeyError:
    inside = "" if part is whole else f" (inside the key {whole!r:.200})"
    return InvalidKeyError(
        f"{part!r:.200} of type {_type_name(part)}{inside} cannot be a key: {why}. Return a str, bytes, int, float, "
        "Decimal, date or time, UUID, Enum, a frozen dataclass, or a tuple or frozenset of those from the key selector."
    )


def group_of(encoded: bytes, max_parallelism: int) -> int:
    """The key group of a key with that encoding."""
    return xxh3_64_intdigest(encoded) % max_parallelism


class KeyGroups(dict[Any, int]):
    """key -> key group, remembered: a dict hit costs a twentieth of encoding and hashing the key again.

    Equal keys hash equal in Python and encode equal here, so remembering by equality is safe. Forgets everything when
    full, which bounds its memory for streams of ever new keys.
    """

    __slots__ = ("capacity", "max_parallelism")

    def __init__(self, max_parallelism: int, capacity: int = 1 << 20) -> None:
        super().__init__()
        self.max_parallelism = max_parallelism
        self.capacity = capacity

    def __missing__(self, key: Any) -> int:
        if type(key) is str:  # by far the most common; the same bytes as encode_key's, in half the time
            data = key.encode("utf-8", "surrogatepass")
            group = group_of(b"s" + len(data).to_bytes(4, "big") + data, self.max_parallelism)
        elif type(key) is tuple and len(key) == 3 and key[2] is ...:
            return self[key[0]]  # namespaced; not remembered, as there are ever new ones
        else:
            group = group_of(encode_key(key), self.max_parallelism)
        if len(self) >= self.capacity:
            self.clear()
        self[key] = group
        return group

    def of(self, key: Any) -> int:
        """The key's group, with an error that explains itself for keys that cannot even be looked up."""
        try:
            return self[key]
        except TypeError as error:
            raise InvalidKeyError(
                f"{key!r:.200} of type {_type_name(key)} cannot be a key: {error}. Return an immutable value from the "
                "key selector, for example a tuple instead of a list."
            ) from None


def subtask_of(group: int, parallelism: int, max_parallelism: int) -> int:
    """The subtask that owns a key group: contiguous ranges, the same rule as Flink's."""
    return group * parallelism // max_parallelism


def groups_of(subtask: int, parallelism: int, max_parallelism: int) -> range:
    """The key groups a subtask owns."""
    start = -(-subtask * max_parallelism // parallelism)
    stop = -(-(subtask + 1) * max_parallelism // parallelism)
    return range(start, stop)
