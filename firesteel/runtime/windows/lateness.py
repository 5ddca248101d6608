"""When windows are over, and what happens to records that come too late for them. Flink's definitions."""

from __future__ import annotations

from typing import Any

from firesteel.datastream.output_tag import OutputTag
from firesteel.datastream.window.trigger import Trigger
from firesteel.datastream.window.windows import MAX_LONG_VALUE
from firesteel.errors import UserCodeError
from firesteel.graph import nodes
from firesteel.metrics import MetricGroup
from firesteel.runtime.flow import Emitter
from firesteel.runtime.process import Output
from firesteel.runtime.timers import KeyedTimerService

DROPPED = "numLateRecordsDropped"
"""The metric that counts late records which nobody gets."""


class Lateness:
    """A window is over when the watermark reaches its last timestamp plus the allowed lateness, or for windows by
    processing time when the clock passes the last timestamp. Windows without an end never are."""

    def __init__(self, kind: nodes.Window, service: KeyedTimerService, metrics: MetricGroup, emitter: Emitter) -> None:
        self._event_time = kind.assigner.is_event_time()
        self._allowed = kind.allowed_lateness if self._event_time else 0
        self._service = service
        self._dropped = metrics.counter(DROPPED)
        # late records nobody reads are dropped ones, whether there is a tag for them or not
        self._tag = OutputTag(kind.late_tag) if kind.late_tag in emitter.tags and kind.late_tag is not None else None

    def cleanup_time(self, window: Any) -> int:
        """When everything about the window is removed; the end of time for never."""
        return min(int(window.max_timestamp()) + self._allowed, MAX_LONG_VALUE)

    def has_ended(self, window: Any) -> bool:
        """Whether the watermark has passed the window's end, so that every record makes it fire."""
        return bool(self._event_time and window.max_timestamp() <= self._service.watermark)

    def is_window_late(self, window: Any) -> bool:
        return self._event_time and self.cleanup_time(window) <= self._service.watermark

    def is_element_late(self, timestamp: int) -> bool:
        return self._event_time and timestamp + self._allowed <= self._service.watermark

    def take(self, value: Any, time: int | None, out: Output) -> None:
        """A record that is too late for all of its windows."""
        if self._tag is None:
            self._dropped.inc()
        else:
            out.add(((self._tag, value),), time)

    def drop(self, count: int) -> None:
        """So many records that are too late, of which nothing is left to give out."""
        self._dropped.inc(count)

    def is_cleanup(self, window: Any, time: int, event_time: bool) -> bool:
        return event_time == self._event_time and time == self.cleanup_time(window)

    def register_cleanup(self, window: Any, timers: Trigger.TriggerContext) -> None:
        time = self.cleanup_time(window)
        if time == MAX_LONG_VALUE:
            return
        if self._event_time:
            timers.register_event_time_timer(time)
        else:
            timers.register_processing_time_timer(time)

    def delete_cleanup(self, window: Any, timers: Trigger.TriggerContext) -> None:
        time = self.cleanup_time(window)
        if time == MAX_LONG_VALUE:
            return
        if self._event_time:
            timers.delete_event_time_timer(time)
        else:
            timers.delete_processing_time_timer(time)

    def check_merged(self, window: Any) -> None:
        """
        :raises UserCodeError: an assigner has merged windows into one that is over already.
        """
        now = self._service.watermark if self._event_time else self._service.current_processing_time() - 1
        if self.cleanup_time(window) <= now:
            raise UserCodeError(
                f"{window!r:.200}, which windows were merged into, is over already (it is {now}): merging must not make a "
                f"window end earlier"
            )
