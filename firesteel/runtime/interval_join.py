"""The interval join: records of both sides wait under their timestamps for those that come within the interval.

A pair is found by whichever of the two comes later. A record is kept until event time has passed everything that could
join with it. That moment depends on its timestamp alone, so one timer a key and moment does for both sides: when it
fires, at most one timestamp of each side is due.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from typing import Any

from firesteel.datastream.join_functions import ProcessJoinFunction
from firesteel.datastream.output_tag import OutputTag
from firesteel.errors import SideOutputError, UserCodeError
from firesteel.graph.nodes import IntervalJoin
from firesteel.graph.plan import PlannedOperator
from firesteel.metrics import MetricGroup
from firesteel.runtime.callables import resolve_selector
from firesteel.runtime.failures import on_record
from firesteel.runtime.flow import MIN_WATERMARK, Emitter, Push, Times, Values
from firesteel.runtime.keyed_state import KeyedState
from firesteel.runtime.process import Output
from firesteel.runtime.timers import KeyedTimerService
from firesteel.state.store import MapAccessors

LEFT, RIGHT = "/left", "/right"
"""The tables of records that wait: timestamp -> a tuple of records, in the order in which they came."""
LATE_DROPPED = "numLateRecordsDropped"
"""The metric that counts late records for which no side output was named."""


class JoinContext(ProcessJoinFunction.Context):
    """The times of the pair that the function is called for."""

    __slots__ = ("left", "right", "time")

    def __init__(self) -> None:
        self.left = self.right = self.time = MIN_WATERMARK

    def get_left_timestamp(self) -> int:
        return self.left

    def get_right_timestamp(self) -> int:
        return self.right

    def get_timestamp(self) -> int:
        return self.time


class IntervalJoiner:
    """One interval join in one subtask."""

    def __init__(
        self, operator: PlannedOperator, join: IntervalJoin, keyed: KeyedState, emitter: Emitter, metrics: MetricGroup
    ) -> None:
        self._operator, self._keyed, self._emitter = operator, keyed, emitter
        self._dropped = metrics.counter(LATE_DROPPED)
        self._process = emitter.noting(join.function.process_element)
        self._lower, self._upper = join.lower, join.upper
        # how long after its own timestamp a record can still meet one that is not late
        self._keep_left, self._keep_right = max(0, join.upper), max(0, -join.lower)
        self._left = keyed.store.map_table(LEFT).bind(keyed)
        self._right = keyed.store.map_table(RIGHT).bind(keyed)
        self._late = (self._read(join.left_late), self._read(join.right_late))

    def _read(self, tag: OutputTag | None) -> OutputTag | None:
        """Refuse to start if nobody reads a side output, rather than to fail with the first late record."""
        if tag is not None and tag.tag_id not in self._emitter.tags:
            raise SideOutputError(
                f"{self._operator} sends late records to the side output {tag.tag_id!r}, which nobody reads, so they would be "
                f"lost. Call get_side_output(OutputTag({tag.tag_id!r})) on its stream, or name no side output to drop them"
            )
        return tag

    def expire(self, time: int, context: Any) -> None:
        """The watermark has come to `time`: forget what could only join with late records."""
        self._left.remove(time - self._keep_left)
        self._right.remove(time - self._keep_right)

    def ports(self, service: KeyedTimerService) -> list[Push]:
        """The ways in of left and right records."""
        process, context = self._process, JoinContext()

        def call_left(left: Any, time: int, right: Any, right_time: int) -> Any:
            context.left, context.right, context.time = time, right_time, max(time, right_time)
            return process(left, right, context)

        def call_right(right: Any, time: int, left: Any, left_time: int) -> Any:
            context.left, context.right, context.time = left_time, time, max(time, left_time)
            return process(left, right, context)

        bounds = self._lower, self._upper
        mirrored = -self._upper, -self._lower
        return [
            self._port(0, service, self._left, self._right, bounds, self._keep_left, call_left),
            self._port(1, service, self._right, self._left, mirrored, self._keep_right, call_right),
        ]

    def _port(
        self,
        port: int,
        service: KeyedTimerService,
        mine: MapAccessors,
        theirs: MapAccessors,
        bounds: tuple[int, int],
        keep: int,
        call: Callable[[Any, int, Any, int], Any],
    ) -> Push:
        operator, emitter, keyed, late = self._operator, self._emitter, self._keyed, self._late[port]
        selector = resolve_selector(operator.key_selector(port))
        (lower, upper), waiting = bounds, theirs.keys
        register, dropped = service.register_event_time_timer, self._dropped

        def push(values: Values, times: Times) -> None:
            out, value = Output(emitter), None
            watermark = service.watermark  # stands still within a batch
            try:
                for value, time in zip(values, repeat(None) if times is None else times, strict=False):
                    if time is None:
                        raise _no_timestamp()
                    if time < watermark:
                        if late is None:
                            dropped.inc()
                        else:
                            out.add(((late, value),), time)
                        continue
                    keyed.key = selector(value)
                    same = mine.get(time)
                    mine.put(time, (value,) if same is None else (*same, value))
                    register(time + keep)
                    first, last = time + lower, time + upper
                    # in the order of time, whatever order the store has them in
                    for other_time in sorted([each for each in waiting() if first <= each <= last]):
                        for other in theirs.get(other_time):
                            results = call(value, time, other, other_time)
                            if results is not None:
                                out.add(results, max(time, other_time))
            except Exception as error:
                raise on_record(operator, value, error) from error
            out.push(timed=True)

        return push


def _no_timestamp() -> UserCodeError:
    return UserCodeError(
        "the record has no timestamp, and an interval join goes by them. Use assign_timestamps_and_watermarks(...) before "
        "it, on both streams"
    )
