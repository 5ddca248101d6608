"""The jobs of this user: found while they live, remembered when they have ended, missed when they were killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from firesteel.common.job_status import JobStatus
from firesteel.rest import registry
from firesteel.rest.registry import find_jobs, register
from tests.rest.conftest import Launch, program
from tests.support.waiting import PATIENCE_S, wait_until


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIRESTEEL_HOME", str(tmp_path / "home"))


def test_a_job_is_found_while_it_runs_and_remembered_after_that(run: Launch) -> None:
    job = run(name="counts")
    (found,) = find_jobs()
    assert found.alive and found.entry.name == "counts" and found.entry.pid == os.getpid()
    assert found.entry.job_id == str(job.get_job_id())
    wait_until(lambda: find_jobs()[0].status is JobStatus.RUNNING, "the job to run")
    job.cancel().result(PATIENCE_S)
    (found,) = find_jobs()
    assert (found.alive, found.lost, found.status) == (False, False, JobStatus.CANCELED)
    assert found.ended_ms is not None and found.ended_ms >= found.entry.started_ms


def test_the_failure_of_a_job_is_remembered(run: Launch) -> None:
    job = run(program(end=1000, fail_at=500))
    with pytest.raises(Exception, match="not this one"):
        job.get_job_execution_result().result(PATIENCE_S)
    (found,) = find_jobs()
    assert found.status is JobStatus.FAILED and "ValueError: not this one" in (found.entry.failure or "")


def test_a_second_run_of_a_job_has_an_entry_of_its_own(run: Launch) -> None:
    run(program(end=100)).get_job_execution_result().result(PATIENCE_S)
    job = run(program(end=100))
    job.get_job_execution_result().result(PATIENCE_S)
    assert [one.entry.job_id for one in find_jobs()] == [str(job.get_job_id())] * 2


def test_a_driver_that_was_killed_is_missed(tmp_path: Path) -> None:
    code = (
        "import sys, time\nfrom firesteel.rest.registry import register\n"
        "entry = register('abc', 'killed', '127.0.0.1:1', 't')\nentry.update(status='RUNNING')\nprint('there', flush=True)\n"
        "time.sleep(600)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline() == b"there\n"
    (found,) = find_jobs()
    assert found.alive and found.status is JobStatus.RUNNING and not found.lost
    process.send_signal(signal.SIGKILL)
    process.wait()
    (found,) = find_jobs()
    assert (found.alive, found.lost, found.status) == (False, True, JobStatus.FAILED)
    assert found.ended_ms is not None


def test_looking_is_never_taken_for_living() -> None:
    """Many look at the same time at an entry whose driver is gone."""
    entry = register("abc", "gone", None, "t")
    assert entry is not None
    folder = find_jobs()[0].folder
    entry.close()
    import fcntl

    with open(folder / "lock") as other:
        fcntl.flock(other, fcntl.LOCK_SH)
        assert not find_jobs()[0].alive


def test_what_ended_long_ago_is_forgotten_with_its_log_and_what_lives_never(monkeypatch: pytest.MonkeyPatch) -> None:
    log = registry.new_log("job.py")
    monkeypatch.setattr(registry, "_log_file", str(log))
    old, living = register("old", "old", None, "t"), register("living", "living", None, "t")
    assert old is not None and living is not None
    long_ago = int(time.time() * 1000) - 8 * 24 * 3600 * 1000
    old.update(status="FINISHED", started_ms=long_ago, ended_ms=long_ago)
    living.update(status="RUNNING", started_ms=long_ago, log=None)
    old.close()
    os.utime(log, (long_ago / 1000, long_ago / 1000))
    monkeypatch.setattr(registry, "_log_file", None)
    assert register("new", "new", None, "t") is not None
    assert {one.entry.job_id for one in find_jobs()} == {"living", "new"}
    assert not log.exists()


def test_of_very_many_only_the_newest_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_MOST_ENDED", 3)
    for number in range(6):
        entry = register(f"{number}", "short", None, "t")
        assert entry is not None
        entry.update(status="FINISHED", started_ms=number, ended_ms=int(time.time() * 1000) + number)
        entry.close()
    assert [one.entry.job_id for one in find_jobs()] == ["2", "3", "4", "5"]


def test_what_cannot_be_read_is_passed_over(tmp_path: Path) -> None:
    entry = register("abc", "whole", None, "t")
    assert entry is not None
    for name, content in {
        "torn": '{"job_id": "x"',
        "other": '{"job_id": "x"}',
        "list": "[]",
        "odd": '{"status": "SLEEPY"}',
    }.items():
        (tmp_path / "home" / "jobs" / name).mkdir()
        (tmp_path / "home" / "jobs" / name / "job.json").write_text(content)
    (tmp_path / "home" / "jobs" / "empty").mkdir()
    newer = find_jobs()[0].folder / "job.json"
    newer.write_text(json.dumps({**json.loads(newer.read_text()), "of a later version": 1}))
    assert [one.entry.job_id for one in find_jobs()] == ["abc"]


def test_a_home_that_cannot_be_written_is_a_warning_and_the_job_runs(
    run: Launch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FIRESTEEL_HOME", str(tmp_path / "file" / "below"))
    job = run(program(end=100))
    job.get_job_execution_result().result(PATIENCE_S)
    assert "cannot be found by `firesteel list`" in caplog.text
    assert find_jobs() == []
