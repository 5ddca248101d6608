"""Session windows: a key's records with no more than a gap between any two that follow each other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable
from typing import Any

from firesteel.datastream.given import check_millis
from firesteel.datastream.window.assigners import MergingWindowAssigner, WindowAssigner
from firesteel.datastream.window.times import ByEventTime, ByProcessingTime, TimeWindows
from firesteel.datastream.window.windows import TimeWindow
from firesteel.errors import GraphError


class SessionWindowTimeGapExtractor(ABC):
    """Says for each record how long after it its session is over."""

    @abstractmethod
    def extract(self, element: Any) -> int:
        """The gap in milliseconds, more than 0."""


class _Sessions(TimeWindows, MergingWindowAssigner[Any, TimeWindow]):
    """Every record begins as a session of its own, from its time to the end of the gap; those that touch become one."""

    @abstractmethod
    def _gap(self, element: Any) -> int: ...

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[TimeWindow]:
        start = self._time(timestamp, context)
        return [TimeWindow(start, start + self._gap(element))]

    def merge_windows(
        self, windows: Iterable[TimeWindow], callback: MergingWindowAssigner.MergeCallback[TimeWindow]
    ) -> None:
        TimeWindow.merge_windows(windows, callback)


class _Fixed(_Sessions):
    def __init__(self, session_gap: int) -> None:
        if session_gap <= 0:
            raise GraphError(f"{type(self).__name__}: the gap must be more than 0 ms, not {session_gap} ms")
        self._session_gap = session_gap

    def _gap(self, element: Any) -> int:
        return self._session_gap

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._session_gap})"


class _Dynamic(_Sessions):
    def __init__(self, session_window_time_gap_extractor: SessionWindowTimeGapExtractor | Callable[[Any], int]) -> None:
        given = session_window_time_gap_extractor
        if not isinstance(given, SessionWindowTimeGapExtractor) and (not callable(given) or isinstance(given, type)):
            raise GraphError(
                f"with_dynamic_gap() takes a SessionWindowTimeGapExtractor or a function of a record, not {given!r:.200}"
            )
        self._extractor = given

    def _gap(self, element: Any) -> int:
        given = self._extractor
        gap = given.extract(element) if isinstance(given, SessionWindowTimeGapExtractor) else given(element)
        if gap <= 0:
            raise ValueError(f"a session's gap must be more than 0 ms, and the extractor gave {gap!r}")
        return gap

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class EventTimeSessionWindows(ByEventTime, _Fixed):
    """Sessions by the records' timestamps."""

    @staticmethod
    def with_gap(size: Any) -> EventTimeSessionWindows:
        """
        :param size: a Time or Duration without a record after which a session is over.
        """
        return EventTimeSessionWindows(check_millis("the gap of sessions", size))

    @staticmethod
    def with_dynamic_gap(
        extractor: SessionWindowTimeGapExtractor | Callable[[Any], int],
    ) -> DynamicEventTimeSessionWindows:
        """
        :param extractor: gives each record's own gap in milliseconds.
        """
        return DynamicEventTimeSessionWindows(extractor)


class ProcessingTimeSessionWindows(ByProcessingTime, _Fixed):
    """Sessions by the machine's clock."""

    @staticmethod
    def with_gap(size: Any) -> ProcessingTimeSessionWindows:
        """See `EventTimeSessionWindows.with_gap`."""
        return ProcessingTimeSessionWindows(check_millis("the gap of sessions", size))

    @staticmethod
    def with_dynamic_gap(
        extractor: SessionWindowTimeGapExtractor | Callable[[Any], int],
    ) -> DynamicProcessingTimeSessionWindows:
        """See `EventTimeSessionWindows.with_dynamic_gap`."""
        return DynamicProcessingTimeSessionWindows(extractor)


class DynamicEventTimeSessionWindows(ByEventTime, _Dynamic):
    """Sessions by the records' timestamps, with a gap of each record's own."""

    @staticmethod
    def with_dynamic_gap(
        extractor: SessionWindowTimeGapExtractor | Callable[[Any], int],
    ) -> DynamicEventTimeSessionWindows:
        """See `EventTimeSessionWindows.with_dynamic_gap`."""
        return DynamicEventTimeSessionWindows(extractor)


class DynamicProcessingTimeSessionWindows(ByProcessingTime, _Dynamic):
    """Sessions by the machine's clock, with a gap of each record's own."""

    @staticmethod
    def with_dynamic_gap(
        extractor: SessionWindowTimeGapExtractor | Callable[[Any], int],
    ) -> DynamicProcessingTimeSessionWindows:
        """See `EventTimeSessionWindows.with_dynamic_gap`."""
        return DynamicProcessingTimeSessionWindows(extractor)
