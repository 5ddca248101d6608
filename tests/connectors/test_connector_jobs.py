"""Connectors in whole jobs, in this process."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.custom_sink import TableSink
from examples.custom_source import TableSource
from firesteel.common import RestartStrategies, Types
from firesteel.datastream import SinkFunction, StreamExecutionEnvironment
from firesteel.datastream.connectors import DataGeneratorSource
from firesteel.errors import UserCodeError
from tests.support.local_engine import LocalRun


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment().set_parallelism(2).enable_checkpointing(1)
    return env.set_restart_strategy(RestartStrategies.fixed_delay_restart(10, 0))


def test_a_custom_sink_is_exactly_once_when_epochs_fail(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    database, staging = str(tmp_path / "counts.db"), str(tmp_path / "staging")
    os.mkdir(staging)
    source = DataGeneratorSource(lambda number: (f"word {number % 3}", 1), 100_000)
    words = env.from_source(source, None, "words").key_by(lambda pair: pair[0])
    words.reduce(lambda a, b: (a[0], a[1] + b[1])).sink_to(TableSink(database, staging)).uid("counts")
    run = LocalRun(env, str(tmp_path / "checkpoints"), fail_at=(2, 4)).run()
    assert len(run.engine.deployments) == 3
    connection = sqlite3.connect(database)
    counts = connection.execute("SELECT word, max(n), count(*) FROM counts GROUP BY word ORDER BY word").fetchall()
    connection.close()
    assert counts == [("word 0", 33334, 33334), ("word 1", 33333, 33333), ("word 2", 33333, 33333)]
    assert os.listdir(staging) == []


def test_a_custom_source_is_read_once(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    path = str(tmp_path / "readings.db")
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE readings (id INTEGER PRIMARY KEY, sensor TEXT, temperature REAL)")
        database.executemany("INSERT INTO readings VALUES (?, 'oven', 1.0)", [(i,) for i in range(1, 101)])
    database.close()
    env.from_source(TableSource(path), None, "readings").map(lambda row: row[0]).add_sink(Appending(tmp_path))
    LocalRun(env, str(tmp_path / "checkpoints")).run()
    assert sorted(_collected(tmp_path)) == list(range(1, 101))


def test_a_generator_function_feeds_a_sink_function(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    def numbers() -> Iterator[int]:
        yield from range(1000)

    env.add_source(numbers).map(lambda number: number * 2).add_sink(Appending(tmp_path))
    LocalRun(env, str(tmp_path / "checkpoints")).run()
    assert sorted(_collected(tmp_path)) == list(range(0, 2000, 2))


def test_a_failing_source_function_fails_the_job_with_its_traceback(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    def numbers() -> Iterator[int]:
        yield 1
        raise OSError("the line is dead")

    env.set_restart_strategy(RestartStrategies.no_restart())
    env.add_source(numbers, "line").uid("line").print()
    with pytest.raises(UserCodeError, match=r"(?s)raise OSError.*the line is dead.*source 'line'"):
        LocalRun(env, str(tmp_path / "checkpoints")).run()


def test_declared_records_are_printed_as_flink_prints_them(
    env: StreamExecutionEnvironment, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    env.from_collection([("a", 1e10)], Types.TUPLE([Types.STRING(), Types.DOUBLE()])).print().set_parallelism(1)
    LocalRun(env, str(tmp_path / "checkpoints")).run()
    assert capsys.readouterr().out == "(a,1.0E10)\n"


class Appending(SinkFunction):
    """A sink function that writes numbers to a file of its own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def open(self, context) -> None:
        self.path = self.directory / f"part-{context.get_index_of_this_subtask()}.txt"
        self.waiting: list[int] = []

    def invoke(self, value: int, context) -> None:
        self.waiting.append(value)

    def flush(self) -> None:
        with open(self.path, "a") as file:
            file.writelines(f"{value}\n" for value in self.waiting)
        self.waiting = []


def _collected(directory: Path) -> list[int]:
    return [int(line) for path in directory.glob("part-*.txt") for line in path.read_text().splitlines()]
