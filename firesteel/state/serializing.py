"""What cannot be pickled cannot be state: the error that says so, and of what."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from typing import Any

from firesteel.errors import SerializationError


def unpicklable(
    uid: str, name: str, kind: str, keys: Iterable[Any], values: Iterable[Any], error: Exception
) -> SerializationError:
    """For a state that has these values under these keys, one of which could not be pickled."""
    return SerializationError(
        f"{kind} state {name!r} of operator {uid} holds {_culprit(list(keys), values)}, which cannot be part of a "
        f"checkpoint because it cannot be pickled: {error}. Keep such objects in attributes of the function, made in "
        f"open(), and classes of keys and values at the top level of a module"
    )


def _culprit(keys: list[Any], values: Iterable[Any]) -> str:
    """What of it cannot be pickled, and where it is."""
    for key, value in zip(keys, values, strict=False):  # deleted keys have no values
        if not _picklable(value):
            return f"{value!r:.200} of type {type(value).__qualname__} under the key {key!r:.200}"
    for key in keys:
        if not _picklable(key):
            return f"the key {key!r:.200} of type {type(key).__qualname__}"
    return "a value"


def _picklable(what: Any) -> bool:
    try:
        pickle.dumps(what)
    except Exception:  # noqa: BLE001  whatever pickling raises, this is the culprit
        return False
    return True
