from __future__ import annotations

import json
import logging
import os
import pickle
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from firesteel.connectors.base import Committer, CommitterContext, SinkWriter, WriterContext
from firesteel.connectors.two_phase_commit_journal import decode_handle, encode_handle
from firesteel.datastream import TransactionContext, TwoPhaseCommitSinkFunction
from firesteel.datastream.connectors.base import DeliveryGuarantee
from firesteel.errors import CheckpointError, ConfigurationError, UserCodeError
from tests.connectors.killing import files_below

calls: list[Any] = []


class Recording(TwoPhaseCommitSinkFunction):
    """Notes its calls. Methods whose names are in `failing` raise."""

    def __init__(self, *failing: str) -> None:
        self.failing = set(failing)
        self.begun = 0

    def _call(self, method: str, *arguments: Any) -> None:
        calls.append((method, *arguments))
        if method in self.failing:
            raise OSError(f"{method} is told to fail")

    def open(self, runtime_context: Any) -> None:
        self._call("open", runtime_context.get_index_of_this_subtask())

    def close(self) -> None:
        self._call("close")

    def begin_transaction(self) -> Any:
        self.begun += 1
        self._call("begin", self.begun)
        return [self.begun]

    def invoke(self, transaction: Any, value: Any, context: Any) -> None:
        assert context.current_processing_time() > 0
        self._call("invoke", transaction, value)

    def pre_commit(self, transaction: Any) -> None:
        self._call("pre_commit", transaction)

    def commit(self, transaction: Any) -> None:
        self._call("commit", transaction)

    def abort(self, transaction: Any) -> None:
        self._call("abort", transaction)

    def recover_and_commit(self, transaction: Any) -> None:
        self._call("recover_and_commit", transaction)

    def recover_and_abort(self, transaction: Any) -> None:
        self._call("recover_and_abort", transaction)


@pytest.fixture(autouse=True)
def no_calls() -> None:
    calls.clear()


class Halves:
    def __init__(self, directory: Path) -> None:
        self.directory = str(directory)

    def writer(self, sink: TwoPhaseCommitSinkFunction, incarnation: int = 1, subtask: int = 0) -> SinkWriter:
        shipped = pickle.loads(pickle.dumps(sink))
        return shipped.create_writer(WriterContext("job", "the sink", incarnation, subtask, 2, self.directory))

    def committer(self, sink: TwoPhaseCommitSinkFunction, incarnation: int = 1) -> Committer:
        return sink.create_committer(CommitterContext("job", "the sink", incarnation, self.directory))

    def pre_committed(self, sink: TwoPhaseCommitSinkFunction, incarnation: int = 1, subtask: int = 0) -> list[Any]:
        writer = self.writer(sink, incarnation, subtask)
        writer.write(["v"])
        return json.loads(json.dumps(writer.prepare_commit()))  # type: ignore[no-any-return]

    def notes(self) -> list[str]:
        return [os.path.basename(path) for path in files_below(self.directory)]


@pytest.fixture
def halves(tmp_path: Path) -> Halves:
    return Halves(tmp_path)


def test_a_transaction_lasts_from_the_first_record_after_a_barrier_to_the_next_barrier(halves: Halves) -> None:
    writer = halves.writer(Recording(), subtask=1)
    writer.write(["a"])
    writer.flush()
    writer.write(["b"])
    (first,) = writer.prepare_commit()
    assert writer.prepare_commit() == []  # no records, no transaction
    writer.write(["c"])
    (second,) = writer.prepare_commit()
    writer.close()
    assert calls == [
        ("open", 1), ("begin", 1), ("invoke", [1], "a"), ("invoke", [1], "b"), ("pre_commit", [1]),
        ("begin", 2), ("invoke", [2], "c"), ("pre_commit", [2]), ("close",),
    ]  # fmt: skip
    assert first["transaction"] != second["transaction"]


def test_the_driver_commits_with_a_copy_of_the_function_that_it_opens_and_closes(halves: Halves) -> None:
    sink = Recording()
    committables = halves.pre_committed(sink)
    calls.clear()
    committer = halves.committer(sink)
    assert calls == []  # nothing to do, no connection
    committer.commit(committables)
    committer.close()
    assert calls == [("open", 0), ("commit", [1]), ("close",)]
    assert halves.notes() == []


def test_what_an_earlier_incarnation_pre_committed_is_recovered(halves: Halves) -> None:
    sink = Recording()
    committables = halves.pre_committed(sink)
    halves.committer(sink, 2).commit(committables)
    assert calls[-1] == ("recover_and_commit", [1])


def test_a_commit_that_failed_is_recovered_from_then_on(halves: Halves) -> None:
    committables = halves.pre_committed(Recording())
    committer = halves.committer(Recording("commit"))
    with pytest.raises(CheckpointError, match=r"sink 'the sink' cannot commit .*OSError: commit is told to fail"):
        committer.commit(committables)
    assert len(halves.notes()) == 1
    committer.commit(committables)
    assert [call[0] for call in calls[-2:]] == ["commit", "recover_and_commit"]
    assert halves.notes() == []


class Picky(Recording):
    def commit(self, transaction: Any) -> None:
        if transaction == ["bad"]:
            raise OSError("bad")
        super().commit(transaction)


def test_a_transaction_that_cannot_be_committed_does_not_hold_up_the_others(halves: Halves) -> None:
    good = halves.pre_committed(Recording())
    bad = [{**good[0], "transaction": "another", "handle": {"json": ["bad"]}}]
    with pytest.raises(CheckpointError, match="OSError: bad"):
        halves.committer(Picky()).commit([*bad, *good])
    assert calls[-1] == ("commit", [1])


def test_a_second_attempt_leaves_alone_what_the_first_committed(halves: Halves) -> None:
    good = halves.pre_committed(Recording())
    bad = [{**good[0], "transaction": "another", "handle": {"json": ["bad"]}}]
    committer = halves.committer(Picky())
    with pytest.raises(CheckpointError):
        committer.commit([*good, *bad])
    committer.commit([*good, *bad])
    assert [call for call in calls if "commit" in call[0]][1:] == [("commit", [1]), ("recover_and_commit", ["bad"])]


def test_closing_a_writer_aborts_what_was_begun_and_not_pre_committed(halves: Halves) -> None:
    writer = halves.writer(Recording())
    writer.write(["a"])
    pre_committed = writer.prepare_commit()
    writer.write(["b"])
    writer.close()
    assert calls[-2:] == [("abort", [2]), ("close",)]
    assert halves.notes() == [pre_committed[0]["transaction"]]


def test_what_cannot_be_aborted_stays_noted_for_the_next_incarnation(
    halves: Halves, caplog: pytest.LogCaptureFixture
) -> None:
    writer = halves.writer(Recording("abort"))
    writer.write(["a"])
    writer.close()
    assert "could not abort" in caplog.text
    halves.committer(Recording("recover_and_abort"), 2).sweep([])
    assert len(halves.notes()) == 1
    halves.committer(Recording(), 2).sweep([])
    assert calls[-1] == ("recover_and_abort", [1])
    assert halves.notes() == []


def test_a_rollback_aborts_what_was_pre_committed(halves: Halves) -> None:
    committables = halves.pre_committed(Recording())
    committer = halves.committer(Recording())
    committer.abort(committables)
    committer.abort(committables)
    assert calls[-2:] == [("abort", [1]), ("abort", [1])]
    assert halves.notes() == []


def test_a_sweep_aborts_what_older_incarnations_left_and_nothing_else(halves: Halves) -> None:
    sink = Recording()
    halves.writer(sink, incarnation=1, subtask=0).write(["killed before the barrier"])
    halves.pre_committed(sink, incarnation=1, subtask=1)
    kept = halves.pre_committed(sink, incarnation=2)
    own = halves.pre_committed(sink, incarnation=3)
    calls.clear()
    halves.committer(sink, 3).sweep(kept)
    assert calls == [("open", 0), ("recover_and_abort", [1]), ("recover_and_abort", [1])]
    assert sorted(halves.notes()) == sorted(committable["transaction"] for committable in [*kept, *own])


def test_a_transaction_is_noted_before_its_first_record(halves: Halves) -> None:
    class Looking(Recording):
        def invoke(self, transaction: Any, value: Any, context: Any) -> None:
            calls.append(halves.notes())

    writer = Looking().create_writer(WriterContext("job", "the sink", 1, 0, 1, halves.directory))
    writer.write(["a"])
    assert calls[-1] == ["txn-1-0-0.json"]


def test_two_writers_of_one_incarnation_do_not_share_notes(halves: Halves) -> None:
    first, second = halves.pre_committed(Recording()), halves.pre_committed(Recording())
    assert first[0]["transaction"] != second[0]["transaction"]
    assert len(halves.notes()) == 2


class Named(Recording):
    def begin_transaction(self, context: TransactionContext) -> Any:  # type: ignore[override]
        return [context.transaction_id, context.uid, context.incarnation, context.subtask]


def test_transactions_have_names_that_no_other_has_and_that_say_whose_they_are(halves: Halves) -> None:
    made = [
        halves.pre_committed(Named(), incarnation, subtask)[0]["handle"]["json"]
        for incarnation in (1, 2)
        for subtask in (0, 1)
    ]
    assert [handle[1:] for handle in made] == [["the sink", i, s] for i in (1, 2) for s in (0, 1)]
    assert len({handle[0] for handle in made}) == 4
    assert all(handle[0].startswith("firesteel-") for handle in made)


def test_invoke_may_leave_out_the_context(halves: Halves) -> None:
    class Short(Recording):
        def invoke(self, transaction: Any, value: Any) -> None:  # type: ignore[override]
            calls.append(value)

    writer = Short().create_writer(WriterContext("job", "the sink", 1, 0, 1, halves.directory))
    writer.write(["a", "b"])
    assert calls[-2:] == ["a", "b"]


@dataclass
class Handle:
    """With something that stays in the slot."""

    name: str
    lock: Any = field(default_factory=threading.Lock)

    def __getstate__(self) -> Any:
        return self.name

    def __setstate__(self, state: Any) -> None:
        self.name = state


@pytest.mark.parametrize("handle", [None, 1, "a", 1.5, ["a", {"b": [True]}], {"name": "x"}])
def test_handles_that_are_json_are_stored_as_they_are(handle: Any) -> None:
    encoded = encode_handle(handle, "")
    assert encoded == {"json": handle}
    assert decode_handle(json.loads(json.dumps(encoded))) == handle


@pytest.mark.parametrize("handle", [("a", 1), {1: 2}, {"a": (1,)}, b"x", frozenset({1}), Path("/x"), float("inf")])
def test_other_handles_are_pickled_and_come_back_as_they_were(handle: Any) -> None:
    encoded = encode_handle(handle, "")
    assert list(encoded) == ["pickle"]
    assert decode_handle(json.loads(json.dumps(encoded))) == handle


def test_a_handle_leaves_out_what_stays_in_the_slot() -> None:
    assert decode_handle(encode_handle(Handle("a"), "")).name == "a"


def test_a_handle_that_cannot_travel_is_an_error_that_says_what_to_do(halves: Halves) -> None:
    class Locked(Recording):
        def begin_transaction(self) -> Any:
            return threading.Lock()

    writer = Locked().create_writer(WriterContext("job", "the sink", 1, 0, 1, halves.directory))
    with pytest.raises(CheckpointError, match=r"begin_transaction\(\) of sink 'the sink'.*JSON value.*__getstate__"):
        writer.write(["a"])
    writer.close()
    assert [call[0] for call in calls] == ["open", "abort", "close"]


@pytest.mark.parametrize("method", ["open", "begin", "invoke", "pre_commit", "close"])
def test_errors_in_slots_show_the_users_lines_and_the_method(halves: Halves, method: str) -> None:
    def drive() -> None:
        writer = halves.writer(Recording(method))
        writer.write(["a"])
        writer.prepare_commit()
        writer.close()

    with pytest.raises(UserCodeError, match=rf"(?s)raise OSError.*{method} is told to fail") as raised:
        drive()
    assert ("the record 'a'" if method == "invoke" else "of sink 'the sink'") in str(raised.value)


def test_after_its_timeout_a_transaction_may_be_given_up(halves: Halves, caplog: pytest.LogCaptureFixture) -> None:
    committables = halves.pre_committed(Recording())
    committables[0]["begun_ms"] -= 61_000
    failing = Recording("recover_and_commit").set_transaction_timeout("1 min")
    with pytest.raises(CheckpointError):
        halves.committer(failing, 2).commit(committables)
    failing.ignore_failures_after_transaction_timeout()
    young = [{**committables[0], "begun_ms": committables[0]["begun_ms"] + 60_000}]
    with pytest.raises(CheckpointError):
        halves.committer(failing, 2).commit(young)
    with caplog.at_level(logging.ERROR):
        halves.committer(failing, 2).commit(committables)
    assert "its records are lost" in caplog.text
    assert halves.notes() == []


def test_transactions_near_their_timeout_are_warned_about(halves: Halves, caplog: pytest.LogCaptureFixture) -> None:
    sink = Recording().set_transaction_timeout(10_000).enable_transaction_timeout_warnings(0.5)
    young, old = halves.pre_committed(sink), halves.pre_committed(sink)
    old[0]["begun_ms"] -= 6_000
    halves.committer(sink).commit(young)
    assert "timeout" not in caplog.text
    halves.committer(sink).commit(old)
    assert "its timeout is 10000 ms" in caplog.text


def test_bad_settings_are_refused(halves: Halves) -> None:
    with pytest.raises(ConfigurationError, match="between 0 and 1"):
        Recording().enable_transaction_timeout_warnings(2)
    with pytest.raises(ConfigurationError, match="set_transaction_timeout"):
        halves.writer(Recording().ignore_failures_after_transaction_timeout())
    with pytest.raises(ConfigurationError, match="directory of its job"):
        Recording().create_writer(WriterContext("job", "the sink", 1, 0, 1))


def test_it_promises_exactly_once() -> None:
    assert Recording().guarantee is DeliveryGuarantee.EXACTLY_ONCE
