"""Rolling aggregations of one field: sum, min, max, and the records with the smallest or largest value.

`sum`, `min` and `max` give the first record of the key with that one field replaced. Records are copied and never
changed, as earlier results may still be on their way.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from firesteel.datastream.fields import Field, field_of, with_field
from firesteel.datastream.functions import ReduceFunction


class RollingField(ReduceFunction):
    """The first record, with one field combined over all records."""

    def __init__(self, field: Field, combine: Callable[[Any, Any], Any]) -> None:
        self._field = field
        self._combine = combine
        self._of_tuples = _OfTuples(field, combine)

    def reduce(self, value1: Any, value2: Any) -> Any:
        return self.reducing(value1)(value1, value2)

    def reducing(self, example: Any) -> Callable[[Any, Any], Any]:
        """`reduce`, at its fastest if the first value is a tuple as long as this one."""
        return self._of_tuples[len(example) if type(example) is tuple else -1]

    def fold_of_tuples(self, length: int) -> Callable[[dict[Any, Any], Any, Any], int] | None:
        """A loop that reduces tuples of that length, and nothing else, into a dict: it is given the dict, keys and an iterator
        over as many tuples. It saves a call for each. None if tuples have no such field."""
        members = _written_out(self._field, self._combine, length)
        return None if members is None else self._made(_FOLD.format(members=members))

    def roll_of_tuples(self, length: int, key: int | None = None) -> Callable[..., bool] | None:
        """The same with all results on the way: it is given a key selector, a dict with what has changed, `get` of one with
        what was there before, the mark of a value that is gone, an iterator over records, and what takes a result. It stops
        behind the first record that is no tuple of that length, and says whether there was none.

        :param key: the position of the key in a tuple, if that is all the selector gives.
        """
        members = _written_out(self._field, self._combine, length, "{}{}")
        if members is None:
            return None
        firsts, seconds = ("".join(f"{name}{index}, " for index in range(length)) for name in ("first", "second"))
        key_code = "key_of(second)" if key is None else f"second{range(length)[key]}"
        roll: Callable[..., bool] = self._made(
            _ROLL.format(firsts=firsts, seconds=seconds, key=key_code, members=members)
        )
        return roll

    def _made(self, code: str) -> Any:
        made: dict[str, Any] = {"combine": self._combine}
        exec(code, made)
        return made["loop"]


class _OfTuples(dict[int, Callable[[Any, Any], Any]]):
    """A tuple's length -> a function that combines two values, written out field by field for tuples of that length, which is
    three times as fast as copying the tuple through a list."""

    def __init__(self, field: Field, combine: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self._field, self._combine = field, combine

    def __missing__(self, length: int) -> Callable[[Any, Any], Any]:
        members = _written_out(self._field, self._combine, length)
        if members is None:
            return self._of_others
        code = f"lambda first, second: {members} if type(first) is tuple and len(first) == {length} else others(first, second)"
        made: Callable[[Any, Any], Any] = eval(code, {"combine": self._combine, "others": self._of_others})
        self[length] = made
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return _OfTuples, (self._field, self._combine)

    def _of_others(self, first: Any, second: Any) -> Any:
        field = self._field
        return with_field(first, field, self._combine(field_of(first, field), field_of(second, field)))


_FOLD = """
def loop(reduced, keys, values):
    get = reduced.get
    for key, second in zip(keys, values, strict=True):
        first = get(key)
        reduced[key] = second if first is None else {members}
    return len(keys)
"""

_ROLL = """
def loop(key_of, changed, before, gone, values, append):
    get = changed.get
    for second in values:
        if type(second) is not tuple:
            return False
        try:
            {seconds} = second
        except ValueError:
            return False
        key = {key}
        first = get(key)
        if first is None:
            first = before(key)
        if first is None or first is gone:
            changed[key] = second
            append(second)
        else:
            {firsts} = first
            changed[key] = result = {members}
            append(result)
    return True
"""


def _written_out(field: Field, combine: Callable[[Any, Any], Any], length: int, member: str = "{}[{}]") -> str | None:
    """The code that combines two tuples of that length. It is made of numbers only, so nobody's text is ever run. None if
    they have no such field.

    :param member: the code for a member of the tuple `first` or `second`.
    """
    if not isinstance(field, int) or not -length <= field < length:
        return None
    members = [member.format("first", index) for index in range(length)]
    mine, other = members[field], member.format("second", range(length)[field])
    members[field] = f"{mine} + {other}" if combine is operator.add else f"combine({mine}, {other})"
    return f"({', '.join(members)},)"


class RollingRecord(ReduceFunction):
    """The record whose field is the best so far; the first of equals."""

    def __init__(self, field: Field, better: Callable[[Any, Any], bool]) -> None:
        self._field = field
        self._better = better

    def reduce(self, value1: Any, value2: Any) -> Any:
        return value2 if self._better(field_of(value2, self._field), field_of(value1, self._field)) else value1


def rolling_sum(field: Field) -> ReduceFunction:
    return RollingField(field, operator.add)


def rolling_min(field: Field) -> ReduceFunction:
    return RollingField(field, _smaller)


def rolling_max(field: Field) -> ReduceFunction:
    return RollingField(field, _larger)


def rolling_min_by(field: Field) -> ReduceFunction:
    return RollingRecord(field, operator.lt)


def rolling_max_by(field: Field) -> ReduceFunction:
    return RollingRecord(field, operator.gt)


def _smaller(first: Any, second: Any) -> Any:
    return second if second < first else first


def _larger(first: Any, second: Any) -> Any:
    return second if second > first else first
