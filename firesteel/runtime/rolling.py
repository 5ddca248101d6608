"""Library functions over tuples of one length, by loops that are written out for it: half of a general loop's time."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from firesteel.datastream.fields import taken_fields
from firesteel.datastream.rolling import RollingField
from firesteel.runtime.failures import last_of
from firesteel.runtime.flow import Values
from firesteel.state.tables import ValueTable

Selector = Callable[[Any], Any]


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


class Rolling:
    """Reduces records into the values of their keys, one after the other, by a loop that is written out as long as all there
    ever were are tuples of one length.

    :param step: does the same for one record, whatever it is.
    """

    def __init__(self, function: RollingField, table: ValueTable, key_of: Selector, step: Callable[[Any], Any]) -> None:
        self._function, self._table, self._key_of, self._step = function, table, key_of, step
        self._loop: Callable[..., bool] | None = None
        self._begun = False

    def roll(self, values: Values, rest: Any) -> list[Any]:
        """
        :param rest: an iterator over the values, which tells where it stopped if something fails.
        :returns: the value after each.
        """
        results: list[Any] = []
        if not self._begun and values:
            self._begun, self._loop = True, self._loop_for(values[0])
        if self._loop is not None:
            if self._loop(rest, results.append):
                return results
            self._loop = None  # for good: the state has something else now
            results.append(self._step(last_of(values, rest)))
        results.extend(map(self._step, rest))
        return results

    def _loop_for(self, value: Any) -> Callable[..., bool] | None:
        insides = self._table.insides()
        if insides is None or type(value) is not tuple:
            return None
        changed, before, gone = insides
        lengths = TupleLength()
        lengths.of(before.values())  # what a checkpoint had
        if lengths.of([value]) is None:
            return None
        loop = self._function.roll_of_tuples(len(value), _position(self._key_of, len(value)))
        return loop and partial(loop, self._key_of, changed, before.get, gone)


def _position(key_of: Selector, length: int) -> int | None:
    """The position of the key in tuples of that length, if it is a member of theirs."""
    match taken_fields(key_of):
        case (int(field),) if -length <= field < length:
            return field
    return None
