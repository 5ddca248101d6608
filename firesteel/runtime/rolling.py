"""Library functions over tuples of one length, by loops that are written out for it: half of a general loop's time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Any

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


def rolls(function: Any, table: ValueTable, key_of: Callable[[Any], Any]) -> Callable[[Values], Roll | None]:
    """What finds the loop for a batch of records, or says that there is none."""
    insides = table.insides()
    if not isinstance(function, RollingField) or insides is None:
        return lambda values: None
    changed, before, gone = insides
    lengths = TupleLength()
    made: dict[int, Roll | None] = {}

    def roll_of(values: Values) -> Roll | None:
        if not made and before:
            lengths.of(before.values())  # what a checkpoint had
        length = lengths.of(values)
        if length is None:
            return None
        if length not in made:
            loop = function.roll_of_tuples(length)
            made[length] = loop and partial(loop, key_of, changed, before.get, gone)
        return made[length]

    return roll_of
