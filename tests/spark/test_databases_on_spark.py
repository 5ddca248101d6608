"""Slots in other processes that write to real databases, and one of them is killed."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path

import pytest

from firesteel.common import Types
from firesteel.datastream import FileSystemCheckpointStorage, MapFunction, StreamExecutionEnvironment
from firesteel.datastream.connectors.jdbc import JdbcExactlyOnceOptions, JdbcSink
from firesteel.errors import ConfigurationError
from tests.support.databases import Database

RECORDS = 20_000


@pytest.mark.parametrize("prepared", [False, True], ids=["local transactions", "prepared transactions"])
def test_a_job_whose_slot_is_killed_writes_every_row_once(
    env: StreamExecutionEnvironment, database: Database, tmp_path: Path, prepared: bool
) -> None:
    marker = str(tmp_path / "killed once")
    database.run("CREATE TABLE numbers (n INT, parity INT)")

    class DiesOnce(MapFunction):
        def map(self, value: int) -> tuple[int, int]:
            if value > 15_000 and not os.path.exists(marker):
                with open(marker, "w"):
                    os.kill(os.getpid(), signal.SIGKILL)
            return value, value % 2

    env.enable_checkpointing(50).get_checkpoint_config().set_checkpoint_storage(
        FileSystemCheckpointStorage(str(tmp_path / "checkpoints"))
    )
    env.set_epoch_target_duration(100)
    sink = JdbcSink.exactly_once_sink(
        "INSERT INTO numbers (n, parity) VALUES (?, ?)",
        Types.ROW([Types.INT(), Types.INT()]),
        database.options(),
        jdbc_exactly_once_options=JdbcExactlyOnceOptions(prepared_transactions=prepared),
    )
    env.from_sequence(1, RECORDS).map(DiesOnce()).add_sink(sink).uid("table")
    env.execute_async("table").get_job_execution_result().result(timeout=120)
    assert os.path.exists(marker)
    assert Counter(database.run("SELECT n, parity FROM numbers")) == Counter((n, n % 2) for n in range(1, RECORDS + 1))
    assert database.server.in_doubt() == []


def test_a_table_that_is_missing_is_known_before_the_job_starts(
    env: StreamExecutionEnvironment, database: Database
) -> None:
    sink = JdbcSink.sink("INSERT INTO nowhere VALUES (?)", Types.ROW([Types.INT()]), database.options())
    env.from_sequence(1, 10).map(lambda n: (n,)).add_sink(sink).uid("table")
    with pytest.raises(ConfigurationError, match=r"sink 'table'.*fails before the job starts.*nowhere"):
        env.execute("missing")
