"""Combining records of one window by key: the loops that run where records come from (precombining.py)."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

from firesteel.common.plain import is_plain
from firesteel.datastream.functions import AggregateFunction, ReduceFunction
from firesteel.datastream.rolling import RollingField, RollingRecord
from firesteel.graph import nodes
from firesteel.runtime.callables import method_of
from firesteel.runtime.flow import Values
from firesteel.runtime.rolling import TupleLength

Fold = Callable[[dict[Any, Any], Values, Any], int]
"""Combines values, an iterator of them with their keys, into partial results; stops at a value of None and says where."""

Reduce = Callable[[Any, Any], Any]


def folding_of(kind: nodes.Window) -> Adding | Reducing:
    """With the function of these windows."""
    combine = kind.combine
    if isinstance(combine, AggregateFunction):
        return Adding(combine)
    if isinstance(combine, RollingField):
        return Rolling(combine)
    return Reducing(method_of(combine, ReduceFunction, "reduce"), _same if isinstance(combine, RollingRecord) else _own)


class Adding:
    """With an AggregateFunction."""

    def __init__(self, combine: AggregateFunction) -> None:
        add, create = combine.add, combine.create_accumulator

        def fold(partials: dict[Any, Any], keys: Values, values: Any) -> int:
            get = partials.get
            for key, value in zip(keys, values, strict=True):
                if value is None:
                    return len(keys) - int(values.__length_hint__()) - 1
                before = get(key)
                partials[key] = add(value, create() if before is None else before)
            return len(keys)

        self._fold: Fold = fold

    def of(self, values: Values) -> Fold:
        """What combines these."""
        return self._fold


class Reducing:
    """With a ReduceFunction, or a function.

    :param begin: makes the first reduction of a record.
    """

    def __init__(self, reduce: Reduce, begin: Callable[[Any], Any]) -> None:
        def fold(partials: dict[Any, Any], keys: Values, values: Any) -> int:
            get = partials.get
            for key, value in zip(keys, values, strict=True):
                if value is None:
                    return len(keys) - int(values.__length_hint__()) - 1
                before = get(key)
                partials[key] = begin(value) if before is None else reduce(before, value)
            return len(keys)

        self._fold: Fold = fold

    def of(self, values: Values) -> Fold:
        """What combines these."""
        return self._fold


class Rolling(Reducing):
    """With a library function, which has a shorter way for a stream of tuples of one length."""

    def __init__(self, combine: RollingField) -> None:
        super().__init__(combine.reduce, _same)
        self._combine = combine
        self._lengths = TupleLength()
        self._short: dict[int, Fold] = {}

    def of(self, values: Values) -> Fold:
        length = self._lengths.of(values)
        if length is None:
            return self._fold
        if length not in self._short:
            self._short[length] = self._combine.fold_of_tuples(length) or self._fold
        return self._short[length]


def _same(value: Any) -> Any:
    """For functions that leave what they are given as it is."""
    return value


def _own(value: Any) -> Any:
    """For others: they may change the reduction so far, and the record in its place may be in others' hands here."""
    return value if is_plain(value) else pickle.loads(pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL))
