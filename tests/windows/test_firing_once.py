"""Windows do not fire again, and lose nothing, where it is easy to get wrong: at their last millisecond, in a program with
another lateness, and when sessions merge."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from firesteel.common import Time
from firesteel.datastream import AggregateFunction, DataStream
from firesteel.datastream.window import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    EventTimeSessionWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from firesteel.errors import UserCodeError
from firesteel.testing import FunctionHarness

TUMBLING = TumblingEventTimeWindows.of(Time.milliseconds(10))


def sums(assigner: Any, lateness: int = 0, trigger: Any = None) -> Callable[[DataStream], DataStream]:
    def build(stream: DataStream) -> DataStream:
        windows = stream.key_by(lambda record: record[0]).window(assigner).allowed_lateness(lateness)
        return (windows if trigger is None else windows.trigger(trigger)).sum(1).uid("sums")

    return build


@pytest.mark.parametrize("time", [8, 9])
def test_a_continuous_trigger_fires_for_the_last_time_at_the_end_of_the_window(time: int) -> None:
    trigger = ContinuousEventTimeTrigger.of(Time.milliseconds(3))
    with FunctionHarness.around(sums(TUMBLING, 10, trigger)) as h:
        h.process(("a", 1), time)
        for watermark in range(9, 25):
            h.watermark(watermark)
        assert h.output() == [("a", 1)]
        assert h.timers() == []


def test_a_continuous_trigger_by_the_clock_fires_for_a_record_of_the_last_millisecond() -> None:
    trigger = ContinuousProcessingTimeTrigger.of(Time.milliseconds(3))
    with FunctionHarness.around(sums(TumblingProcessingTimeWindows.of(Time.milliseconds(10)), 0, trigger)) as h:
        h.set_clock(9)
        h.process(("a", 1))
        h.set_clock(30)
        assert h.output() == [("a", 1)]
        assert h.timers() == []


def test_a_window_that_was_kept_for_late_records_is_not_fired_again_by_a_program_that_takes_none() -> None:
    with FunctionHarness.around(sums(TUMBLING, 10)) as h:
        h.process(("a", 1), 5).process(("a", 2), 15).watermark(12)
        assert h.output() == [("a", 1)]
        snapshot = h.snapshot()
    with FunctionHarness.around(sums(TUMBLING), restore=snapshot) as h:
        h.watermark(13)
        assert h.output() == []
        h.watermark(40)
        assert h.output() == [("a", 2)]
        assert h.state("/window-contents") == {}


class Stub(AggregateFunction):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        return accumulator + int(value[1])

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> Any:
        """Nobody has needed it so far."""


def test_sessions_that_cannot_be_merged_are_an_error_instead_of_lost_records() -> None:
    def build(stream: DataStream) -> DataStream:
        sessions = stream.key_by(lambda record: record[0]).window(
            EventTimeSessionWindows.with_gap(Time.milliseconds(10))
        )
        return sessions.aggregate(Stub())

    with FunctionHarness.around(build) as h:
        h.process(("a", 1), 0).process(("a", 2), 15)
        with pytest.raises(UserCodeError, match=r"Stub.merge\(\) returned None: it must return"):
            h.process(("a", 4), 8)
