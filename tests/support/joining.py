"""An interval join driven record by record, and what it has to find."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from firesteel.common import Time
from firesteel.datastream import OutputTag, ProcessJoinFunction, StreamExecutionEnvironment
from firesteel.datastream.interval_join import IntervalJoined
from firesteel.graph.shipping import pack_plan
from firesteel.runtime.interval_join import LEFT, RIGHT
from firesteel.testing import FunctionHarness
from firesteel.testing.recording import FUNCTION

LEFT_LATE, RIGHT_LATE = OutputTag("left late"), OutputTag("right late")


class Pairs(ProcessJoinFunction):
    """Every pair with what the context says about it."""

    def process_element(self, left, right, ctx):  # type: ignore[no-untyped-def]
        yield left, right, ctx.get_left_timestamp(), ctx.get_right_timestamp(), ctx.get_timestamp()


def described(lower: int, upper: int) -> IntervalJoined:
    """A join of two streams of (key, ...) that nobody reads."""
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    left, right = (env.from_collection([]).key_by(lambda record: record[0]) for _ in range(2))
    return left.interval_join(right).between(Time.milliseconds(lower), Time.milliseconds(upper))


def harness(join: IntervalJoined, function: ProcessJoinFunction | None = None) -> FunctionHarness:
    """The join as the program describes it, for a test to give it records: `process1(record, time)`, `process2`."""
    stream = join.process(function or Pairs()).uid(FUNCTION)
    stream.print()
    for tag in (join._left_late, join._right_late):
        if tag is not None:
            stream.get_side_output(tag).print()
    made = FunctionHarness.__new__(FunctionHarness)
    made._start(pack_plan(stream.get_execution_environment().plan()), 0, {}, True, None)
    return made


def held(driven: FunctionHarness) -> int:
    """How many records wait, and timers."""
    waiting = [
        records for side in (LEFT, RIGHT) for by_time in driven.state(side).values() for records in by_time.values()
    ]
    return sum(map(len, waiting)) + len(driven.timers())


@dataclass(frozen=True)
class Event:
    """A record of a side, or how far the watermark of one has come."""

    side: int
    time: int
    key: Any = None  # None: a watermark


class JoinOracle:
    """By the definition, with no state but all that ever happened: every record is compared with every earlier one.

    Two records are a pair if neither was late, they are of one key and within the interval, and no watermark came between
    them that let the join forget the earlier one.
    """

    def __init__(self, lower: int, upper: int) -> None:
        self._lower, self._upper = lower, upper
        self._watermarks = [-(2**63), -(2**63)]
        self._reached: list[int] = [-(2**63)]  # the join's watermarks, one after the other
        self._past: list[tuple[int, Event, Any, int]] = []  # side, event, record, watermarks so far
        self.pairs: list[Any] = []
        self.late: tuple[list[Any], list[Any]] = ([], [])

    def happens(self, event: Event, record: Any) -> None:
        if event.key is None:
            self._watermarks[event.side] = max(self._watermarks[event.side], event.time)
            if min(self._watermarks) > self._reached[-1]:
                self._reached.append(min(self._watermarks))
            return
        if event.time < self._reached[-1]:
            self.late[event.side].append(record)
            return
        for side, other, other_record, seen in self._past:
            if side == event.side or other.key != event.key:
                continue
            (left, one), (right, two) = (event, record), (other, other_record)
            if event.side:
                (left, one), (right, two) = (other, other_record), (event, record)
            apart = right.time - left.time
            kept_until = other.time + (max(0, self._upper) if side == 0 else max(0, -self._lower))
            forgotten = any(watermark >= kept_until for watermark in self._reached[seen:])
            if self._lower <= apart <= self._upper and not forgotten:
                self.pairs.append((one, two, left.time, right.time, max(left.time, right.time)))
        self._past.append((event.side, event, record, len(self._reached)))
