"""Joining two keyed streams on time: `left.interval_join(right).between(lower, upper).process(function)`.

PyFlink has no interval join; names and behaviour are those of Flink's Java API.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from firesteel.common.time import Duration, Time
from firesteel.datastream.connected_streams import ConnectedStreams
from firesteel.datastream.given import OutputType
from firesteel.datastream.join_functions import ProcessJoinFunction
from firesteel.datastream.output_tag import OutputTag
from firesteel.errors import GraphError
from firesteel.graph import nodes

if TYPE_CHECKING:
    from firesteel.datastream.data_stream import DataStream


class IntervalJoin:
    """Two keyed streams that are to be joined; how far apart in time is still to be said."""

    def __init__(self, streams: ConnectedStreams) -> None:
        streams._is_keyed()  # and by keys of one type
        self._streams = streams

    def between(self, lower_bound: Time | Duration, upper_bound: Time | Duration) -> IntervalJoined:
        """Join a left record with the right ones of its key from `lower_bound` to `upper_bound` after it, both included.

        Bounds may be negative: `between(Time.minutes(-5), Time.minutes(0))` are the five minutes before a left record.
        """
        lower, upper = _millis("lower", lower_bound), _millis("upper", upper_bound)
        if lower > upper:
            raise GraphError(
                f"between({lower_bound}, {upper_bound}) has its bounds upside down: the lower one comes first"
            )
        return IntervalJoined(self._streams, lower, upper)


@dataclass(frozen=True)
class IntervalJoined:
    """An interval join with its bounds. `process` ends the description; the other methods return a changed copy."""

    _streams: ConnectedStreams
    _lower: int
    _upper: int
    _lower_inclusive: bool = True
    _upper_inclusive: bool = True
    _left_late: OutputTag | None = None
    _right_late: OutputTag | None = None

    def lower_bound_exclusive(self) -> IntervalJoined:
        """Leave out records that are exactly the lower bound apart."""
        return replace(self, _lower_inclusive=False)

    def upper_bound_exclusive(self) -> IntervalJoined:
        """Leave out records that are exactly the upper bound apart."""
        return replace(self, _upper_inclusive=False)

    def side_output_left_late_data(self, output_tag: OutputTag) -> IntervalJoined:
        """Send left records that come behind the watermark to this side output; without it they are dropped."""
        return replace(self, _left_late=_tag("side_output_left_late_data", output_tag))

    def side_output_right_late_data(self, output_tag: OutputTag) -> IntervalJoined:
        """Send right records that come behind the watermark to this side output; without it they are dropped."""
        return replace(self, _right_late=_tag("side_output_right_late_data", output_tag))

    def process(self, process_join_function: ProcessJoinFunction, output_type: OutputType = None) -> DataStream:
        """Give every pair to the function. What it yields has the later timestamp of the pair."""
        if not isinstance(process_join_function, ProcessJoinFunction):
            raise GraphError(
                f"process() of an interval join takes a ProcessJoinFunction, not {process_join_function!r:.200}"
            )
        lower, upper = self._lower + (not self._lower_inclusive), self._upper - (not self._upper_inclusive)
        if lower > upper:
            raise GraphError(
                f"no two records can be joined: between {self._lower} ms and {self._upper} ms there is nothing left "
                f"without the bounds themselves"
            )
        join = nodes.IntervalJoin(process_join_function, lower, upper, self._left_late, self._right_late)
        return self._streams._then(join, "Interval Join", output_type)


def _millis(which: str, bound: Time | Duration) -> int:
    if isinstance(bound, Time):
        return bound.to_milliseconds()
    if not isinstance(bound, Duration):
        raise GraphError(
            f"the {which} bound of an interval join is a Time or a Duration such as Time.seconds(-5), not {bound!r:.200}"
        )
    if bound.nanos % 1_000_000:
        raise GraphError(f"the {which} bound of an interval join is in whole milliseconds, and {bound} is finer")
    return bound.to_millis()


def _tag(method: str, output_tag: Any) -> OutputTag:
    if not isinstance(output_tag, OutputTag):
        raise GraphError(f"{method}() takes an OutputTag, not {output_tag!r:.200}")
    return output_tag
