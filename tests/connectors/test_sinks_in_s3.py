"""Sinks that keep notes beside their job's checkpoints do so in an object store as well."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from firesteel.common.storage import open_storage
from firesteel.connectors.base import CommitterContext, PrepareContext, WriterContext
from firesteel.connectors.dataframe import DataFrameSource
from firesteel.connectors.two_phase_commit_journal import Journal
from firesteel.datastream import GenericWriteAheadSink
from firesteel.errors import CheckpointError, ConfigurationError
from tests.support.s3 import S3Server

sent: list[tuple[int, list[Any]]] = []


class Sending(GenericWriteAheadSink):
    def send_values(self, values: Iterable[Any], checkpoint_id: int, timestamp: int) -> bool:
        sent.append((checkpoint_id, list(values)))
        return True


def test_a_write_ahead_log_is_sent_from_there_and_swept(s3: S3Server) -> None:
    sent.clear()
    job = s3.bucket()
    writer = Sending().create_writer(WriterContext("job", "log", 1, 0, 1, job))
    committer = Sending().create_committer(CommitterContext("job", "log", 1, job))
    writer.write(["a", "b"])
    committables = writer.prepare_commit()
    with pytest.raises(CheckpointError, match="is gone"):  # the upload ends when the log is persisted
        committer.commit_checkpoint(1, committables)
    writer.persist(committables)
    writer.write(["never sent"])
    writer.close()
    committer.commit_checkpoint(1, committables)
    assert sent == [(1, ["a", "b"])]
    folder = f"sinks/{open_storage(job).names('sinks')[0]}"
    assert open_storage(job).names(folder) == [committables[0]["log"]]
    committer.sweep(keep=())
    assert open_storage(job).names(folder) == []


def test_the_journal_of_transactions_is_there_and_found_by_the_next_incarnation(s3: S3Server) -> None:
    job = s3.bucket()
    journal = Journal(WriterContext("job", "sink", 1, 0, 1, job))
    name = journal.name(1, 0, 0)
    assert not journal.taken(name)
    journal.add(name, {"json": 7})
    assert journal.taken(name)
    found = Journal(CommitterContext("job", "sink", 2, job))
    assert [(begun.name, begun.incarnation, begun.handle) for begun in found.begun()] == [(name, 1, {"json": 7})]
    found.remove(name)
    assert list(journal.begun()) == []


def test_parquet_files_for_spark_are_refused_there(s3: S3Server) -> None:
    with pytest.raises(ConfigurationError, match=r"'rows' keeps Parquet files .* a path instead of s3://"):
        DataFrameSource(None).prepare(PrepareContext("rows", s3.bucket(), True, None))
