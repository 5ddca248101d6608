"""Windows of fixed length: tumbling ones follow each other, sliding ones overlap."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from firesteel.datastream.given import check_millis
from firesteel.datastream.window.assigners import WindowAssigner
from firesteel.datastream.window.times import ByEventTime, ByProcessingTime, TimeWindows
from firesteel.datastream.window.windows import TimeWindow
from firesteel.errors import GraphError


class AlignedWindows(TimeWindows):
    """Windows that are the same for all records and keys: one begins at every `slide`, counted from `offset`."""

    def __init__(self, size: int, slide: int, offset: int) -> None:
        name = type(self).__name__
        if size <= 0 or slide <= 0:
            raise GraphError(f"{name}: windows must be longer than 0 ms and begin more than 0 ms apart")
        if abs(offset) >= slide:
            raise GraphError(
                f"{name}: the offset must be less than the {slide} ms between two windows, not {offset} ms"
            )
        self._size, self._slide, self._offset = size, slide, offset

    @property
    def size(self) -> int:
        """How long a window is, in milliseconds."""
        return self._size

    @property
    def slide(self) -> int:
        """How long after a window the next one begins, in milliseconds."""
        return self._slide

    @property
    def offset(self) -> int:
        """By how much windows begin later than at multiples of `slide`, in milliseconds."""
        return self._offset

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[TimeWindow]:
        time, size = self._time(timestamp, context), self._size
        last = TimeWindow.get_window_start_with_offset(time, self._offset, self._slide)
        return [TimeWindow(start, start + size) for start in range(last, time - size, -self._slide)]


class TumblingEventTimeWindows(ByEventTime, AlignedWindows):
    """One window after the other, by the records' timestamps."""

    def __init__(self, size: int, offset: int) -> None:
        super().__init__(size, size, offset)

    @staticmethod
    def of(size: Any, offset: Any = None) -> TumblingEventTimeWindows:
        """
        :param size: a Time or Duration.
        :param offset: windows begin that much later than at multiples of the size since 1970 in UTC. For days in a time
            zone 8 hours ahead: `of(Time.days(1), Time.hours(-8))`.
        """
        return TumblingEventTimeWindows(_size(size), _offset(offset))

    def __repr__(self) -> str:
        return f"TumblingEventTimeWindows({self._size}, {self._offset})"


class TumblingProcessingTimeWindows(ByProcessingTime, AlignedWindows):
    """One window after the other, by the machine's clock."""

    def __init__(self, size: int, offset: int) -> None:
        super().__init__(size, size, offset)

    @staticmethod
    def of(size: Any, offset: Any = None) -> TumblingProcessingTimeWindows:
        """See `TumblingEventTimeWindows.of`."""
        return TumblingProcessingTimeWindows(_size(size), _offset(offset))

    def __repr__(self) -> str:
        return f"TumblingProcessingTimeWindows({self._size}, {self._offset})"


class SlidingEventTimeWindows(ByEventTime, AlignedWindows):
    """A new window at every slide, by the records' timestamps: a record is in size / slide of them."""

    @staticmethod
    def of(size: Any, slide: Any, offset: Any = None) -> SlidingEventTimeWindows:
        """
        :param size: how long a window is, as a Time or Duration.
        :param slide: how long after a window the next one begins.
        :param offset: windows begin that much later than at multiples of the slide since 1970 in UTC.
        """
        return SlidingEventTimeWindows(_size(size), check_millis("the slide of windows", slide), _offset(offset))

    def __repr__(self) -> str:
        return f"SlidingEventTimeWindows({self._size}, {self._slide}, {self._offset})"


class SlidingProcessingTimeWindows(ByProcessingTime, AlignedWindows):
    """A new window at every slide, by the machine's clock: a record is in size / slide of them."""

    @staticmethod
    def of(size: Any, slide: Any, offset: Any = None) -> SlidingProcessingTimeWindows:
        """See `SlidingEventTimeWindows.of`."""
        return SlidingProcessingTimeWindows(_size(size), check_millis("the slide of windows", slide), _offset(offset))

    def __repr__(self) -> str:
        return f"SlidingProcessingTimeWindows({self._size}, {self._slide}, {self._offset})"


def _size(given: Any) -> int:
    return check_millis("the size of windows", given)


def _offset(given: Any) -> int:
    return 0 if given is None else check_millis("the offset of windows", given)
