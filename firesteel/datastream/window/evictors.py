"""What takes records out of a window before or after it is evaluated. Flink's Java API has them, PyFlink does not."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Generic, NamedTuple, TypeVar

from firesteel.datastream.given import check_millis
from firesteel.datastream.window.delta import DeltaFunction, check_delta_function, delta_of
from firesteel.errors import GraphError
from firesteel.graph.nodes import check_positive
from firesteel.metrics import MetricGroup

T = TypeVar("T")
W = TypeVar("W")


class TimestampedValue(NamedTuple):
    """A record in a window and its timestamp, None when it has none."""

    value: Any
    timestamp: int | None = None

    def get_value(self) -> Any:
        return self.value

    def get_timestamp(self) -> int | None:
        return self.timestamp

    def has_timestamp(self) -> bool:
        return self.timestamp is not None


class Evictor(ABC, Generic[T, W]):
    """Takes records out of a window when it is evaluated.

    With one, a window keeps all its records until it is evaluated, also where a reduce or aggregate function is given.
    """

    class EvictorContext(ABC):
        """What an evictor can ask for."""

        @abstractmethod
        def get_current_processing_time(self) -> int: ...

        @abstractmethod
        def get_metric_group(self) -> MetricGroup: ...

        @abstractmethod
        def get_current_watermark(self) -> int: ...

    @abstractmethod
    def evict_before(
        self, elements: list[TimestampedValue], size: int, window: W, evictor_context: Evictor.EvictorContext
    ) -> None:
        """Called before the window function: remove from the list what it is not to see, for good.

        :param elements: the window's records in the order they came; `del elements[:3]` takes out the three oldest.
        """

    @abstractmethod
    def evict_after(
        self, elements: list[TimestampedValue], size: int, window: W, evictor_context: Evictor.EvictorContext
    ) -> None:
        """Called after the window function: remove from the list what the next evaluation is not to see."""


class _Either(Evictor[Any, Any]):
    """Evicts before the window function or, if told so, after it."""

    def __init__(self, do_evict_after: bool) -> None:
        self._after = bool(do_evict_after)

    def evict_before(self, elements: list[TimestampedValue], size: int, window: Any, evictor_context: Any) -> None:
        if not self._after:
            self._evict(elements)

    def evict_after(self, elements: list[TimestampedValue], size: int, window: Any, evictor_context: Any) -> None:
        if self._after:
            self._evict(elements)

    @abstractmethod
    def _evict(self, elements: list[TimestampedValue]) -> None: ...


class CountEvictor(_Either):
    """Keeps the newest so many records."""

    def __init__(self, max_count: int, do_evict_after: bool = False) -> None:
        super().__init__(do_evict_after)
        self._max_count = check_positive("the count of a CountEvictor", max_count)

    @staticmethod
    def of(max_count: int, do_evict_after: bool = False) -> CountEvictor:
        return CountEvictor(max_count, do_evict_after)

    def _evict(self, elements: list[TimestampedValue]) -> None:
        del elements[: max(0, len(elements) - self._max_count)]


class TimeEvictor(_Either):
    """Keeps the records that are less than a time older than the newest. Does nothing when records have no timestamps."""

    def __init__(self, window_size: int, do_evict_after: bool = False) -> None:
        super().__init__(do_evict_after)
        self._window_size = check_positive("the time of a TimeEvictor", window_size)

    @staticmethod
    def of(window_size: Any, do_evict_after: bool = False) -> TimeEvictor:
        return TimeEvictor(check_millis("the time of a TimeEvictor", window_size), do_evict_after)

    def _evict(self, elements: list[TimestampedValue]) -> None:
        times = [element.timestamp for element in elements if element.timestamp is not None]
        if len(times) == len(elements) > 0:
            oldest = max(times) - self._window_size
            elements[:] = [element for element, time in zip(elements, times, strict=True) if time > oldest]


class DeltaEvictor(_Either):
    """Keeps the records that are closer than a threshold to the last one."""

    def __init__(self, threshold: float, delta_function: DeltaFunction | Any, do_evict_after: bool = False) -> None:
        super().__init__(do_evict_after)
        self._threshold = threshold
        self._delta_function = check_delta_function("DeltaEvictor", delta_function)

    @staticmethod
    def of(threshold: float, delta_function: DeltaFunction | Any, do_evict_after: bool = False) -> DeltaEvictor:
        """
        :param delta_function: a DeltaFunction or a function of (record, last record).
        """
        return DeltaEvictor(threshold, delta_function, do_evict_after)

    def _evict(self, elements: list[TimestampedValue]) -> None:
        if elements:
            delta, last = delta_of(self._delta_function), elements[-1].value
            elements[:] = [element for element in elements if delta(element.value, last) < self._threshold]


def check_evictor(given: Any) -> Evictor[Any, Any]:
    """An evictor as the user gave it."""
    if not isinstance(given, Evictor):
        raise GraphError(f"evictor() takes an Evictor such as CountEvictor.of(100), not {given!r:.200}")
    return given
