"""Evaluating windows that have an evictor: records are kept with their timestamps and combined when the window fires."""

from __future__ import annotations

from functools import reduce
from typing import Any

from firesteel.datastream.functions import AggregateFunction, ReduceFunction
from firesteel.datastream.rolling import RollingField, RollingRecord
from firesteel.datastream.window import TimestampedValue
from firesteel.runtime.callables import method_of
from firesteel.runtime.copying import own_all
from firesteel.runtime.process import Output
from firesteel.runtime.windows.evaluation import Evaluation


class EvictingEvaluation(Evaluation):
    """Takes pairs of record and timestamp."""

    left: list[tuple[Any, ...]] = []
    """What is in the window after its last evaluation."""

    def __call__(self, key: Any, window: Any, elements: Any, time: int | None, out: Output) -> None:
        records = [TimestampedValue(*pair) for pair in elements]
        evictor = self._kind.evictor
        self.enter(key, window)
        evictor.evict_before(records, len(records), window, self.context)
        left = _combined(self._kind.combine, [record.value for record in records])
        if left is not None:
            super().__call__(key, window, left, time, out)
        evictor.evict_after(records, len(records), window, self.context)
        self.left = [tuple(record) for record in records]


def _combined(combine: Any, values: list[Any]) -> list[Any] | None:
    """What the window function is given; None when there is nothing to reduce."""
    if combine is None:
        return values
    if not isinstance(combine, RollingField | RollingRecord):
        values = own_all(values)  # they stay in the window, and the function may change what it has made so far
    if isinstance(combine, AggregateFunction):
        accumulator = combine.create_accumulator()
        for value in values:
            accumulator = combine.add(value, accumulator)
        return [combine.get_result(accumulator)]
    return [reduce(method_of(combine, ReduceFunction, "reduce"), values)] if values else None
