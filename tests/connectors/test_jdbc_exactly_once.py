"""The halves of the sinks that are exactly once, driven by hand over real servers."""

from __future__ import annotations

import itertools
import json
import pickle
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Types
from firesteel.connectors import jdbc_local_transactions
from firesteel.connectors.base import Committer, CommitterContext, PrepareContext, SinkWriter, WriterContext
from firesteel.connectors.jdbc_dialect import TransactionName
from firesteel.datastream.connectors.base import DeliveryGuarantee
from firesteel.datastream.connectors.jdbc import JdbcExactlyOnceOptions, JdbcExecutionOptions, JdbcSink
from firesteel.errors import CheckpointError, ConfigurationError, SinkError
from tests.connectors.jdbc_killing import MODES, exactly_once, in_doubt
from tests.connectors.killing import files_below
from tests.support.databases import Database, DatabaseServer, PostgreSqlServer, serving

TYPE = Types.ROW([Types.INT()])
LOCAL, PREPARED = MODES


class Halves:
    def __init__(self, database: Database, directory: Path, mode: str, **more: Any) -> None:
        self.database, self.directory, self.mode, self.more = database, str(directory), mode, more
        database.run("CREATE TABLE numbers (n INT PRIMARY KEY)")

    def sink(self) -> JdbcSink:
        return JdbcSink.exactly_once_sink(
            "INSERT INTO numbers VALUES (?)", TYPE, self.database.options(), JdbcExecutionOptions(batch_size=2),
            exactly_once(self.mode, **self.more),
        )  # fmt: skip

    def writer(self, incarnation: int = 1, subtask: int = 0, job: str = "job", uid: str = "table") -> SinkWriter:
        shipped = pickle.loads(pickle.dumps(self.sink()))
        return shipped.create_writer(WriterContext(job, uid, incarnation, subtask, 2, self.directory))  # type: ignore[no-any-return]

    def committer(self, incarnation: int = 1, job: str = "job", uid: str = "table") -> Committer:
        made = self.sink().create_committer(CommitterContext(job, uid, incarnation, self.directory))
        assert made is not None
        return made

    def written(self, *numbers: int, **whose: Any) -> list[Any]:
        """What is pre-committed, and as it is after it was in a checkpoint."""
        writer = self.writer(**whose)
        writer.write([(number,) for number in numbers])
        committables = writer.prepare_commit()
        writer.persist(committables)
        writer.close()
        return json.loads(json.dumps(committables))  # type: ignore[no-any-return]


@pytest.fixture(params=MODES)
def halves(database: Database, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Halves]:
    made = Halves(database, tmp_path, request.param)
    made.committer().sweep([])
    yield made
    made.mode = PREPARED
    for job, uid in itertools.product(("job", "other"), ("table", "other")):  # nothing may be in the next test's way
        made.committer(1_000_000, job, uid).sweep([])
    assert in_doubt(database) == []


def test_rows_are_visible_when_they_are_committed_and_not_before(halves: Halves) -> None:
    committables = halves.written(1, 2, 3) + halves.written(4, subtask=1)
    assert halves.database.numbers() == []
    committer = halves.committer()
    committer.commit_checkpoint(1, committables)
    assert halves.database.numbers() == [1, 2, 3, 4]
    committer.close()


def test_a_barrier_without_records_commits_nothing(halves: Halves) -> None:
    assert halves.written() == []
    assert in_doubt(halves.database) == []


def test_a_commit_that_is_repeated_does_nothing(halves: Halves) -> None:
    committables = halves.written(1, 2)
    committer = halves.committer()
    for _ in range(2):
        committer.commit_checkpoint(1, committables)
    halves.committer(2).commit_checkpoint(1, committables)  # whose driver died before it was confirmed
    halves.database.server.restart()
    committer.commit_checkpoint(1, committables)
    assert halves.database.numbers() == [1, 2]
    committer.sweep([])
    assert files_below(halves.directory) == []


def test_checkpoints_follow_each_other_and_what_one_dropped_is_carried_by_the_next(halves: Halves) -> None:
    committer = halves.committer()
    committer.commit_checkpoint(1, halves.written(1))
    committer.sweep([])
    committer.commit_checkpoint(3, halves.written(2) + halves.written(3))
    committer.sweep([])
    assert halves.database.numbers() == [1, 2, 3]
    committer.close()


def test_what_is_aborted_is_gone_and_what_is_committed_is_not_touched(halves: Halves) -> None:
    committer = halves.committer()
    gone, kept = halves.written(1), halves.written(2)
    committer.commit_checkpoint(1, kept)
    for _ in range(2):
        committer.abort(gone)
        if halves.mode == PREPARED:
            committer.abort(kept)
    assert halves.database.numbers() == [2]
    assert in_doubt(halves.database) == []


def test_a_sweep_takes_what_older_incarnations_of_this_sink_left_and_nothing_else(halves: Halves) -> None:
    halves.written(1)
    keep, current = halves.written(2), halves.written(3, incarnation=2)
    other_job, other_sink = halves.written(4, job="other"), halves.written(5, uid="other")
    committer = halves.committer(2)
    committer.sweep(keep)
    committer.commit_checkpoint(1, keep + current)
    if halves.mode == PREPARED:  # jobs have directories of their own
        halves.committer(2, job="other").commit_checkpoint(1, other_job)
    halves.committer(2, uid="other").commit_checkpoint(1, other_sink)
    assert halves.database.numbers() == ([2, 3, 4, 5] if halves.mode == PREPARED else [2, 3, 5])


def test_a_row_that_is_refused_is_named_and_is_there_when_it_is_mended(halves: Halves) -> None:
    halves.database.run("INSERT INTO numbers VALUES (7)")
    if halves.mode == PREPARED:
        with pytest.raises(SinkError, match=r"sink 'table'.*refuses the row \(7,\): .*[Dd]uplicate"):
            halves.written(6, 7, 8)
        return
    committables = halves.written(6, 7, 8)
    committer = halves.committer()
    with pytest.raises(SinkError, match=r"sink 'table'.*refuses the row \(7,\): .*[Dd]uplicate"):
        committer.commit_checkpoint(1, committables)
    assert not committer.retried  # the job fails: this does not pass
    assert halves.database.numbers() == [7]
    halves.database.run("DELETE FROM numbers")
    committer.commit_checkpoint(1, committables)
    assert halves.database.numbers() == [6, 7, 8] and committer.retried


def test_a_server_that_is_down_is_waited_for_by_the_commit(halves: Halves) -> None:
    committables, server = halves.written(1), halves.database.server
    committer = halves.committer()
    server.stop(server.crash)
    try:
        committer.sweep([])  # says so in the log
        with pytest.raises(SinkError, match=r"127\.0\.0\.1") as error:
            committer.commit_checkpoint(1, committables)
        assert error.value.transient and committer.retried
    finally:
        server.start()
    committer.commit_checkpoint(1, committables)
    assert halves.database.numbers() == [1]


def test_a_limit_of_attempts_ends_the_waiting(halves: Halves) -> None:
    halves.more = {"max_commit_attempts": 2}
    committables, server, committer = halves.written(1), halves.database.server, halves.committer()
    server.stop(server.crash)
    try:
        for more in (True, False):
            with pytest.raises(SinkError):
                committer.commit_checkpoint(1, committables)
            assert committer.retried is more
    finally:
        server.start()
    halves.committer(2).commit_checkpoint(1, committables)
    assert halves.database.numbers() == [1]


def test_it_promises_exactly_once(halves: Halves) -> None:
    assert halves.sink().guarantee is DeliveryGuarantee.EXACTLY_ONCE


def test_output_of_the_other_mode_is_not_mistaken_for_ones_own(halves: Halves) -> None:
    committables = halves.written(1)
    halves.mode = MODES[1 - MODES.index(halves.mode)]
    committer = halves.committer(2)
    with pytest.raises(
        SinkError, match=r"checkpoint holds output of sink 'table' that was written .* Run the job once more"
    ):
        committer.commit_checkpoint(1, committables)
    assert not committer.retried


def test_who_is_late_waits_for_the_token_and_finds_it_used(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    halves = Halves(database, tmp_path, LOCAL)
    committables = halves.written(1)
    late = threading.Thread(target=halves.committer(1).commit_checkpoint, args=(1, committables))

    def meanwhile(name: str) -> None:
        if name == "jdbc-before-commit" and not late.ident:
            late.start()
            late.join(0.3)
            assert late.is_alive()  # it has found the lock

    monkeypatch.setattr(jdbc_local_transactions, "crash_point", meanwhile)
    halves.committer(2).commit_checkpoint(1, committables)
    late.join(10)
    assert database.numbers() == [1]


def test_a_damaged_log_is_an_error_and_nothing_of_it_is_written(database: Database, tmp_path: Path) -> None:
    halves = Halves(database, tmp_path, LOCAL)
    committables = halves.written(1, 2)
    (path,) = files_below(halves.directory)
    Path(path).write_bytes(b"x" * committables[0]["size"])
    committer = halves.committer()
    with pytest.raises(CheckpointError, match="no log of records"):
        committer.commit_checkpoint(1, committables)
    assert not committer.retried and database.numbers() == []


def test_a_prepared_transaction_that_somebody_rolled_back_is_an_error(database: Database, tmp_path: Path) -> None:
    halves = Halves(database, tmp_path, PREPARED)
    committables = halves.written(1) + halves.written(2, subtask=1)
    name = TransactionName(TransactionName.owner_of("job", "table"), committables[0]["transaction"])
    if database.kind == "postgresql":
        database.run(f"ROLLBACK PREPARED '{name}'")
    else:
        database.run(f"XA ROLLBACK '{name.owner}','{name.branch}'")
    committer = halves.committer()
    with pytest.raises(
        SinkError, match=rf"no prepared transaction {name}, and it was never committed.*rows are missing"
    ):
        committer.commit_checkpoint(1, committables)
    assert not committer.retried
    assert database.numbers() == [2]  # the others are not held up


def test_transactions_that_change_nothing_are_committed_too(database: Database, tmp_path: Path) -> None:
    halves = Halves(database, tmp_path, PREPARED)
    sink = JdbcSink.exactly_once_sink(
        "UPDATE numbers SET n = 1 WHERE n = ?", TYPE, database.options(),
        jdbc_exactly_once_options=exactly_once(PREPARED),
    )  # fmt: skip
    halves.committer().sweep([])
    writer = sink.create_writer(WriterContext("job", "table", 1, 0, 1, str(tmp_path)))
    writer.write([(9,)])
    halves.committer().commit_checkpoint(1, writer.prepare_commit())
    assert in_doubt(database) == []


def test_a_lock_that_nobody_will_give_back_is_an_error_and_no_standstill(database: Database, tmp_path: Path) -> None:
    halves = Halves(database, tmp_path, PREPARED, timeout_sec=1)
    held = halves.written(1)
    halves.more = {"timeout_sec": 1}
    writer = halves.writer(subtask=1)
    writer._options = JdbcExecutionOptions(max_retries=0)  # type: ignore[attr-defined]
    writer.write([(1,)])
    with pytest.raises(SinkError, match=r"[Ll]ock") as error:
        writer.prepare_commit()
    assert error.value.transient
    halves.committer().abort(held)
    assert in_doubt(database) == []


@pytest.fixture(scope="module")
def unprepared() -> Iterator[DatabaseServer]:
    class Unprepared(PostgreSqlServer):
        prepared_transactions = 0

    yield from serving(Unprepared)


def test_a_server_that_keeps_no_prepared_transactions_is_refused_before_the_start(
    unprepared: DatabaseServer, tmp_path: Path
) -> None:
    halves = Halves(unprepared.database(), tmp_path, PREPARED)
    with pytest.raises(ConfigurationError, match=r"Set max_prepared_transactions = 10 in postgresql\.conf and restart"):
        halves.sink().prepare(PrepareContext("table", "", True, None))
    with pytest.raises(ConfigurationError, match=r"max_prepared_transactions"):
        halves.writer()
    halves.mode = LOCAL
    halves.sink().prepare(PrepareContext("table", "", True, None))


def test_who_may_not_make_the_table_of_tokens_is_told_what_to_do(database: Database, tmp_path: Path) -> None:
    halves = Halves(database, tmp_path, LOCAL)
    user = f"poor_{database.kind}"
    if database.kind == "postgresql":
        database.run(f"CREATE USER {user} PASSWORD 'poor'")
        database.run(f"GRANT INSERT ON numbers TO {user}")
    else:
        database.run(f"CREATE USER {user} IDENTIFIED BY 'poor'")
        database.run(f"GRANT INSERT, SELECT ON {database.name}.numbers TO {user}")
    options = pickle.loads(pickle.dumps(database.options(password="poor")))
    object.__setattr__(options, "user_name", user)
    sink = JdbcSink.exactly_once_sink("INSERT INTO numbers VALUES (?)", TYPE, options)
    with pytest.raises(
        ConfigurationError, match=r"the table firesteel_commits.*CREATE TABLE IF NOT EXISTS firesteel_commits"
    ):
        sink.prepare(PrepareContext("table", "", True, None))
    assert halves.database.numbers() == []


def test_the_names_of_javas_options_are_there() -> None:
    builder = JdbcExactlyOnceOptions.builder().with_transaction_per_connection(True).with_recovered_and_rollback(True)
    made = builder.with_max_commit_attempts(5).with_timeout_sec(7).with_prepared_transactions().build()
    assert made == JdbcExactlyOnceOptions(True, 5, 7)
    with pytest.raises(ConfigurationError, match="prepared for ever"):
        builder.with_recovered_and_rollback(False)
