"""Timers of one operator in one subtask: registered by its function, fired by the watermark and by the clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firesteel.datastream.output_tag import OutputTag
from firesteel.datastream.time_domain import TimeDomain
from firesteel.datastream.timerservice import TimerService
from firesteel.errors import TimerError
from firesteel.graph.plan import PlannedOperator
from firesteel.runtime.context import FunctionContext
from firesteel.runtime.failures import OperatorFailure
from firesteel.runtime.flow import MIN_WATERMARK, Emitter
from firesteel.runtime.keyed_state import KeyedState
from firesteel.runtime.process import Output
from firesteel.state.timers import MAX_TIME, TimerTable, whole_time

EVENT_TIMERS, PROCESSING_TIMERS = "/event-timers", "/processing-timers"
PUSH_RECORDS = 8192


class UnkeyedTimerService(TimerService):
    """The times of a stream that is not keyed; timers belong to keys."""

    def __init__(self, operator: PlannedOperator, now: Callable[[], int]) -> None:
        self._operator, self._now = operator, now
        self.watermark = MIN_WATERMARK

    def current_processing_time(self) -> int:
        return self._now()

    def current_watermark(self) -> int:
        return self.watermark

    def _refuse(self, timestamp: int) -> None:
        raise TimerError(
            f"{self._operator} sets a timer, but its stream is not keyed, and timers belong to keys. Call key_by(...) "
            f"before it and use a keyed function (KeyedProcessFunction or KeyedCoProcessFunction)"
        )

    register_processing_time_timer = _refuse
    register_event_time_timer = _refuse
    delete_processing_time_timer = _refuse
    delete_event_time_timer = _refuse


class KeyedTimerService(TimerService):
    """The times of a keyed stream, and the current key's timers."""

    def __init__(self, keyed: KeyedState, event: TimerTable, processing: TimerTable, now: Callable[[], int]) -> None:
        self._keyed, self._event, self._processing, self._now = keyed, event, processing, now
        # in the place of methods that would call them: a tenth of a microsecond for each timer
        self.register_event_time_timer = event.bind(keyed)  # type: ignore[method-assign]
        self.register_processing_time_timer = processing.bind(keyed)  # type: ignore[method-assign]
        self.watermark = MIN_WATERMARK

    def current_processing_time(self) -> int:
        return self._now()

    def current_watermark(self) -> int:
        return self.watermark

    # these two are there for the abstract class only: no instance is without its tables' own

    def register_processing_time_timer(self, timestamp: int) -> None:
        raise NotImplementedError

    def register_event_time_timer(self, timestamp: int) -> None:
        raise NotImplementedError

    def delete_processing_time_timer(self, timestamp: int) -> None:
        self._processing.delete(self._keyed.key, whole_time(timestamp))

    def delete_event_time_timer(self, timestamp: int) -> None:
        self._event.delete(self._keyed.key, whole_time(timestamp))


class Timers:
    """Fires an operator's timers into its output."""

    def __init__(
        self,
        operator: PlannedOperator,
        on_timer: Callable[..., Any],
        keyed: KeyedState,
        emitter: Emitter,
        now: Callable[[], int],
    ) -> None:
        self._operator, self._on_timer, self._keyed, self._emitter = operator, emitter.noting(on_timer), keyed, emitter
        self._event = keyed.store.timer_table(EVENT_TIMERS)
        self._processing = keyed.store.timer_table(PROCESSING_TIMERS)
        self.service = KeyedTimerService(keyed, self._event, self._processing, now)
        self.context = FunctionContext(keyed, self.service)

    def advance(self, watermark: int) -> None:
        """The operator's watermark moved: what is due by it comes before it."""
        self.service.watermark = watermark
        if self._event.earliest <= watermark:
            self._fire(self._event, watermark, TimeDomain.EVENT_TIME)
        self._emitter.advance(watermark)

    def on_clock(self, now: int) -> None:
        if self._processing.earliest <= now:
            self._fire(self._processing, now, TimeDomain.PROCESSING_TIME)

    def wake(self) -> int | None:
        """When the clock has to be looked at again."""
        return None if self._processing.earliest == MAX_TIME else self._processing.earliest

    def _fire(self, timers: TimerTable, until: int, domain: TimeDomain) -> None:
        keyed, context, on_timer = self._keyed, self.context, self._on_timer
        event_time = domain is TimeDomain.EVENT_TIME
        out, tags = Output(self._emitter), OutputTag.exist()
        append, append_time = out.values.append, out.times.append
        context.domain = domain
        try:
            for time, key in timers.due(until):
                keyed.key, context.time = key, time
                try:
                    results = on_timer(time, context)
                    if results is not None:
                        if tags:
                            out.add(results, time)
                        else:
                            for result in results:
                                append(result)
                                append_time(time)
                except Exception as error:
                    raise OperatorFailure(
                        self._operator, f"on the timer {time} of the key {keyed.key!r:.200}", error
                    ) from error
                if len(out.values) >= PUSH_RECORDS:
                    out.push(timed=event_time, split=not tags)
                    out, tags = Output(self._emitter), OutputTag.exist()
                    append, append_time = out.values.append, out.times.append
        finally:
            context.time = context.domain = None
        out.push(timed=event_time, split=not tags)
