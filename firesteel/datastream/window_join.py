"""Joining two streams window by window: `first.join(second).where(key).equal_to(key).window(assigner).apply(function)`,
and `co_group` in the place of `join`.

PyFlink has neither; names and behaviour are those of Flink's Java API. As there, it is one windowed stream: records are
tagged with the stream they are of, united, put into windows by key, and told apart again when a window fires.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from firesteel.common.typeinfo import TypeInformation
from firesteel.datastream.functions import Function, KeySelector, MapFunction, WindowFunction
from firesteel.datastream.given import OutputType, check_function
from firesteel.datastream.join_functions import CoGroupFunction, FlatJoinFunction, JoinFunction, TaggedUnion
from firesteel.datastream.key_selection import Selector, check_key_type
from firesteel.datastream.output_tag import OutputTag
from firesteel.datastream.window import Evictor, Trigger, WindowAssigner

if TYPE_CHECKING:
    from firesteel.datastream.data_stream import DataStream
    from firesteel.datastream.keyed_stream import KeyedStream


class CoGroupedStreams:
    """Two streams whose records are to be brought together; `where` says by which key of the first one."""

    def __init__(self, first: DataStream, second: DataStream, pairs: bool) -> None:
        self._first, self._second, self._pairs = first, second, pairs

    def where(self, key_selector: Selector, key_type: TypeInformation | None = None) -> CoGroupedWhere:
        """The key of the first stream's records, given as for `key_by`."""
        return CoGroupedWhere(
            self._first.key_by(key_selector, check_key_type("where", key_type)), self._second, self._pairs
        )


class CoGroupedWhere:
    """The key of the first stream is known; `equal_to` says that of the second one."""

    def __init__(self, first: KeyedStream, second: DataStream, pairs: bool) -> None:
        self._first, self._second, self._pairs = first, second, pairs

    def equal_to(self, key_selector: Selector, key_type: TypeInformation | None = None) -> CoGroupedKeys:
        """The key of the second stream's records, which has to be of the same type."""
        second = self._second.key_by(key_selector, check_key_type("equal_to", key_type))
        self._first.connect(second)._is_keyed()  # and by keys of one type
        return CoGroupedKeys(self._first, second, self._pairs)


class CoGroupedKeys:
    """Two streams with keys; `window` says which records of a key belong together."""

    def __init__(self, first: KeyedStream, second: KeyedStream, pairs: bool) -> None:
        self._first, self._second, self._pairs = first, second, pairs

    def window(self, window_assigner: WindowAssigner[Any, Any]) -> CoGroupedWindows:
        """Put the records of both streams into windows: an assigner is given `TaggedUnion`s."""
        key = _TaggedKey(self._first._inputs[0].key_selector, self._second._inputs[0].key_selector)
        tagged = [stream.map(_Tag(tag)).name(f"Tag {tag + 1}") for tag, stream in enumerate(self._streams())]
        windowed = tagged[0].union(tagged[1]).key_by(key, self._first._key_type).window(window_assigner)
        return CoGroupedWindows(windowed, self._pairs)

    def _streams(self) -> Iterator[DataStream]:
        """Both without their keys: tagging is done where records come from, and not after another shuffle."""
        for stream in (self._first, self._second):
            yield stream.union()


class CoGroupedWindows:
    """Two streams in windows. `apply` ends the description; the other methods are about this very object, as in Flink."""

    def __init__(self, windowed: Any, pairs: bool) -> None:
        self._windowed, self._pairs = windowed, pairs

    def trigger(self, trigger: Trigger[Any, Any]) -> CoGroupedWindows:
        """Says when windows are evaluated; it is given `TaggedUnion`s."""
        self._windowed.trigger(trigger)
        return self

    def evictor(self, evictor: Evictor[Any, Any]) -> CoGroupedWindows:
        """Takes records out of a window when it is evaluated; it is given `TaggedUnion`s."""
        self._windowed.evictor(evictor)
        return self

    def allowed_lateness(self, time_ms: int) -> CoGroupedWindows:
        """For how long a window takes late records. It fires again for each, with all pairs or groups there are."""
        self._windowed.allowed_lateness(time_ms)
        return self

    def side_output_late_data(self, output_tag: OutputTag) -> CoGroupedWindows:
        """Sends records that come too late to a side output, as `TaggedUnion`s."""
        self._windowed.side_output_late_data(output_tag)
        return self

    def apply(self, function: Any, output_type: OutputType = None) -> DataStream:
        """Give a join every pair of a window, a co-group all records of both streams.

        :param function: of a join a JoinFunction, a FlatJoinFunction, or a function of two records that gives one output; of
            a co-group a CoGroupFunction, or a function of two lists that gives any number.
        """
        what = "Window Join" if self._pairs else "Window CoGroup"
        stream: DataStream = self._windowed.apply(self._evaluated(function), output_type).name(what)
        return stream

    def _evaluated(self, function: Any) -> _CoGrouped:
        if not self._pairs:
            checked = check_function(function, CoGroupFunction, "apply")
            return _CoGrouped(checked, checked.co_group if isinstance(checked, CoGroupFunction) else checked)
        if isinstance(function, FlatJoinFunction):
            return _CoGrouped(function, _FlatPairs(function.join))
        checked = check_function(function, JoinFunction, "apply")
        return _CoGrouped(checked, _Pairs(checked.join if isinstance(checked, JoinFunction) else checked))


class _Tag(MapFunction):
    def __init__(self, tag: int) -> None:
        self._tag = tag

    def map(self, value: Any) -> TaggedUnion:
        return TaggedUnion(self._tag, value)


class _Wrapping(Function):
    """Opens and closes what it wraps."""

    def __init__(self, *wrapped: Any) -> None:
        self._wrapped = [each for each in wrapped if isinstance(each, Function)]

    def open(self, runtime_context: Any) -> None:
        for each in self._wrapped:
            each.open(runtime_context)

    def close(self) -> None:
        for each in self._wrapped:
            each.close()


class _TaggedKey(_Wrapping, KeySelector):
    def __init__(self, first: Any, second: Any) -> None:
        super().__init__(first, second)
        self._keys = [each.get_key if isinstance(each, KeySelector) else each for each in (first, second)]

    def get_key(self, value: TaggedUnion) -> Any:
        return self._keys[value[0]](value[1])


class _CoGrouped(_Wrapping, WindowFunction[Any, Any, Any, Any]):
    """Tells the records of a window apart."""

    def __init__(self, function: Any, call: Callable[[list[Any], list[Any]], Iterable[Any] | None]) -> None:
        super().__init__(function)
        self._call = call

    def apply(self, key: Any, window: Any, inputs: Iterable[TaggedUnion]) -> Iterable[Any] | None:
        sides: tuple[list[Any], list[Any]] = [], []
        for tag, value in inputs:
            sides[tag].append(value)
        return self._call(*sides)


class _Pairs:
    """Every pair, one output each."""

    def __init__(self, join: Callable[[Any, Any], Any]) -> None:
        self._join = join

    def __call__(self, first: list[Any], second: list[Any]) -> Iterator[Any]:
        join = self._join
        return (join(one, two) for one in first for two in second)


class _FlatPairs(_Pairs):
    """Every pair, any number of outputs each."""

    def __call__(self, first: list[Any], second: list[Any]) -> Iterator[Any]:
        for outputs in super().__call__(first, second):
            if outputs is not None:
                yield from outputs
