"""The classes of examples/custom_source.py and examples/custom_sink.py, which docs/connectors.md is about."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples.custom_sink import TableSink
from examples.custom_source import TableSource
from firesteel.connectors.base import Committer, CommitterContext, SinkWriter, WriterContext
from firesteel.connectors.guarantee import DeliveryGuarantee
from tests.connectors.connector_reading import ReadingJob, parallelisms

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("table") / "readings.db")
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE readings (id INTEGER PRIMARY KEY, sensor TEXT, temperature REAL)")
        database.executemany("INSERT INTO readings VALUES (?, 'oven', ?)", [(i, i / 2) for i in range(1, 101)])
    database.close()
    return path


@settings(max_examples=25)
@given(st.data())
def test_every_row_is_read_once_across_restarts(table: str, data: st.DataObject) -> None:
    job = ReadingJob(TableSource(table), data.draw(parallelisms))
    while not job.enumerator.finished():
        job.epoch(data.draw(st.integers(1, 40)))
        if data.draw(st.booleans()):
            job.restart(data.draw(parallelisms))
    assert job.epoch(1000) == 0
    for reader in job.readers:
        reader.close()
    assert [row[0] for row in sorted(job.records())] == list(range(1, 101))


def test_a_range_can_be_read_again(table: str) -> None:
    job = ReadingJob(TableSource(table))
    assert job.source.replayable
    reader = job.readers[0]
    assert list(reader.read([3, 5])) == list(reader.read([3, 5])) == [[(3, "oven", 1.5), (4, "oven", 2.0)]]
    reader.close()


class Table:
    def __init__(self, directory: Path) -> None:
        self.database = str(directory / "counts.db")
        self.staging = directory / "staging"
        self.staging.mkdir()
        self.sink = TableSink(self.database, str(self.staging))

    def writer(self, incarnation: int = 1, subtask: int = 0) -> SinkWriter:
        return self.sink.create_writer(WriterContext("job", "counts", incarnation, subtask, 2))

    def committer(self, incarnation: int = 1) -> Committer:
        return self.sink.create_committer(CommitterContext("job", "counts", incarnation))

    def rows(self) -> list[tuple[str, int]]:
        connection = sqlite3.connect(self.database)
        try:
            return list(connection.execute("SELECT word, n FROM counts ORDER BY word, n"))
        finally:
            connection.close()


@pytest.fixture
def counts(tmp_path: Path) -> Table:
    return Table(tmp_path)


def staged(writer: SinkWriter, *rows: tuple[str, int]) -> list[str]:
    writer.write(rows)
    committables = writer.prepare_commit()
    writer.persist(committables)
    return json.loads(json.dumps(committables))


def test_rows_are_visible_only_when_committed(counts: Table) -> None:
    committer = counts.committer()
    committables = [*staged(counts.writer(subtask=0), ("a", 1)), *staged(counts.writer(subtask=1), ("b", 1))]
    assert counts.rows() == []
    committer.commit(committables)
    assert counts.rows() == [("a", 1), ("b", 1)]
    assert os.listdir(counts.staging) == []


def test_committing_again_changes_nothing(counts: Table) -> None:
    committables = staged(counts.writer(), ("a", 1))
    counts.committer().commit(committables)
    counts.committer(2).commit(committables)
    assert counts.rows() == [("a", 1)]


def test_a_crash_in_the_middle_of_a_commit_is_made_good(counts: Table) -> None:
    writer = counts.writer()
    first, second = staged(writer, ("a", 1)), staged(writer, ("b", 1))
    counts.committer().commit(first)
    counts.committer(2).commit([*first, *second])
    assert counts.rows() == [("a", 1), ("b", 1)]


def test_a_lost_file_is_an_error_and_not_a_lost_row(counts: Table) -> None:
    committables = staged(counts.writer(), ("a", 1))
    os.remove(committables[0])
    with pytest.raises(FileNotFoundError):
        counts.committer().commit(committables)
    assert counts.committer().database
    with sqlite3.connect(counts.database) as database:
        assert list(database.execute("SELECT * FROM committed")) == []
    database.close()


def test_aborted_and_left_over_files_are_removed(counts: Table) -> None:
    committer = counts.committer(2)
    committer.abort(staged(counts.writer(2), ("a", 1)))
    (kept,) = staged(counts.writer(1, 0), ("b", 1))
    staged(counts.writer(1, 1), ("c", 1))
    (own,) = staged(counts.writer(2), ("d", 1))
    committer.sweep([kept])
    assert {str(path) for path in counts.staging.iterdir()} == {kept, own}


def test_a_barrier_without_rows_commits_nothing(counts: Table) -> None:
    assert counts.writer().prepare_commit() == []


def test_the_sink_promises_exactly_once(counts: Table) -> None:
    assert counts.sink.guarantee is DeliveryGuarantee.EXACTLY_ONCE


@pytest.mark.parametrize(
    ("example", "name"), [("custom_source.py", "TableEnumerator"), ("custom_sink.py", "TableCommitter")]
)
def test_the_guide_shows_the_examples_as_they_are(example: str, name: str) -> None:
    text = (ROOT / "examples" / example).read_text()
    classes = text[text.index("class ") : text.index("def main(")].strip()
    assert name in classes
    assert classes in (ROOT / "docs" / "connectors.md").read_text()
