"""Savepoints of running jobs: what is in them, where they can go, and what a job does that ends with one."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from firesteel.common.job_status import JobStatus
from firesteel.common.storage import MemoryStorage, open_storage
from firesteel.coordinator.completed import locate
from firesteel.coordinator.lineage import JobDirectory
from firesteel.coordinator.savepoint import dispose
from firesteel.coordinator.savepoint_requests import Ending
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.errors import JobCancelledError
from firesteel.graph.nodes import Collect
from firesteel.graph.settings import StartSettings
from tests.support.local_engine import LocalRun
from tests.support.running import Running
from tests.support.s3 import S3Server
from tests.support.summing import NumbersRead, check_consistent, lines, program, totals_in, windowed, written
from tests.support.waiting import PATIENCE_S, wait_until


def test_a_savepoint_holds_the_state_of_its_position_and_the_job_goes_on(tmp_path: Path) -> None:
    with Running(program(), str(tmp_path / "checkpoints")) as running:
        running.epochs()
        first = running.savepoint(tmp_path / "savepoints")
        running.epochs()
        second = running.savepoint(tmp_path / "savepoints")
        running.epochs()
    assert isinstance(running.failure, JobCancelledError)
    for path in (first, second):
        check_consistent(path)
        found = locate(path)
        assert found.metadata.savepoint and found.confirmed and found.metadata.committables == {}
        assert os.path.basename(path).startswith(f"savepoint-{found.metadata.job_id[:6]}-")
        assert sorted(os.listdir(path)) == sorted(["_metadata", *found.metadata.files()])
        assert all(len(chain) == 1 for chain in found.metadata.state)
    assert sum(totals_in(second).values()) > sum(totals_in(first).values())


@pytest.mark.parametrize("interval", [1, None])
def test_a_savepoint_can_be_moved_and_gone_on_from_any_number_of_times(tmp_path: Path, interval: int | None) -> None:
    with Running(program(interval=interval), str(tmp_path / "checkpoints")) as running:
        running.epochs()
        path = running.savepoint(tmp_path / "savepoints", Ending.SUSPEND)
    assert running.failure is None and running.job.status is JobStatus.FINISHED
    check_consistent(path)
    before = totals_in(path)
    shutil.rmtree(tmp_path / "checkpoints")
    moved = str(tmp_path / "elsewhere" / "renamed")
    shutil.move(path, moved)
    for name in ("again", "once-more"):
        for location in (moved, f"{moved}/_metadata"):
            with Running(program(location, interval=interval), str(tmp_path / name), f"{name}-job") as next_one:
                next_one.epochs()
                after = next_one.savepoint(tmp_path / "savepoints", Ending.SUSPEND)
            assert next_one.failure is None
            check_consistent(after)
            assert all(totals_in(after)[key] > total for key, total in before.items())
            shutil.rmtree(tmp_path / name)
    assert totals_in(moved) == before


def test_a_job_whose_checkpoints_are_in_memory_takes_savepoints(tmp_path: Path) -> None:
    with Running(program(), MemoryStorage()) as running:
        running.epochs()
        path = running.savepoint(tmp_path, Ending.SUSPEND)
    check_consistent(path)
    with Running(program(path), MemoryStorage()) as again:
        again.epochs()
        check_consistent(again.savepoint(tmp_path))


@pytest.mark.parametrize("interval", [1, 100_000, None])
def test_a_savepoint_never_holds_output_that_is_not_committed(tmp_path: Path, interval: int | None) -> None:
    with Running(program(interval=interval, out=tmp_path / "out"), str(tmp_path / "checkpoints")) as running:
        running.epochs()
        path = running.savepoint(tmp_path / "savepoints")
        seen = written(tmp_path / "out")
        expected = NumbersRead(locate(path))
        assert seen.total() >= sum(map(len, expected.ranges()))
        assert all(seen[total] for total in expected.totals().values())


def test_after_a_stop_all_output_is_there_and_the_next_job_adds_to_it(tmp_path: Path) -> None:
    out = tmp_path / "out"
    start: str | None = None
    for round_ in range(3):
        with Running(program(start, out=out), str(tmp_path / f"checkpoints-{round_}")) as running:
            running.epochs()
            start = running.savepoint(tmp_path / "savepoints", Ending.SUSPEND)
        assert running.failure is None
        assert written(out).total() == sum(map(len, NumbersRead(locate(start)).ranges()))
    assert not [file for file in out.rglob(".*") if file.is_file()]


def test_a_job_cancelled_with_a_savepoint_does_nothing_after_it(tmp_path: Path) -> None:
    with Running(program(out=tmp_path / "out"), str(tmp_path / "checkpoints")) as running:
        running.epochs()
        path = running.savepoint(tmp_path / "savepoints", Ending.CANCEL)
    assert isinstance(running.failure, JobCancelledError) and running.job.status is JobStatus.CANCELED
    check_consistent(path)
    assert written(tmp_path / "out").total() == sum(map(len, NumbersRead(locate(path)).ranges()))


def test_draining_fires_windows_and_suspending_does_not(tmp_path: Path) -> None:
    endless = 10**9
    with Running(windowed(tmp_path / "drained", None, endless), str(tmp_path / "a")) as running:
        running.epochs()
        drained = running.savepoint(tmp_path / "savepoints", Ending.DRAIN)
    assert running.failure is None and running.job.status is JobStatus.FINISHED
    read = sum(start for start, _ in locate(drained).metadata.positions["numbers"]["left"][:1])
    assert read > 0
    assert sum(int(line.split()[1]) for line in lines(tmp_path / "drained")) >= read
    assert locate(drained).metadata.final

    run = LocalRun(windowed(tmp_path / "suspended", None, 99), str(tmp_path / "b"))
    suspended = run.asking(tmp_path / "savepoints", Ending.SUSPEND, 3).run().answer.result(PATIENCE_S)
    assert lines(tmp_path / "suspended") == []
    with Running(windowed(tmp_path / "suspended", suspended, 99), str(tmp_path / "c")) as again:
        again.ended()
    assert again.failure is None
    assert lines(tmp_path / "suspended") == ["0 50", "1 50"]


def test_a_savepoint_beside_a_drain_is_not_drained(tmp_path: Path) -> None:
    with Running(windowed(tmp_path / "out", None, 10**9), str(tmp_path / "checkpoints")) as running:
        running.epochs()
        drained, beside = running.ask(tmp_path / "s", Ending.DRAIN), running.ask(tmp_path / "s")
        assert locate(drained.result(PATIENCE_S)).metadata.final
        running.ended()
        if beside.exception() is None:  # else the drain was there first
            assert not locate(beside.result()).metadata.final


def test_what_is_asked_for_at_the_end_of_the_input_is_made_of_the_last_checkpoint(tmp_path: Path) -> None:
    for interval in (1, None):
        env = StreamExecutionEnvironment().set_parallelism(1)
        if interval is not None:
            env.enable_checkpointing(interval)
        env.from_sequence(1, 10).uid("numbers").key_by(lambda n: 0).reduce(lambda a, b: a + b).uid("totals")._end(
            Collect(), "Collect"
        )
        run = LocalRun(env, str(tmp_path / f"checkpoints-{interval}"))
        answers = [
            run.job.savepoints.ask(str(tmp_path / "savepoints"), ending) for ending in (Ending.NONE, Ending.CANCEL)
        ]
        wait_until(lambda run=run: len(run.job.savepoints._waiting) == 2, "both to wait")
        run.job.savepoints.take_ending = lambda: None  # type: ignore[method-assign]  # it comes too late
        run.run()
        assert run.job.status is JobStatus.FINISHED
        for answer in answers:
            path = answer.result(PATIENCE_S)
            assert totals_in(path) == {0: 55} and locate(path).metadata.final


def test_state_that_was_given_up_is_not_in_a_savepoint(tmp_path: Path) -> None:
    """In checkpoints it may be for a while, so that its operator must not come back. It may come back to a savepoint."""
    with Running(program(), str(tmp_path / "a")) as running:
        running.epochs()
        first = running.savepoint(tmp_path / "savepoints", Ending.SUSPEND)
    env = program(first, uid="others")
    env.start = StartSettings(first, allow_non_restored_state=True)
    with Running(env, str(tmp_path / "b")) as running:
        running.epochs()
        second = running.savepoint(tmp_path / "savepoints", Ending.SUSPEND)
    assert running.failure is None
    directory = JobDirectory.open(str(tmp_path / "b"), "job")
    newest = directory.latest()
    assert newest is not None and newest.metadata.given_up == ["totals"]
    assert locate(second).metadata.given_up == []
    assert totals_in(second) == {} and totals_in(second, "others")


# ---- elsewhere


def test_savepoints_go_from_one_storage_to_another_and_are_claimed_and_deleted_there(
    s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "user")  # the paths that savepoints are known by hold no passwords
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "password")
    bucket = s3.bucket()
    with Running(program(), open_storage(bucket)) as running:  # from S3
        running.epochs()
        path = running.savepoint(bucket.replace("/checkpoints", "/savepoints"), Ending.SUSPEND)
    assert running.failure is None and "password" not in path
    check_consistent(path)
    assert locate(path.replace("?", "/_metadata?")).metadata == locate(path).metadata
    env = program(path)
    env.start = StartSettings(path, claim=True)
    with Running(env, str(tmp_path / "checkpoints"), "next") as running:  # to a directory
        wait_until(lambda: not open_storage(path).names() or running.failure, "the claimed one to go")
        running.epochs()
        there = running.savepoint(bucket.replace("/checkpoints", "/others"))  # and back
    check_consistent(there)
    dispose(there)
    assert open_storage(there).names() == []
