from __future__ import annotations

import json
import os
import pickle
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.common.storage import LocalStorage
from firesteel.connectors.base import CHUNK, Committer, CommitterContext, SinkWriter, WriterContext
from firesteel.connectors.write_ahead_log import LogFile, check_log, read_log
from firesteel.datastream import CheckpointCommitter, GenericWriteAheadSink
from firesteel.datastream.connectors.base import DeliveryGuarantee
from firesteel.errors import CheckpointError, ConfigurationError, UserCodeError
from tests.connectors.killing import files_below

sent: list[Any] = []
answers: list[Any] = []


class Notes(CheckpointCommitter):
    noted: set[tuple[str, str, int, int]] = set()

    def open(self) -> None:
        sent.append("notes opened")

    def close(self) -> None:
        sent.append("notes closed")

    def commit_checkpoint(self, subtask_idx: int, checkpoint_id: int) -> None:
        self.noted.add((self.job_id, self.operator_id, subtask_idx, checkpoint_id))

    def is_checkpoint_committed(self, subtask_idx: int, checkpoint_id: int) -> bool:
        return (self.job_id, self.operator_id, subtask_idx, checkpoint_id) in self.noted


class Sending(GenericWriteAheadSink):
    """Answers True unless there is something in `answers`."""

    def send_values(self, values: Iterable[Any], checkpoint_id: int, timestamp: int) -> bool:
        assert timestamp > 1_600_000_000_000
        sent.append((checkpoint_id, list(values)))
        answer = answers.pop(0) if answers else True
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[no-any-return]


@pytest.fixture(autouse=True)
def fresh() -> None:
    sent.clear()
    answers.clear()
    Notes.noted.clear()


class Halves:
    def __init__(self, directory: Path) -> None:
        self.directory = str(directory)

    def writer(self, incarnation: int = 1, subtask: int = 0) -> SinkWriter:
        sink = pickle.loads(pickle.dumps(Sending(Notes())))
        return sink.create_writer(WriterContext("job", "log", incarnation, subtask, 2, self.directory))

    def committer(self, incarnation: int = 1, notes: CheckpointCommitter | None = None) -> Committer:
        return Sending(notes).create_committer(CommitterContext("job", "log", incarnation, self.directory))

    def logged(self, *values: Any, incarnation: int = 1, subtask: int = 0) -> list[Any]:
        writer = self.writer(incarnation, subtask)
        writer.write(values)
        committables = writer.prepare_commit()
        writer.persist(committables)
        writer.close()
        return json.loads(json.dumps(committables))  # type: ignore[no-any-return]


@pytest.fixture
def halves(tmp_path: Path) -> Halves:
    return Halves(tmp_path)


def test_values_are_sent_when_the_checkpoint_is_complete_subtask_by_subtask(halves: Halves) -> None:
    committables = halves.logged("b", subtask=1) + halves.logged("a", ("any", {"thing"}), subtask=0)
    assert sent == []
    halves.committer().commit_checkpoint(7, committables)
    assert sent == [(7, ["a", ("any", {"thing"})]), (7, ["b"])]


def test_a_barrier_without_records_sends_nothing(halves: Halves) -> None:
    assert halves.logged() == []
    assert files_below(halves.directory) == []


def test_logs_are_kept_until_the_checkpoint_is_confirmed(halves: Halves) -> None:
    committables = halves.logged("a")
    committer = halves.committer()
    committer.commit_checkpoint(1, committables)
    assert len(files_below(halves.directory)) == 1
    halves.committer(2).commit_checkpoint(1, committables)  # dead before it was confirmed
    assert [values for _, values in sent] == [["a"], ["a"]]
    committer.sweep([])
    assert files_below(halves.directory) == []


@pytest.mark.parametrize("answer", [False, OSError("the line is dead")])
def test_what_did_not_arrive_is_sent_again_and_what_did_is_not(halves: Halves, answer: Any) -> None:
    committables = halves.logged("a", subtask=0) + halves.logged("b", subtask=1)
    committer = halves.committer()
    answers[:] = [True, answer]
    with pytest.raises((CheckpointError, UserCodeError), match=r"subtask 1"):
        committer.commit_checkpoint(1, committables)
    committer.commit_checkpoint(1, committables)
    assert sent == [(1, ["a"]), (1, ["b"]), (1, ["b"])]


def test_an_answer_that_is_none_is_an_error(halves: Halves) -> None:
    answers[:] = [None]
    with pytest.raises(CheckpointError, match=r"must return True or False, but returned None"):
        halves.committer().commit_checkpoint(1, halves.logged("a"))


def test_what_is_noted_as_sent_is_not_sent_again(halves: Halves) -> None:
    committables = halves.logged("a")
    halves.committer(1, Notes()).commit_checkpoint(1, committables)
    assert Notes.noted == {("job", "log", 0, 1)}
    successor = halves.committer(2, Notes())
    successor.commit_checkpoint(1, committables)
    successor.close()
    assert sent == ["notes opened", (1, ["a"]), "notes opened", "notes closed"]


def test_what_a_dropped_checkpoint_logged_is_sent_with_the_one_that_carries_it(halves: Halves) -> None:
    dropped, next_one = halves.logged("a"), halves.logged("b")
    halves.committer(1, Notes()).commit_checkpoint(2, dropped + next_one)
    assert sent[1:] == [(2, ["a", "b"])]


def test_a_damaged_log_is_an_error_and_nothing_of_it_is_sent(halves: Halves) -> None:
    committables = halves.logged(*range(3 * CHUNK))
    (path,) = files_below(halves.directory)
    with open(path, "r+b") as file:
        file.seek(-10, os.SEEK_END)
        file.write(b"x")
    with pytest.raises(CheckpointError, match=r"damaged at byte \d+"):
        halves.committer().commit_checkpoint(1, committables)
    os.truncate(path, 100)
    with pytest.raises(CheckpointError, match=r"should have .* bytes and has 100"):
        halves.committer().commit_checkpoint(1, committables)
    os.unlink(path)
    with pytest.raises(CheckpointError, match="is gone"):
        halves.committer().commit_checkpoint(1, committables)
    assert sent == []


def test_a_log_is_read_block_by_block(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    log = LogFile(storage, "log")
    log.append(range(100 * CHUNK))
    log.close()
    values = read_log(storage, "log", log.size)
    assert next(values) == 0
    os.truncate(tmp_path / "log", log.size - 1)  # whatever is not read yet is not in memory
    with pytest.raises(CheckpointError, match="damaged"):
        list(values)


@given(st.lists(st.lists(st.one_of(st.integers(), st.text(), st.none()), max_size=9), max_size=9))
def test_a_log_gives_back_what_was_put_in(tmp_path_factory: pytest.TempPathFactory, batches: list[list[Any]]) -> None:
    storage = LocalStorage(str(tmp_path_factory.mktemp("log")))
    log = LogFile(storage, "log")
    for batch in batches:
        log.append(batch)
    log.close()
    check_log(storage, "log", log.size)
    assert storage.size("log") == log.size
    expected = [value for batch in batches for value in batch]
    assert list(read_log(storage, "log", log.size)) == expected
    assert log.records == len(expected)


def test_a_file_of_another_kind_is_no_log(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"something else")
    with pytest.raises(CheckpointError, match="no log of records"):
        check_log(LocalStorage(str(tmp_path)), "log", 14)


def test_closing_and_aborting_and_sweeping_delete_what_will_never_be_sent(halves: Halves) -> None:
    writer = halves.writer()
    writer.write(["a"])
    writer.close()
    halves.committer().abort(halves.logged("b"))
    assert files_below(halves.directory) == []
    kept, _, own = (halves.logged(str(n), incarnation=n) for n in (1, 2, 3))
    halves.committer(3).sweep(kept)
    names = sorted(os.path.basename(path) for path in files_below(halves.directory))
    assert names == sorted(committable["log"] for committable in kept + own)


def test_it_promises_exactly_once_only_with_notes() -> None:
    assert Sending(Notes()).guarantee is DeliveryGuarantee.EXACTLY_ONCE
    assert Sending().guarantee is DeliveryGuarantee.AT_LEAST_ONCE


def test_only_a_checkpoint_committer_can_take_notes() -> None:
    with pytest.raises(ConfigurationError, match="CheckpointCommitter"):
        Sending("notes")  # type: ignore[arg-type]
