"""Plain values: of built-in types that nobody can change, or tuples of such. They can be shared, and are pickled faster."""

from __future__ import annotations

import io
import pickle
from collections.abc import Collection
from itertools import chain
from typing import Any

PLAIN = frozenset((type(None), bool, int, float, str, bytes))
_PLAIN_OR_TUPLE = PLAIN | {tuple}


def is_plain(value: Any) -> bool:
    """Of one value; tuples in tuples are not looked into and count as not plain."""
    return type(value) in PLAIN or (type(value) is tuple and PLAIN.issuperset(map(type, value)))


def all_plain(values: Collection[Any]) -> bool:
    """Of many; tuples are looked into as deep as they are."""
    types = set(map(type, values))
    while not types <= PLAIN:
        if not types <= _PLAIN_OR_TUPLE:
            return False
        tuples = values if len(types) == 1 else [value for value in values if type(value) is tuple]
        types = set(map(type, chain.from_iterable(tuples)))
        if tuple in types:
            values = list(chain.from_iterable(tuples))
    return True


def pickle_plain(values: Any) -> bytes:
    """A pickle of lists and tuples of plain values, without the pickler's notes of what it has seen: a third of its time.

    :raises ValueError, RecursionError: there is a cycle, so they are not plain.
    """
    out = io.BytesIO()
    pickler = pickle.Pickler(out, pickle.HIGHEST_PROTOCOL)
    pickler.fast = True
    pickler.dump(values)
    return out.getvalue()
