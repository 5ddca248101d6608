"""Amounts of time and points in time."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Duration", "Instant", "Time"]


@dataclass(frozen=True, order=True)
class Duration:
    """An amount of time, to the nanosecond."""

    nanos: int

    @staticmethod
    def of_days(days: int) -> Duration:
        return Duration.of_hours(days * 24)

    @staticmethod
    def of_hours(hours: int) -> Duration:
        return Duration.of_minutes(hours * 60)

    @staticmethod
    def of_minutes(minutes: int) -> Duration:
        return Duration.of_seconds(minutes * 60)

    @staticmethod
    def of_seconds(seconds: int) -> Duration:
        return Duration.of_millis(seconds * 1000)

    @staticmethod
    def of_millis(millis: int) -> Duration:
        return Duration(millis * 1_000_000)

    @staticmethod
    def of_nanos(nanos: int) -> Duration:
        return Duration(nanos)

    def to_millis(self) -> int:
        """Whole milliseconds, rounded down."""
        return self.nanos // 1_000_000

    def __str__(self) -> str:
        return f"{self.nanos} ns" if self.nanos % 1_000_000 else f"{self.to_millis()} ms"


@dataclass(frozen=True, order=True, repr=False)
class Instant:
    """A point in time: seconds since 1970 in UTC, plus nanoseconds that are never negative."""

    seconds: int
    nanos: int

    @staticmethod
    def of_epoch_milli(epoch_milli: int) -> Instant:
        seconds, millis = divmod(epoch_milli, 1000)
        return Instant(seconds, millis * 1_000_000)

    def to_epoch_milli(self) -> int:
        return self.seconds * 1000 + self.nanos // 1_000_000

    def __repr__(self) -> str:
        return f"Instant<{self.seconds}, {self.nanos}>"


@dataclass(frozen=True, order=True)
class Time:
    """An amount of time in milliseconds, as windows and timers take it."""

    _milliseconds: int

    def to_milliseconds(self) -> int:
        return self._milliseconds

    @staticmethod
    def milliseconds(milliseconds: int) -> Time:
        return Time(milliseconds)

    @staticmethod
    def seconds(seconds: int) -> Time:
        return Time(seconds * 1000)

    @staticmethod
    def minutes(minutes: int) -> Time:
        return Time.seconds(minutes * 60)

    @staticmethod
    def hours(hours: int) -> Time:
        return Time.minutes(hours * 60)

    @staticmethod
    def days(days: int) -> Time:
        return Time.hours(days * 24)

    def __str__(self) -> str:
        return f"{self._milliseconds} ms"
