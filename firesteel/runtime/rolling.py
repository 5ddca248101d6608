"""Library functions over tuples of one length, by loops that are written out for it: half of a general loop's time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import partial
from itertools import chain
from typing import Any

from firesteel.common.plain import PLAIN
from firesteel.datastream.rolling import RollingField
from firesteel.runtime.flow import Values
from firesteel.state.tables import ValueTable

Roll = Callable[[Iterable[Any]], list[Any]]
"""Reduces records into the values of their keys, and gives the value after each."""


class TupleLength:
    """The length of all tuples there ever were, as long as it is one and there was nothing else."""

    def __init__(self) -> None:
        self._known: int | None = None
        self._mixed = False

    def of(self, values: Collection[Any]) -> int | None:
        """With these, too."""
        if self._mixed or not values:
            return self._known
        lengths = set(map(len, values)) if set(map(type, values)) == {tuple} else set()
        self._mixed = len(lengths) != 1 or self._known not in (None, *lengths)
        self._known = None if self._mixed else lengths.pop()
        return self._known


class Rolls:
    """Finds the loop for a batch of records, if there is one, and knows whether what it gives is plain.

    A result is the first record of its key but for one field. So results are plain if all first records are, and looking at
    those is enough: most records are none. The field itself has to be no tuple, as it could get anything into it.
    """

    def __init__(self, function: Any, table: ValueTable, key_of: Callable[[Any], Any]) -> None:
        self._function, self._key_of = function, key_of
        self._insides = table.insides() if isinstance(function, RollingField) else None
        self._lengths = TupleLength()
        self._made: dict[int, Roll | None] = {}
        self._first: list[Any] = []
        self._plain = True

    def of(self, values: Values) -> Roll | None:
        """What rolls these. None: something else has to."""
        if self._insides is None:
            return None
        changed, before, gone = self._insides
        if not self._made and before:
            self._lengths.of(before.values())  # what a checkpoint had
        length = self._lengths.of(values)
        if length is None:
            return None
        if length not in self._made:
            self._first += before.values()
            loop = self._function.roll_of_tuples(length)
            self._made[length] = loop and partial(loop, self._key_of, changed, before.get, gone, self._first.append)
        return self._made[length]

    def plain(self) -> bool:
        """Whether all that loops have given so far is plain."""
        if self._first:
            self._plain = self._plain and PLAIN.issuperset(map(type, chain.from_iterable(self._first)))
            self._first.clear()
        return self._plain
