"""Splits, alignment and an interval join on a real Spark, with a source that fails on the way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Duration, Time, WatermarkStrategy
from firesteel.datastream import ProcessJoinFunction, StreamExecutionEnvironment
from firesteel.datastream.connectors.file_system import FileSource, StreamFormat
from firesteel.testing import FailingSource
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
