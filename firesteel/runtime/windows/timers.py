"""Timers of windows: they belong to a pair of key and window, and what they make fire has its own timestamp."""

from __future__ import annotations

from firesteel.datastream.time_domain import TimeDomain
from firesteel.runtime.failures import OperatorFailure
from firesteel.runtime.process import Output
from firesteel.runtime.timers import PUSH_RECORDS, Timers
from firesteel.state.timers import TimerTable


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


def push(out: Output) -> None:
    """Send results on, as a stream without timestamps if none of them has one."""
    out.push(timed=out.times.count(None) < len(out.times) or not out.times)
