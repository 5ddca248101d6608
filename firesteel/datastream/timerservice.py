"""Time as process functions see and use it."""

from __future__ import annotations

from abc import ABC, abstractmethod


class TimerService(ABC):
    """The current times, and timers of the current key. All times are milliseconds since 1970.

    A key has at most one timer for each time and time domain: registering it again changes nothing.
    """

    @abstractmethod
    def current_processing_time(self) -> int: ...

    @abstractmethod
    def current_watermark(self) -> int:
        """The event time up to which records are complete; the smallest 64-bit integer before the first watermark."""

    @abstractmethod
    def register_processing_time_timer(self, timestamp: int) -> None:
        """Call `on_timer` once the machine's clock passes this time."""

    @abstractmethod
    def register_event_time_timer(self, timestamp: int) -> None:
        """Call `on_timer` once the watermark reaches this time."""

    @abstractmethod
    def delete_processing_time_timer(self, timestamp: int) -> None:
        """Forget the timer; nothing happens when there is none."""

    @abstractmethod
    def delete_event_time_timer(self, timestamp: int) -> None:
        """Forget the timer; nothing happens when there is none."""
