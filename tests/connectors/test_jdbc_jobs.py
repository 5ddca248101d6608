"""Relational sinks in whole jobs: real checkpoints, real rollbacks, real servers."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Encoder, RestartStrategies, Types
from firesteel.connectors.jdbc_local_transactions import LocalTransactionCommitter
from firesteel.connectors.jdbc_prepared import PreparedCommitter
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors import NumberSequenceSource
from firesteel.datastream.connectors.file_system import FileSink
from firesteel.datastream.connectors.jdbc import JdbcExecutionOptions, JdbcSink
from firesteel.errors import ConfigurationError, SinkError
from firesteel.graph.guarantee import Level
from tests.connectors.jdbc_killing import MODES, exactly_once, in_doubt
from tests.connectors.killing import files_below
from tests.support.databases import Database
from tests.support.local_engine import LocalRun
from tests.support.slicing import Sliced

COUNT = 60
TYPE = Types.ROW_NAMED(["n", "half"], [Types.INT(), Types.INT()])
INSERT = "INSERT INTO numbers (n, half) VALUES (?, ?)"


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment().set_parallelism(2).enable_checkpointing(1)
    return env.set_restart_strategy(RestartStrategies.fixed_delay_restart(5, 0))


@pytest.fixture
def numbers(database: Database) -> Database:
    database.run("CREATE TABLE numbers (n INT, half INT)")
    return database


def rows(env: StreamExecutionEnvironment, size: int = 7) -> Any:
    stream = env.from_source(Sliced(NumberSequenceSource(0, COUNT - 1), size), None, "numbers")
    return stream.map(lambda n: (n, n // 2), Types.TUPLE([Types.LONG(), Types.LONG()]))


def in_table(database: Database) -> Counter[Any]:
    return Counter(database.run("SELECT n, half FROM numbers"))


ONCE = Counter((n, n // 2) for n in range(COUNT))


@pytest.mark.parametrize("mode", MODES)
def test_a_job_that_fails_writes_every_row_once(
    env: StreamExecutionEnvironment, numbers: Database, tmp_path: Path, mode: str
) -> None:
    sink = JdbcSink.exactly_once_sink(INSERT, TYPE, numbers.options(), jdbc_exactly_once_options=exactly_once(mode))
    stream = rows(env)
    stream.add_sink(sink).uid("table")
    stream.sink_to(FileSink.for_row_format(str(tmp_path / "out"), Encoder.simple_string_encoder()).build()).uid("files")
    assert env.guarantee().level is Level.EXACTLY_ONCE
    run = LocalRun(env, str(tmp_path / "checkpoints"), fail_at=(3, 6)).run()
    assert len(run.engine.deployments) == 3
    assert in_table(numbers) == ONCE
    files = [path for path in files_below(str(tmp_path / "out")) if "/." not in path]
    assert sum(len(Path(path).read_text().splitlines()) for path in files) == COUNT
    assert in_doubt(numbers) == []
    assert [path for path in files_below(str(tmp_path / "checkpoints")) if "/sinks/" in path] == []


def test_at_least_once_writes_rows_again_and_says_so(
    env: StreamExecutionEnvironment, numbers: Database, tmp_path: Path
) -> None:
    rows(env).add_sink(JdbcSink.sink(INSERT, TYPE, numbers.options())).uid("table")
    guarantee = env.guarantee()
    assert guarantee.level is Level.AT_LEAST_ONCE and "JdbcSink" in guarantee.text
    LocalRun(env, str(tmp_path / "checkpoints"), fail_at=(3,)).run()
    written = in_table(numbers)
    assert written.keys() == ONCE.keys() and written >= ONCE


@pytest.mark.parametrize("mode", MODES)
def test_a_row_that_is_refused_fails_the_job_and_is_written_when_it_is_mended(
    env: StreamExecutionEnvironment, numbers: Database, tmp_path: Path, mode: str
) -> None:
    numbers.run("CREATE UNIQUE INDEX once ON numbers (n)")
    numbers.run("INSERT INTO numbers VALUES (33, -1)")
    sink = JdbcSink.exactly_once_sink(INSERT, TYPE, numbers.options(), jdbc_exactly_once_options=exactly_once(mode))
    rows(env).add_sink(sink).uid("table")
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(1, 0))
    with pytest.raises(SinkError, match=r"sink 'table'.*refuses the row \(33, 16\).*[Dd]uplicate"):
        LocalRun(env, str(tmp_path / "checkpoints")).run()
    numbers.run("DELETE FROM numbers WHERE n = 33")
    LocalRun(env, str(tmp_path / "checkpoints")).run()
    assert in_table(numbers) == ONCE
    assert in_doubt(numbers) == []


@pytest.mark.parametrize("mode", MODES)
def test_a_server_that_crashes_before_a_commit_is_waited_for(
    env: StreamExecutionEnvironment, numbers: Database, tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    crashed = []
    for kind in (LocalTransactionCommitter, PreparedCommitter):

        def commit_checkpoint(
            self: Any, checkpoint: int, committables: Any, commit: Any = kind.commit_checkpoint
        ) -> None:
            if not crashed:
                crashed.append(checkpoint)
                numbers.server.restart()
            commit(self, checkpoint, committables)

        monkeypatch.setattr(kind, "commit_checkpoint", commit_checkpoint)
    sink = JdbcSink.exactly_once_sink(
        INSERT, TYPE, numbers.options(), JdbcExecutionOptions(batch_size=3), exactly_once(mode)
    )
    rows(env).add_sink(sink).uid("table")
    LocalRun(env, str(tmp_path / "checkpoints")).run()
    assert crashed
    assert in_table(numbers) == ONCE
    assert in_doubt(numbers) == []


def test_a_table_that_is_missing_fails_the_job_at_once(
    env: StreamExecutionEnvironment, database: Database, tmp_path: Path
) -> None:
    rows(env).add_sink(JdbcSink.sink(INSERT, TYPE, database.options())).uid("table")
    with pytest.raises(ConfigurationError, match=r"sink 'table'.*numbers.*(does not|doesn't) exist"):
        LocalRun(env, str(tmp_path / "checkpoints")).run()
