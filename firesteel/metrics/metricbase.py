"""What user code sees of metrics, under PyFlink's names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

__all__ = ["Counter", "Distribution", "Meter", "Metric", "MetricGroup"]


class Metric:
    """Something measured."""


class Counter(Metric, ABC):
    """Counts up and down."""

    @abstractmethod
    def inc(self, n: int = 1) -> None: ...

    @abstractmethod
    def dec(self, n: int = 1) -> None: ...

    @abstractmethod
    def get_count(self) -> int: ...


class Meter(Metric, ABC):
    """Counts events, and knows how many there were in a second, on average over a time span."""

    @abstractmethod
    def mark_event(self, value: int = 1) -> None: ...

    @abstractmethod
    def get_count(self) -> int: ...


class Distribution(Metric, ABC):
    """Smallest, largest, sum, count and mean of reported values."""

    @abstractmethod
    def update(self, value: float) -> None: ...


class MetricGroup(ABC):
    """Where a function registers its metrics; groups in groups make the names `group.metric` longer.

    Asking for a metric again gives the same one, so it can be done in `open()` of every restart.
    """

    @abstractmethod
    def add_group(self, name: str, extra: str | None = None) -> MetricGroup:
        """A group in this one. With `extra` the group is a variable: `name` its key and `extra` its value."""

    @abstractmethod
    def counter(self, name: str) -> Counter: ...

    @abstractmethod
    def gauge(self, name: str, obj: Callable[[], int | float]) -> None:
        """A value that is asked for whenever metrics are reported; those of all subtasks are added up. Registered again, the
        new function counts."""

    @abstractmethod
    def meter(self, name: str, time_span_in_seconds: int = 60) -> Meter: ...

    @abstractmethod
    def distribution(self, name: str) -> Distribution: ...
