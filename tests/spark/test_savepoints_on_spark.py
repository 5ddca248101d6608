"""Savepoints through the client of a job on Spark. Those that processes die in: tests/faults/test_savepoint_deaths.py."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from firesteel.client import RunningJob, dispose
from firesteel.common import Duration, Encoder, Types, WatermarkStrategy
from firesteel.common.job_status import JobStatus
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.coordinator.completed import locate
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.file_system import FileSink
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.datastream.window import TumblingEventTimeWindows
from firesteel.errors import SavepointError
from firesteel.graph.settings import StartSettings
from tests.support.waiting import PATIENCE_S


class _Seconds(TimestampAssigner):
    def extract_timestamp(self, value: int, record_timestamp: int) -> int:
        return value * 1000


def program(env: StreamExecutionEnvironment, out: Path, start_from: str | None = None) -> StreamExecutionEnvironment:
    """Numbers as seconds, counted in windows of ten minutes."""
    env.start = StartSettings(start_from)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(_Seconds())
    numbers = (
        env.from_source(NumberSequenceSource(0, 10**9, 5000), strategy, "numbers").uid("numbers").set_parallelism(1)
    )
    counts = (
        numbers.map(lambda n: (n % 2, 1))
        .key_by(lambda pair: pair[0])
        .window(TumblingEventTimeWindows.of(Duration.of_minutes(10)))
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
        .uid("windows")
    )
    lines = counts.map(lambda pair: f"{pair[0]} {pair[1]}", Types.STRING())
    lines.sink_to(FileSink.for_row_format(str(out), Encoder.simple_string_encoder()).build()).uid("files")
    return env


def counted(out: Path) -> int:
    lines = [line for file in out.rglob("part-*") if file.is_file() for line in file.read_text().splitlines()]
    return sum(int(line.split()[1]) for line in lines)


def started(env: StreamExecutionEnvironment, name: str) -> RunningJob:
    client = env.execute_async(name)
    assert isinstance(client, RunningJob)
    pause = threading.Event()
    for _ in range(int(PATIENCE_S / 0.05)):
        if client.progress.epochs >= 5 or client.get_job_execution_result().done():
            break
        pause.wait(0.05)
    return client


def test_a_job_without_checkpoints_is_suspended_gone_on_with_and_drained(tmp_path: Path) -> None:
    out = tmp_path / "out"

    def new_env() -> StreamExecutionEnvironment:
        env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
        return env.set_default_savepoint_directory(str(tmp_path / "savepoints"))

    first = started(program(new_env(), out), "first")
    beside = first.trigger_savepoint().result(PATIENCE_S)
    suspended = first.stop_with_savepoint(False).result(PATIENCE_S)
    assert first.get_job_status().result() is JobStatus.FINISHED
    assert first.get_job_execution_result().result(PATIENCE_S)
    with pytest.raises(SavepointError, match="the job has ended, its status is FINISHED"):
        first.trigger_savepoint().result(PATIENCE_S)
    second = started(program(new_env(), out, suspended), "second")
    drained = second.stop_with_savepoint(True).result(PATIENCE_S)
    read = max(_read_by(path) for path in (beside, suspended, drained))
    assert _read_by(beside) <= _read_by(suspended) < _read_by(drained) == read == counted(out)
    for path in (beside, suspended, drained):
        dispose(path)
    assert os.listdir(tmp_path / "savepoints") == []


def _read_by(savepoint: str) -> int:
    return int(locate(savepoint).metadata.positions["numbers"]["left"][0][0])
