"""Combining records of one window by key: the loops that run where records come from (precombining.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firesteel.common.plain import is_plain
from firesteel.datastream.functions import AggregateFunction, ReduceFunction
from firesteel.datastream.rolling import RollingField, RollingRecord
from firesteel.graph import nodes
from firesteel.runtime.callables import method_of
from firesteel.runtime.copying import own, unshared
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
    return Reducing(method_of(combine, ReduceFunction, "reduce"), changes=not isinstance(combine, RollingRecord))


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
        begin, go_on = unshared(lambda value: add(value, create()), lambda before, value: add(value, before))
        self._careful = _folding(begin, go_on)

    def of(self, values: Values) -> Fold:
        """What combines these, judged by the first one."""
        return self._fold if is_plain(values[0]) else self._careful


class Reducing:
    """With a ReduceFunction, or a function.

    :param changes: it may change the reduction so far, and the record in its place may be in others' hands here.
    """

    def __init__(self, reduce: Reduce, changes: bool) -> None:
        self._fold = _folding(own if changes else _same, reduce)
        self._careful = _folding(*unshared(None, reduce)) if changes else self._fold

    def of(self, values: Values) -> Fold:
        """What combines these, judged by the first one: plain records can be shared, and need no looking at results."""
        return self._fold if is_plain(values[0]) else self._careful


class Rolling(Reducing):
    """With a library function, which has a shorter way for a stream of tuples of one length."""

    def __init__(self, combine: RollingField) -> None:
        super().__init__(combine.reduce, changes=False)
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


def _folding(begin: Callable[[Any], Any], go_on: Reduce) -> Fold:
    def fold(partials: dict[Any, Any], keys: Values, values: Any) -> int:
        get = partials.get
        for key, value in zip(keys, values, strict=True):
            if value is None:
                return len(keys) - int(values.__length_hint__()) - 1
            before = get(key)
            partials[key] = begin(value) if before is None else go_on(before, value)
        return len(keys)

    return fold


def _same(value: Any) -> Any:
    """For functions that leave what they are given as it is."""
    return value
