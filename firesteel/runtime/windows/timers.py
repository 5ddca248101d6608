"""Timers of windows: they belong to a pair of key and window, and what they make fire has its own timestamp."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firesteel.datastream.time_domain import TimeDomain
from firesteel.runtime.failures import OperatorFailure
from firesteel.runtime.process import Output
from firesteel.runtime.timers import PUSH_RECORDS, Timers
from firesteel.state.timers import MAX_TIME, TimerTable


class WindowTimers(Timers):
    """Calls `on_timer(time, key, window, domain, output)`.

    A timer of processing time fires when its millisecond is over, as in Flink: a record that comes within a window's last
    millisecond still belongs to it.
    """

    @property
    def event(self) -> TimerTable:
        return self._event

    @property
    def processing(self) -> TimerTable:
        return self._processing

    def on_clock(self, now: int) -> None:
        super().on_clock(now - 1)

    def wake(self) -> int | None:
        due = super().wake()
        return None if due is None else due + 1

    def _fire(self, timers: TimerTable, until: int, domain: TimeDomain) -> None:
        on_timer = self._on_timer
        out = Output(self._emitter)
        for time, (key, window, _) in timers.due(until):
            try:
                on_timer(time, key, window, domain, out)
            except Exception as error:
                doing = f"on the timer {time} of {window!r:.200} of the key {key!r:.200}"
                raise OperatorFailure(self._operator, doing, error) from error
            if len(out.values) >= PUSH_RECORDS:
                push(out)
                out = Output(self._emitter)
        push(out)


class WindowEnds(WindowTimers):
    """The same for windows that end for all keys at once, and need no timers for that.

    :param end_windows: ends windows up to a time, and gives when the next one ends.
    """

    def __init__(self, event_time: bool, end_windows: Callable[[int], int], *parts: Any) -> None:
        super().__init__(*parts)
        self._event_time, self._end_windows = event_time, end_windows
        self.next_end = MAX_TIME

    def advance(self, watermark: int) -> None:
        self.service.watermark = watermark
        if self._event_time and self.next_end <= watermark:
            self.next_end = self._end_windows(watermark)
        super().advance(watermark)

    def on_clock(self, now: int) -> None:
        if not self._event_time and self.next_end < now:
            self.next_end = self._end_windows(now - 1)
        super().on_clock(now)

    def wake(self) -> int | None:
        due = super().wake()
        if self._event_time or self.next_end == MAX_TIME:
            return due
        return self.next_end + 1 if due is None else min(due, self.next_end + 1)


def push(out: Output) -> None:
    """Send results on, as a stream without timestamps if none of them has one."""
    out.push(timed=out.times.count(None) < len(out.times) or not out.times)
