"""Rows of the database. docs/formats.md describes the same bytes.

row key    2 bytes table, 2 bytes key group, then what the table is ordered by: canonical keys (graph/keys.py), map keys,
           windows. None of these is the beginning of another one, so whatever belongs to a key is a range.
value      a pickle. Where the row key does not tell the Python key (1.0 and Decimal(1) are the key 1), it is of a pair
           with that key, and the byte "K" follows it.
"""

from __future__ import annotations

import pickle
import struct
from typing import Any

from firesteel.errors import InvalidKeyError, StateError
from firesteel.graph.keys import encode_key

PREFIX = struct.Struct(">HH")
_SIZE = struct.Struct(">I")
_KEYED = ord("K")
_EXACT = frozenset((str, bytes, int, type(None)))
_MIDDLE = 1 << 63
MISSING = object()
"""There is no such row, where None could be a value."""


def encoded(key: Any) -> bytes:
    """The canonical bytes of a key, as `encode_key` gives them."""
    if type(key) is str:
        data = key.encode("utf-8", "surrogatepass")
        return b"s" + len(data).to_bytes(4, "big") + data
    return encode_key(key)


def exact(key: Any) -> bool:
    """Whether `decoded` gives this very key back, type included."""
    return type(key) in _EXACT or (type(key) is tuple and all(map(exact, key)))


def decoded(data: bytes, at: int = 0) -> tuple[Any, int]:
    """The key whose bytes begin here, and where they end. Only for those that are `exact`."""
    tag = data[at : at + 1]
    if tag == b"n":
        return None, at + 1
    end = at + 5 + _SIZE.unpack_from(data, at + 1)[0]
    body = data[at + 5 : end]
    if tag == b"s":
        return body.decode("utf-8", "surrogatepass"), end
    if tag == b"i":
        return int.from_bytes(body, "big", signed=True), end
    if tag == b"b":
        return body, end
    assert tag == b"t", tag
    members, inside = [], at + 5
    while inside < end:
        member, inside = decoded(data, inside)
        members.append(member)
    return tuple(members), end


def after(prefix: bytes) -> bytes:
    """The end of the range of row keys that begin so."""
    return (int.from_bytes(prefix, "big") + 1).to_bytes(len(prefix), "big")


def encoded_part(part: Any, state: str) -> bytes:
    """The bytes of a map key."""
    try:
        return encoded(part)
    except InvalidKeyError as error:
        raise StateError(
            f"{part!r:.200} of type {type(part).__qualname__} cannot be a key in the map state {state!r} with the RocksDB "
            f"backend, which has to find it again by bytes: use str, bytes, numbers, dates, UUID, Enum, frozen dataclasses, "
            f"or tuples and frozensets of those, or the hashmap backend"
        ) from error


def encoded_window(window: Any) -> bytes:
    """Windows that are pairs of times are ordered by them; others go by their class and attributes."""
    if isinstance(window, tuple) and len(window) == 2:
        start, end = window
        if type(start) is int and type(end) is int and -_MIDDLE <= start < _MIDDLE and -_MIDDLE <= end < _MIDDLE:
            return b"W" + (start + _MIDDLE).to_bytes(8, "big") + (end + _MIDDLE).to_bytes(8, "big")
    try:
        return b"V" + encode_key(window)
    except InvalidKeyError:
        pass
    kind = type(window)
    try:
        names = [name for each in kind.__mro__ for name in _slots_of(each) if hasattr(window, name)]
        attributes = {**{name: getattr(window, name) for name in names}, **getattr(window, "__dict__", {})}
        return b"V" + encode_key((kind.__module__, kind.__qualname__, tuple(sorted(attributes.items()))))
    except (InvalidKeyError, TypeError) as error:
        raise StateError(
            f"the window {window!r:.200} of type {kind.__qualname__} cannot be kept by the RocksDB backend, which has to find "
            f"it again by bytes: make it a frozen dataclass of numbers and strings, or use the hashmap backend"
        ) from error


def decoded_times(data: bytes) -> tuple[int, int] | None:
    """The pair of times that these bytes of a window are; None for other windows."""
    if not data.startswith(b"W"):
        return None
    return int.from_bytes(data[1:9], "big") - _MIDDLE, int.from_bytes(data[9:17], "big") - _MIDDLE


def _slots_of(kind: type) -> tuple[str, ...]:
    found = kind.__dict__.get("__slots__", ())
    return (found,) if isinstance(found, str) else tuple(found)


def pack(key: Any, value: Any) -> bytes:
    """The value of a row whose row key ends with the key's bytes."""
    if type(key) in _EXACT or exact(key):
        return pickle.dumps(value, 5)
    return pickle.dumps((key, value), 5) + b"K"


def unpack(data: bytes) -> Any:
    """The value, whatever the key is."""
    return pickle.loads(data)[1] if data[-1] == _KEYED else pickle.loads(data)


def unpack_entry(row_key: bytes, at: int, data: bytes) -> tuple[Any, Any]:
    """The key, whose bytes are in the row key from there on, and the value."""
    if data[-1] == _KEYED:
        key, value = pickle.loads(data)
        return key, value
    return decoded(row_key, at)[0], pickle.loads(data)
