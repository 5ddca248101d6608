"""Splits, alignment, idleness and an interval join on a real Spark, with a source that fails on the way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Duration, Time, WatermarkStrategy
from firesteel.datastream import ProcessJoinFunction, StreamExecutionEnvironment
from firesteel.datastream.connectors.file_system import FileSource, StreamFormat
from firesteel.datastream.window import TumblingEventTimeWindows
from firesteel.testing import FailingSource
from tests.support.scheduled import Scheduled
from tests.support.slicing import Sliced

RECORDS, KEYS = 12_000, 50


class Both(ProcessJoinFunction):
    def process_element(self, left: Any, right: Any, ctx: Any) -> Any:
        yield int(left), int(right), ctx.get_timestamp()


def test_files_are_joined_exactly_once_while_one_side_is_held_back(
    env: StreamExecutionEnvironment, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The right side has a record for every tenth of the left, so it runs ahead unless it is held back."""
    for side, step in (("left", 1), ("right", 10)):
        (tmp_path / side).mkdir()
        for part in range(3):  # for two subtasks, so that one of them takes a second file
            numbers = range(part * RECORDS // 3, (part + 1) * RECORDS // 3, step)
            (tmp_path / side / f"{part}").write_text("".join(f"{number}\n" for number in numbers))
    strategy = (
        WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(RECORDS))  # files overlap as they are read
        .with_timestamp_assigner(lambda value, _: int(value))
        .with_watermark_alignment("sides", Duration.of_millis(RECORDS // 6))
    )
    env.enable_checkpointing(200)
    streams = []
    for side in ("left", "right"):
        source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(tmp_path / side)).build()
        sliced = Sliced(source, 8_000)
        read = FailingSource(sliced) if side == "left" else sliced
        streams.append(env.from_source(read, strategy, side).key_by(lambda value: int(value) % KEYS))
    joined = streams[0].interval_join(streams[1]).between(Time.milliseconds(-KEYS), Time.milliseconds(KEYS))
    with joined.process(Both()).execute_and_collect("joined") as results:
        found = sorted(results)
    assert found == sorted(
        (left, right, max(left, right))
        for left in range(0, RECORDS, 10)
        for right in (left - KEYS, left, left + KEYS)
        if 0 <= right < RECORDS
    )
    assert "restarts from its last checkpoint" in caplog.text


@pytest.mark.parametrize("pre_combined", [False, True])
def test_a_subtask_that_was_idle_loses_no_record_when_it_has_some_again(
    env: StreamExecutionEnvironment, pre_combined: bool
) -> None:
    """The row that says so comes through Spark's shuffle before all records of the epoch."""
    end = 20_000
    times = range(end)
    busy, falls_silent = [list(times[:10]), [10], times[11:]], [list(times[:10]), [], times[11:]]
    source = Scheduled(subtasks=[busy, falls_silent])
    strategy = (
        WatermarkStrategy.for_monotonous_timestamps()
        .with_timestamp_assigner(lambda value, _: int(value))
        .with_idleness(Duration.of_millis(1))
    )
    windows = env.from_source(source, strategy, "source").map(lambda time: (time % 8, 1)).key_by(lambda pair: pair[0])
    counts = windows.window(TumblingEventTimeWindows.of(Time.milliseconds(1000))).pre_combine(pre_combined).sum(1)
    with counts.execute_and_collect("idle") as results:
        assert sum(count for _, count in results) == 10 + 1 + 2 * (end - 11) + 10
