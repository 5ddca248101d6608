"""Savepoints that cannot be taken say why, and leave the job and the target as they were."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from firesteel.common import RestartStrategies
from firesteel.common.job_status import JobStatus
from firesteel.coordinator import savepoint_writing
from firesteel.coordinator.lineage import JobDirectory
from firesteel.coordinator.savepoint_requests import Ending
from firesteel.errors import ConfigurationError, SavepointError
from firesteel.runtime.task import SlotTask
from tests.support.local_engine import LocalRun
from tests.support.running import Running
from tests.support.summing import check_consistent, lines, program, windowed
from tests.support.waiting import PATIENCE_S, wait_until


def test_without_a_directory_nothing_happens(tmp_path: Path) -> None:
    with Running(program(), str(tmp_path / "checkpoints")) as running:
        with pytest.raises(ConfigurationError, match=r"execution\.checkpointing\.savepoint-dir"):
            running.job.savepoints.ask(None).result(PATIENCE_S)
        for inside in ("job", "job/savepoints", "x/../job/inc-1"):
            with pytest.raises(ConfigurationError, match="in the job's own directory"):
                running.ask(tmp_path / "checkpoints" / inside).result(PATIENCE_S)
        with pytest.raises(ConfigurationError, match="s9"):
            running.job.savepoints.ask("s9://bucket").result(PATIENCE_S)
        running.epochs()
    env = program()
    env.set_default_savepoint_directory(str(tmp_path / "default"))
    with Running(env, str(tmp_path / "others")) as running:
        path = running.job.savepoints.ask(None).result(PATIENCE_S)
        assert os.path.dirname(path) == str(tmp_path / "default")


def test_a_target_that_is_a_file_is_said_before_anything_happens(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with Running(program(), str(tmp_path / "checkpoints")) as running:
        for ending in Ending:
            with pytest.raises(SavepointError, match=r"cannot be made or written to: (Not a directory|File exists)"):
                running.ask(tmp_path / "file" / "x", ending).result(PATIENCE_S)
        running.epochs()


@pytest.mark.parametrize("interval", [1, None])
@pytest.mark.parametrize("ending", [Ending.NONE, Ending.SUSPEND, Ending.CANCEL])
@pytest.mark.parametrize(("fault", "words"), [("full", "No space left on device"), ("", "killed by SIGKILL")])
def test_a_savepoint_that_cannot_be_written_says_why_and_the_job_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: Ending, fault: str, words: str, interval: int | None
) -> None:
    with Running(program(interval=interval), str(tmp_path / "checkpoints")) as running:
        running.epochs()
        with monkeypatch.context() as patched:
            patched.setenv("FIRESTEEL_CRASH", f"merging-state:1:{fault}")  # of the processes that merge
            with pytest.raises(SavepointError, match=rf"slot \d could not write its state: .*{words}"):
                running.ask(tmp_path / "savepoints", ending).result(PATIENCE_S)
        running.epochs()
        assert os.listdir(tmp_path / "savepoints") == []
        check_consistent(running.savepoint(tmp_path / "savepoints"))
    assert running.job.failures == []


def test_a_drain_that_cannot_be_written_takes_the_job_back_to_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its windows have fired, so nothing of that may be committed."""
    env = windowed(tmp_path / "out", None, 20_000, 70)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(1, 0))
    monkeypatch.setenv("FIRESTEEL_CRASH", "merging-state:1:full")  # of the processes that merge
    run = LocalRun(env, str(tmp_path / "checkpoints")).asking(tmp_path / "savepoints", Ending.DRAIN).run()
    with pytest.raises(SavepointError, match="No space left on device"):
        run.answer.result(PATIENCE_S)
    assert [type(failure) for failure in run.job.failures] == [SavepointError]
    hours = [
        len([n for n in range(20_001) if n // 3600 == hour and n % 2 == half]) for hour in range(6) for half in (0, 1)
    ]
    assert lines(tmp_path / "out") == sorted(f"{index % 2} {count}" for index, count in enumerate(hours))


def test_a_savepoint_that_does_not_get_any_further_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Running(program(), str(tmp_path / "checkpoints")) as running:
        running.epochs()
        with monkeypatch.context() as patched:
            real = savepoint_writing.DraftSavepoint
            patched.setattr(savepoint_writing, "DraftSavepoint", lambda *given: real(*given[:-1], 2.0))
            patched.setenv("FIRESTEEL_CRASH", "merging-state:1:wait-600")
            with pytest.raises(SavepointError, match="no slot has got any further with it for 2 s"):
                running.ask(tmp_path / "savepoints").result(PATIENCE_S)
        assert os.listdir(tmp_path / "savepoints") == []
        check_consistent(running.savepoint(tmp_path / "savepoints"))  # the slots are free again
    assert running.job.failures == []


def test_two_at_once_are_two(tmp_path: Path) -> None:
    with Running(program(), str(tmp_path / "checkpoints")) as running:
        answers = [running.ask(tmp_path / "savepoints") for _ in range(2)]
        paths = {answer.result(PATIENCE_S) for answer in answers}
        assert len(paths) == 2
        for path in paths:
            check_consistent(path)
        stops = [running.ask(tmp_path / "savepoints", Ending.SUSPEND) for _ in range(2)]
        running.ended()
        failures = [stop.exception() for stop in stops]
        assert failures.count(None) == 1
        assert "the job has ended, its status is FINISHED" in str(next(filter(None, failures)))


def test_a_job_that_has_ended_takes_none(tmp_path: Path) -> None:
    with Running(program(), str(tmp_path / "checkpoints")) as running:
        running.epochs()
    with pytest.raises(SavepointError, match="the job has ended, its status is CANCELED"):
        running.ask(tmp_path / "savepoints").result(PATIENCE_S)
    assert not (tmp_path / "savepoints").exists()


def test_a_restart_fails_the_savepoint_under_way_and_serves_the_one_that_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = program()
    with Running(env, str(tmp_path / "checkpoints")) as running:
        running.epochs()
        with monkeypatch.context() as patched:
            patched.setenv("FIRESTEEL_CRASH", "merging-state:1:wait-60")
            under_way = running.ask(tmp_path / "savepoints")
            wait_until(lambda: list((tmp_path / "savepoints").glob("*/*.state")), "it to be under way")
        running.run.engine.fail_next = True
        wait_until(lambda: running.job.failures, "the job to fail")
        running.run.engine.fail_next = False
        waiting = running.ask(tmp_path / "savepoints")
        with pytest.raises(SavepointError, match="have ended"):
            under_way.result(PATIENCE_S)
        check_consistent(waiting.result(PATIENCE_S))
        assert os.listdir(tmp_path / "savepoints") == [os.path.basename(waiting.result())]


def test_the_files_of_its_checkpoint_stay_for_as_long_as_a_savepoint_is_made_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Running(program(), str(tmp_path / "checkpoints")) as running:
        running.epochs()
        with monkeypatch.context() as patched:
            patched.setenv("FIRESTEEL_CRASH", "merging-state:1:stop")
            slow = running.ask(tmp_path / "savepoints")
            wait_until(lambda: list((tmp_path / "savepoints").glob("*/*.state")), "it to be under way")
        seen = running.run.progress.checkpoints
        wait_until(lambda: running.run.progress.checkpoints > seen + 5, "other checkpoints")
        assert not slow.done()
        wait_until(lambda: [_continue(task) for task in running.run.engine.tasks] and slow.done(), "the savepoint")
        check_consistent(slow.result(PATIENCE_S))
        directory = JobDirectory.open(str(tmp_path / "checkpoints"), "job")
        wait_until(lambda: len(directory.fencing.checkpoints(1)) == 1, "what was pinned to go")


def _continue(task: SlotTask) -> None:
    merging = task._savepoints._running
    if merging is not None:
        merging._process.send_signal(signal.SIGCONT)


def test_a_cancelled_job_fails_its_savepoints_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Running(program(), str(tmp_path / "checkpoints")) as running:
        running.epochs()
        monkeypatch.setenv("FIRESTEEL_CRASH", "merging-state:1:wait-60")
        answer = running.ask(tmp_path / "savepoints", Ending.SUSPEND)
        wait_until(lambda: list((tmp_path / "savepoints").glob("*/*.state")), "it to be under way")
        running.job.cancel()
        with pytest.raises(SavepointError):
            answer.result(PATIENCE_S)
    assert running.job.status is JobStatus.CANCELED
    assert os.listdir(tmp_path / "savepoints") == []
