"""How streams are put into windows: the methods of streams for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from firesteel.datastream.flink1_environment import TimeCharacteristic
from firesteel.datastream.window import (
    CountSlidingWindowAssigner,
    CountTumblingWindowAssigner,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    WindowAssigner,
)
from firesteel.datastream.window_join import CoGroupedStreams
from firesteel.datastream.windowed_stream import AllWindowedStream, WindowedStream
from firesteel.errors import GraphError

if TYPE_CHECKING:
    from firesteel.datastream.data_stream import DataStream
    from firesteel.datastream.keyed_stream import KeyedStream


class WindowOperations:
    """What streams can do. Windows of each key are for keyed streams; saying so beats not having the method."""

    def window_all(self, window_assigner: WindowAssigner[Any, Any]) -> AllWindowedStream:
        """Put all records into windows, whatever their keys. One subtask does all of it."""
        stream: DataStream = self  # type: ignore[assignment]
        return AllWindowedStream(stream, window_assigner)

    def count_window_all(self, size: int, slide: int = 0) -> AllWindowedStream:
        """Windows of `size` records, a new one at every `slide` records; 0: one after the other."""
        return self.window_all(_counting(size, slide))

    def time_window_all(self, size: Any, slide: Any = None) -> AllWindowedStream:
        """Flink 1.x. Today: `window_all(TumblingEventTimeWindows.of(size))` and its kin."""
        return self.window_all(_timed(self, size, slide))

    def join(self, other_stream: DataStream) -> CoGroupedStreams:
        """Pairs of records with the same key in the same window: `join(other).where(key).equal_to(key).window(assigner)
        .apply(function)`."""
        return self._with("join", other_stream, pairs=True)

    def co_group(self, other_stream: DataStream) -> CoGroupedStreams:
        """All records of both streams with the same key in the same window, for one call: `co_group(other).where(key)
        .equal_to(key).window(assigner).apply(function)`."""
        return self._with("co_group", other_stream, pairs=False)

    def _with(self, method: str, other_stream: DataStream, pairs: bool) -> CoGroupedStreams:
        stream: DataStream = self  # type: ignore[assignment]
        stream._check_other(method, other_stream)
        return CoGroupedStreams(stream, other_stream, pairs)

    def window(self, window_assigner: WindowAssigner[Any, Any]) -> Any:
        """Only keyed streams have windows of each key."""
        raise _no_keys("window")

    def count_window(self, size: int, slide: int = 0) -> Any:
        """Only keyed streams have windows of each key."""
        raise _no_keys("count_window")

    def time_window(self, size: Any, slide: Any = None) -> Any:
        """Only keyed streams have windows of each key."""
        raise _no_keys("time_window")


class KeyedWindowOperations(WindowOperations):
    """What keyed streams can do."""

    def window(self, window_assigner: WindowAssigner[Any, Any]) -> WindowedStream:
        """Put the records of each key into windows."""
        stream: KeyedStream = self  # type: ignore[assignment]
        return WindowedStream(stream, window_assigner)

    def count_window(self, size: int, slide: int = 0) -> WindowedStream:
        """Windows of `size` records of a key, a new one at every `slide` records; 0: one after the other."""
        return self.window(_counting(size, slide))

    def time_window(self, size: Any, slide: Any = None) -> WindowedStream:
        """Flink 1.x. Today: `window(TumblingEventTimeWindows.of(size))` and its kin."""
        return self.window(_timed(self, size, slide))


def _counting(size: int, slide: int) -> WindowAssigner[Any, Any]:
    return CountTumblingWindowAssigner(size) if slide == 0 else CountSlidingWindowAssigner(size, slide)


def _timed(stream: Any, size: Any, slide: Any) -> WindowAssigner[Any, Any]:
    """Flink 1.x chose the time by a setting of the environment."""
    characteristic = stream.get_execution_environment().get_stream_time_characteristic()
    if characteristic is TimeCharacteristic.ProcessingTime:
        if slide is None:
            return TumblingProcessingTimeWindows.of(size)
        return SlidingProcessingTimeWindows.of(size, slide)
    return TumblingEventTimeWindows.of(size) if slide is None else SlidingEventTimeWindows.of(size, slide)


def _no_keys(method: str) -> GraphError:
    return GraphError(
        f"{method}() makes windows of each key, and this stream has no keys: call key_by(...) first, or {method}_all(...) "
        f"for windows of the whole stream"
    )
