"""A job whose input had ended, and has more of it when it is started again: event time goes on from where it was before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Duration, TimestampAssigner, WatermarkStrategy
from firesteel.datastream import DataStream, KeyedProcessFunction, StreamExecutionEnvironment
from firesteel.datastream.window import TumblingEventTimeWindows
from firesteel.graph.nodes import Collect
from firesteel.runtime.flow import MAX_WATERMARK, MIN_WATERMARK, Channel, Gate
from tests.support.local_engine import LocalRun
from tests.support.scheduled import Scheduled

Reading = tuple[str, int]


class Second(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[1])


STRATEGY = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())


class Alarm(KeyedProcessFunction):
    """After 5 ms, and says what the watermark was when the record came."""

    def process_element(self, value: Reading, ctx: Any) -> Any:
        ctx.timer_service().register_event_time_timer(value[1] + 5)
        yield value[1], ctx.timer_service().current_watermark()

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield "alarm", timestamp


def run(root: Path, at_source: bool, program: Any, *epochs: list[Reading], parallelism: int = 1) -> list[Any]:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism).enable_checkpointing(50)
    source = Scheduled(*epochs)
    if at_source:
        readings = env.from_source(source, STRATEGY, "readings").uid("readings")
    else:
        readings = env.from_source(source, source_name="readings").uid("readings")
        readings = readings.assign_timestamps_and_watermarks(STRATEGY).uid("times")
    program(readings.key_by(lambda reading: reading[0]))._end(Collect(), "Collect")
    return LocalRun(env, str(root)).run().collected()


def sums(keyed: Any, pre_combined: bool) -> DataStream:
    windows = keyed.window(TumblingEventTimeWindows.of(Duration.of_millis(10))).pre_combine(pre_combined)
    return windows.reduce(lambda a, b: (a[0], a[1] + b[1])).uid("sums")


@pytest.mark.parametrize("pre_combined", [False, True])
@pytest.mark.parametrize("at_source", [False, True])
def test_windows_take_the_new_records(tmp_path: Path, at_source: bool, pre_combined: bool) -> None:
    def again(*epochs: list[Reading]) -> list[Any]:
        return run(tmp_path, at_source, lambda keyed: sums(keyed, pre_combined), *epochs)

    first = [("a", 1), ("a", 2), ("b", 12)]
    assert sorted(again(first)) == [("a", 3), ("b", 12)]
    assert again(first) == []
    assert sorted(again(first, [("a", 21)], [("a", 5), ("b", 33), ("a", 22)])) == [("a", 43), ("b", 33)]  # 5 is late


@pytest.mark.parametrize("at_source", [False, True])
def test_timers_fire_by_the_new_records(tmp_path: Path, at_source: bool) -> None:
    def again(*epochs: list[Reading]) -> list[Any]:
        return run(tmp_path, at_source, lambda keyed: keyed.process(Alarm()).uid("alarm"), *epochs)

    assert again([("a", 10)], [("a", 12)]) == [(10, MIN_WATERMARK), (12, 9), ("alarm", 15), ("alarm", 17)]
    assert again([("a", 10)], [("a", 12)]) == []
    found = again([("a", 10)], [("a", 12)], [("a", 20)], [("a", 40)])
    assert found == [(20, 9), (40, 19), ("alarm", 25), ("alarm", 45)]


def test_a_gate_remembers_how_far_its_channels_were_before_the_end() -> None:
    def gate() -> tuple[Gate, Channel, Channel]:
        made = Gate(lambda watermark: None, lambda idle: None)
        return made, made.channel("one", lambda values, times: None), made.channel("other", lambda values, times: None)

    before, one, other = gate()
    one.advance(10)
    one.advance(MAX_WATERMARK)
    other.advance(20)
    assert before.snapshot()["watermark"] == 20
    assert before.snapshot()["channels"]["one"] == (
        MAX_WATERMARK,
        False,
    )  # or event time would wait for it after a restore
    other.advance(MAX_WATERMARK)
    after, one, other = gate()
    after.restore(before.snapshot())
    assert (after.watermark, one.watermark, other.watermark) == (10, 10, 20)
