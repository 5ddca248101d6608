"""Windows themselves: what an assigner puts records into.

Windows are part of the keys under which state is kept, so they are immutable, hashable and can be pickled; those that
users write have to be so too.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Iterable
from io import BytesIO
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from firesteel.common.serializer import TypeSerializer

if TYPE_CHECKING:
    from firesteel.datastream.window.assigners import MergingWindowAssigner

MAX_LONG_VALUE = (1 << 63) - 1
"""The end of time, as the last timestamp of windows that have none."""
MIN_LONG_VALUE = -(1 << 63)
"""The timestamp of records that have none, where a trigger or an assigner asks for one."""


class Window(ABC):
    """A bucket of records. What is in it is complete once event time has passed its last timestamp."""

    __slots__ = ()

    @abstractmethod
    def max_timestamp(self) -> int:
        """The largest timestamp that still belongs to the window."""


class TimeWindow(tuple[int, int], Window):
    """The time from `start` to before `end`, in milliseconds.

    It is the pair (start, end), and so compares, sorts and hashes at the speed of a tuple: state is looked up by it for
    every record.
    """

    __slots__ = ()

    def __new__(cls, start: int, end: int) -> TimeWindow:
        return tuple.__new__(cls, (start, end))

    start: int = property(itemgetter(0))  # type: ignore[assignment]
    end: int = property(itemgetter(1))  # type: ignore[assignment]

    def max_timestamp(self) -> int:
        return self[1] - 1

    def intersects(self, other: TimeWindow) -> bool:
        """Whether the two overlap or touch."""
        return self[0] <= other[1] and self[1] >= other[0]

    def cover(self, other: TimeWindow) -> TimeWindow:
        """The smallest window that has both in it."""
        return TimeWindow(min(self[0], other[0]), max(self[1], other[1]))

    @staticmethod
    def get_window_start_with_offset(timestamp: int, offset: int, window_size: int) -> int:
        """Where the window begins that a timestamp falls into, negative ones too."""
        return timestamp - (timestamp - offset) % window_size

    @staticmethod
    def merge_windows(windows: Iterable[TimeWindow], callback: MergingWindowAssigner.MergeCallback[TimeWindow]) -> None:
        """Tell the callback which windows overlap or touch, and what they are together."""
        together: list[TimeWindow] = []
        covered: TimeWindow | None = None
        for window in sorted(windows):
            if covered is not None and covered.intersects(window):
                covered = covered.cover(window)
                together.append(window)
                continue
            if covered is not None and len(together) > 1:
                callback.merge(together, covered)
            covered, together = window, [window]
        if covered is not None and len(together) > 1:
            callback.merge(together, covered)

    def __reduce__(self) -> tuple[Any, ...]:
        return TimeWindow, (self[0], self[1])

    def __repr__(self) -> str:
        return f"TimeWindow(start={self[0]}, end={self[1]})"


class CountWindow(tuple[int], Window):
    """The window with this number, counted from 0 for each key. It is a tuple for the same reason."""

    __slots__ = ()

    def __new__(cls, id: int) -> CountWindow:
        return tuple.__new__(cls, (id,))

    id: int = property(itemgetter(0))  # type: ignore[assignment]

    def max_timestamp(self) -> int:
        return MAX_LONG_VALUE

    def __reduce__(self) -> tuple[Any, ...]:
        return CountWindow, (self[0],)

    def __repr__(self) -> str:
        return f"CountWindow(id={self[0]})"


class GlobalWindow(Window):
    """The one window that everything is in."""

    __slots__ = ()

    @staticmethod
    def get() -> GlobalWindow:
        """Always the same one."""
        return _GLOBAL

    def max_timestamp(self) -> int:
        return MAX_LONG_VALUE

    def __hash__(self) -> int:
        return 0

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __reduce__(self) -> tuple[Any, ...]:
        return GlobalWindow.get, ()

    def __repr__(self) -> str:
        return "GlobalWindow"


_GLOBAL = GlobalWindow()

_PAIR, _ONE = struct.Struct(">qq"), struct.Struct(">q")


class TimeWindowSerializer(TypeSerializer[TimeWindow]):
    """16 bytes: start and end."""

    def serialize(self, element: TimeWindow, stream: BytesIO) -> None:
        stream.write(_PAIR.pack(*element))

    def deserialize(self, stream: BytesIO) -> TimeWindow:
        return TimeWindow(*_PAIR.unpack(stream.read(_PAIR.size)))


class CountWindowSerializer(TypeSerializer[CountWindow]):
    """8 bytes: the number."""

    def serialize(self, element: CountWindow, stream: BytesIO) -> None:
        stream.write(_ONE.pack(element.id))

    def deserialize(self, stream: BytesIO) -> CountWindow:
        return CountWindow(*_ONE.unpack(stream.read(_ONE.size)))


class GlobalWindowSerializer(TypeSerializer[GlobalWindow]):
    """No bytes at all: there is one such window."""

    def serialize(self, element: GlobalWindow, stream: BytesIO) -> None:
        """Nothing needs to be written."""

    def deserialize(self, stream: BytesIO) -> GlobalWindow:
        return GlobalWindow.get()
