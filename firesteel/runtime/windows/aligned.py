"""The common case in a short loop: time windows of fixed length with their own trigger, combined as records come.

It gives what the general operator gives, keeps contents in the same place, and does less for it. Windows that begin and
end at the same times for all keys come in panes: pieces of time, as long as the greatest common divisor of size and slide,
whose records all belong to the same windows. So windows are looked up once for many records, and a record costs one read
and one write of state.

Without allowed lateness a window is gone once it has fired. Those that are there have to fire, all keys of a window at
once, and need no timers to remember it. With lateness every key of a window has its timers, as in the general operator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import repeat
from math import gcd
from typing import Any, NamedTuple

from firesteel.common.plain import is_plain
from firesteel.datastream.functions import AggregateFunction, Function, ReduceFunction
from firesteel.datastream.rolling import RollingField, RollingRecord
from firesteel.datastream.time_domain import TimeDomain
from firesteel.datastream.window import (
    EventTimeTrigger,
    ProcessingTimeTrigger,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TimeWindow,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from firesteel.datastream.window.windows import MAX_LONG_VALUE
from firesteel.graph import nodes
from firesteel.runtime.callables import method_of
from firesteel.runtime.copying import own, unshared
from firesteel.runtime.failures import OperatorFailure, on_record
from firesteel.runtime.flow import Partials, Times, Values
from firesteel.runtime.process import Output
from firesteel.runtime.timers import PUSH_RECORDS
from firesteel.runtime.windows.operator import WindowOperator, check_times
from firesteel.runtime.windows.panes import Part, by_pane
from firesteel.runtime.windows.states import contents_table
from firesteel.runtime.windows.timers import WindowEnds, push
from firesteel.state.store import ValueTable, WindowTable
from firesteel.state.tables import Begin, GoOn

_TRIGGERS: dict[type, type] = {
    TumblingEventTimeWindows: EventTimeTrigger,
    SlidingEventTimeWindows: EventTimeTrigger,
    TumblingProcessingTimeWindows: ProcessingTimeTrigger,
    SlidingProcessingTimeWindows: ProcessingTimeTrigger,
}
"""Assigner -> the trigger it has to be used with. Their subclasses may do anything."""


def is_aligned(kind: nodes.Window) -> bool:
    """Whether an operator's windows are of the common case."""
    is_usual = _TRIGGERS.get(type(kind.assigner)) is type(kind.trigger)
    return is_usual and kind.combine is not None and kind.evictor is None


class Live(NamedTuple):
    """A window that takes records."""

    window: TimeWindow
    table: ValueTable
    read: Callable[[], Any]  # of the current key
    write: Callable[[Any], None]
    timers: tuple[int, ...]  # to be set with its first record
    fires: bool  # for every record, since the watermark has passed its end


class AlignedWindowOperator(WindowOperator):
    """One operator's windows in one subtask."""

    timers: WindowEnds

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        assigner, combine = self._kind.assigner, self._kind.combine
        self._event_time: bool = assigner.is_event_time()
        self._size, self._slide, self._offset = assigner.size, assigner.slide, assigner.offset
        self._grain = gcd(self._size, self._slide)
        self._begin: Callable[[Any], Any] | None = None  # None: with the record itself
        self._go_on: Callable[[Any, Any], Any]
        self._result: Callable[[Any], Any] | None = None  # None: what is kept is the result
        self._rolling = combine if isinstance(combine, RollingField) else None
        if isinstance(combine, AggregateFunction):
            add, create, self._result = combine.add, combine.create_accumulator, combine.get_result
            self._begin = lambda value: add(value, create())
            self._go_on = lambda accumulator, value: add(value, accumulator)
        else:
            self._go_on = method_of(combine, ReduceFunction, "reduce")
        table = contents_table(self._kind, self._keyed.store)
        assert table is not None
        self._table, self._pane = table, table.pane
        self._may_change = not isinstance(combine, RollingField | RollingRecord)
        self._fires_again = self._kind.allowed_lateness > 0
        self._open: dict[TimeWindow, None] = {}  # windows that end without timers
        # not where late records come out in their order, or windows fire at once; a function with open() may have states of
        # its own, and then wants to know the key
        opened = isinstance(combine, Function) and type(combine).open is not Function.open
        self._in_bulk = not (self._kind.allowed_lateness or self._kind.late_tag or opened)
        # that many at once: sliding windows have several panes, and want the order of their records
        self._most_panes = 8 if self._size == self._slide else 1

    def _resume(self, table: WindowTable | None) -> None:
        if self._event_time and self._kind.allowed_lateness:
            super()._resume(table)
            return
        for window in list(self._table.windows()):
            if self._lateness.has_ended(window):  # it has fired, and was kept for late records in the program before
                self._forget(window)
            else:
                self._open[window] = None
        self.timers.next_end = min((window.max_timestamp() for window in self._open), default=MAX_LONG_VALUE)

    def _forget(self, window: TimeWindow) -> None:
        pane = self._pane(window)
        for key, _ in pane.scan():
            pane.delete(key)
            self._evaluation.clear(key, window)

    def _create_timers(self, *parts: Any) -> WindowEnds:
        return WindowEnds(self._kind.assigner.is_event_time(), self.end_windows, *parts)

    def push(self, values: Values, times: Times) -> None:
        if self._event_time:
            check_times(self._operator, values, times)
            if self._in_bulk and times:
                low, high = min(times), max(times)
                first = low - (low - self._offset) % self._grain
                if high < first + self._grain * self._most_panes:
                    self._push_panes(values, times, first, high)
                    return
        self._push_each(values, times)

    def _push_panes(self, values: Values, times: list[int], first: int, high: int) -> None:
        parts: Iterable[Part] = ((first, values, times),)
        if high >= first + self._grain:
            parts = by_pane(values, times, self._offset, self._grain, tumbling=True)
        for pane, some, stamps in parts:
            done = self._push_pane(pane, some)
            if done < len(some):
                self._push_each(some[done:], stamps[done:])

    def _push_pane(self, pane: int, values: Values) -> int:
        """Records that are all in the same windows, each window in one go. Says how many it did: not those that are late."""
        rest: Any = iter(values)
        count = 0
        try:
            keys = list(map(self._selector, rest))
            begin, go_on = self._begin, self._go_on if self._rolling is None else self._rolling.reducing(values[0])
            windows = self._windows(pane)
            if len(windows) > 1 and self._may_change:
                begin, go_on = self._careful(values)
            for live in windows:
                rest = iter(values)
                count = live.table.combine(keys, rest, begin, go_on)
        except Exception as error:
            raise on_record(self._operator, values[len(values) - rest.__length_hint__() - 1], error) from error
        return count

    def _push_each(self, values: Values, times: Times) -> None:
        moments: Iterable[int]
        if self._event_time:
            moments, register = times or (), self.timers.event.register
        else:
            moments, register = repeat(self.timers.service.current_processing_time()), self.timers.processing.register
        selector, keyed, begin, go_on = self._selector, self._keyed, self._begin, self._go_on
        if values and self._size > self._slide and self._may_change:
            begin, go_on = self._careful(values)
        offset, grain = self._offset, self._grain
        out = Output(self._emitter)
        panes: dict[int, list[Live]] = {}
        last, windows, value = None, None, None
        try:
            for value, time in zip(values, moments):  # noqa: B905  moments may have no end
                pane = time - (time - offset) % grain
                if pane != last:
                    last, windows = pane, panes.get(pane)
                    if windows is None:
                        windows = panes[pane] = self._windows(pane)
                if not windows or value is None:
                    self._unusual(value, time, windows, out)
                    continue
                keyed.key = key = selector(value)
                for window, _, read, write, timers, fires in windows:
                    before = read()
                    if before is not None:
                        write(go_on(before, value))
                    else:
                        write(value if begin is None else begin(value))
                        for timer in timers:
                            register((key, window, ...), timer)
                    if fires:
                        self._fire(key, window, read(), out)
        except Exception as error:
            raise on_record(self._operator, value, error) from error
        push(out)

    def _careful(self, values: Values) -> tuple[Begin, GoOn]:
        """What combines records that are in several windows. The first one of a key is looked at; whether to look at results,
        too, is judged by the first of all, as where records are combined before (folding.py)."""
        begin, go_on = unshared(self._begin, self._go_on)
        return begin, self._go_on if is_plain(values[0]) else go_on

    def take(self, partials: Partials) -> None:
        """What records of one window were combined into where they came from (precombining.py)."""
        start, keys, values, count = partials
        window = TimeWindow(start, start + self._size)
        if self._lateness.is_window_late(window):
            self._lateness.drop(count)
            return
        self._open[window] = None
        self.timers.next_end = min(window.max_timestamp(), self.timers.next_end)
        self._merge_into(self._table, window, keys, values)

    def _windows(self, pane: int) -> list[Live]:
        """Of the windows that a pane's records belong to, those that are not over."""
        last = TimeWindow.get_window_start_with_offset(pane, self._offset, self._slide)
        found = []
        for start in range(last, pane - self._size, -self._slide):
            window = TimeWindow(start, start + self._size)
            if not self._lateness.is_window_late(window):
                end, over = window.max_timestamp(), self._lateness.cleanup_time(window)
                fires = self._lateness.has_ended(window)
                table = self._pane(window)
                read, write, _ = table.bind(self._keyed)
                found.append(Live(window, table, read, write, self._timers_of(window, end, over, fires), fires))
        return found

    def _timers_of(self, window: TimeWindow, end: int, over: int, fires: bool) -> tuple[int, ...]:
        """The timers that a window needs. One that is over when it ends is remembered instead."""
        if end == over:
            self._open[window] = None
            self.timers.next_end = min(end, self.timers.next_end)
            return ()
        return tuple(time for time in (end, over) if (time > end or not fires) and time < MAX_LONG_VALUE)

    def _unusual(self, value: Any, time: int, windows: list[Live] | None, out: Output) -> None:
        """A record that is late for all of its windows, falls between two, or is None."""
        if windows:
            key = self._keyed.key = self._selector(value)
            self._element(key, value, time, [live.window for live in windows], out)
        elif self._lateness.is_element_late(time):
            self._lateness.take(value, time if self._event_time else None, out)

    def end_windows(self, until: int) -> int:
        """Fire and remove the windows that have ended by then. Gives when the next one ends."""
        for window in sorted(self._open):
            if window.max_timestamp() > until:
                return window.max_timestamp()
            del self._open[window]
            self._end(window)
        return MAX_LONG_VALUE

    def _end(self, window: TimeWindow) -> None:
        pane, out, key = self._pane(window), Output(self._emitter), None
        try:
            for key, found in pane.scan():
                self._fire(key, window, found, out)
                pane.delete(key)
                self._evaluation.clear(key, window)
                if len(out.values) >= PUSH_RECORDS:
                    push(out)
                    out = Output(self._emitter)
        except Exception as error:
            doing = f"at the end of {window} of the key {key!r:.200}"
            raise OperatorFailure(self._operator, doing, error) from error
        push(out)

    def on_timer(self, time: int, key: Any, window: Any, domain: TimeDomain, out: Output) -> None:
        pane = self._pane(window)
        if time == window[1] - 1:
            self._fire(key, window, pane.get(key), out)
        if time == self._lateness.cleanup_time(window):
            pane.delete(key)
            self._evaluation.clear(key, window)

    def _fire(self, key: Any, window: TimeWindow, found: Any, out: Output) -> None:
        """Evaluate a window with this in it."""
        if found is not None and self._result is not None:
            found = self._result(found)
        if found is None:
            return
        if self._fires_again:
            found = own(found)  # the window keeps it, and its function may change it with the next record
        if self._kind.function is None:
            out.values.append(found)
            out.times.append(window[1] - 1)
        else:
            self._evaluation(key, window, [found], None, out)
