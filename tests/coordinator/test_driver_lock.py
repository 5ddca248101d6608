"""One driver at a time: by a lock that a process holds while it lives, and that nothing else depends on."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from firesteel.coordinator.driver_lock import FILE, DriverLock
from firesteel.coordinator.lineage import JobDirectory
from firesteel.coordinator.starting import check_start
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.errors import ConfigurationError, JobRunningError, RestoreError, SupersededError
from firesteel.graph.settings import CheckpointSettings, JobSettings
from tests.support.local_engine import LocalRun
from tests.support.slicing import Sliced

HOLDER = """
import subprocess, sys
from firesteel.coordinator.driver_lock import DriverLock
from firesteel.coordinator.lineage import JobDirectory
from firesteel.errors import JobRunningError
with DriverLock() as lock:
    try:
        lock.acquire(JobDirectory.open(sys.argv[1], "billing"), take_over=len(sys.argv) > 2)
    except JobRunningError as error:
        print("refused", flush=True)
    else:
        child = subprocess.Popen(["sleep", "1000"])  # which must not keep the lock
        print(child.pid, flush=True)
    sys.stdin.read()
"""

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started = []

    def begin(*arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", HOLDER, str(tmp_path), *arguments]
        started.append(process := subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def answer(process: subprocess.Popen[str]) -> str:
    """Once it has the lock, or was refused."""
    assert process.stdout is not None
    said = process.stdout.readline().strip()
    if said.isdigit():
        os.kill(int(said), signal.SIGKILL)  # its child, a sleeper
    return said


@pytest.fixture
def job(tmp_path: Path) -> JobDirectory:
    return JobDirectory.open(str(tmp_path), "billing")


def test_a_second_driver_is_told_who_has_the_job_since_when_and_what_to_do(start: Start, job: JobDirectory) -> None:
    first = start()
    assert answer(first).isdigit()
    with DriverLock() as lock, pytest.raises(JobRunningError) as refused:
        lock.acquire(job)
    said = str(refused.value)
    assert f"job 'billing' is running already: process {first.pid} on {socket.gethostname()}, since 20" in said
    assert os.path.join(job.path, FILE) in said
    assert "--take-over" in said and "another name" in said and "stopped" not in said


def test_a_dead_drivers_job_is_free_at_once_although_its_children_live(start: Start, job: JobDirectory) -> None:
    first = start()
    assert first.stdout is not None
    child = int(first.stdout.readline())
    first.kill()
    first.wait()
    with DriverLock() as lock:
        lock.acquire(job)
    os.kill(child, signal.SIGKILL)


def test_a_stopped_driver_still_has_its_job_and_can_be_replaced(start: Start, job: JobDirectory) -> None:
    first = start()
    answer(first)
    os.kill(first.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, first.pid, os.WSTOPPED)
    with (
        DriverLock() as lock,
        pytest.raises(JobRunningError, match="which is stopped and goes on when it gets SIGCONT"),
    ):
        lock.acquire(job)
    second = start("take-over")
    assert answer(second).isdigit()
    with DriverLock() as lock, pytest.raises(JobRunningError, match=f"process {second.pid} on"):
        lock.acquire(job)
    os.kill(first.pid, signal.SIGCONT)
    first.communicate()  # it ends as well as it can, and leaves its successor's lock alone
    with DriverLock() as lock, pytest.raises(JobRunningError, match=f"process {second.pid} on"):
        lock.acquire(job)
    second.communicate()
    with DriverLock() as lock:
        lock.acquire(job)


def test_of_many_drivers_started_at_once_one_gets_the_job(start: Start) -> None:
    answers = [answer(process) for process in [start() for _ in range(6)]]
    assert answers.count("refused") == 5


def test_this_process_too_runs_a_job_once_at_a_time(job: JobDirectory) -> None:
    with DriverLock() as first:
        first.acquire(job)
        with DriverLock() as second, pytest.raises(JobRunningError, match="which is this one"):
            second.acquire(job)
    with DriverLock() as third:
        third.acquire(job)


def test_a_forked_child_does_not_keep_the_lock(job: JobDirectory) -> None:
    read, write = os.pipe()
    with DriverLock() as first:
        first.acquire(job)
        child = os.fork()
        if child == 0:
            os.write(write, b".")
            signal.pause()
        os.read(read, 1)
    try:
        with DriverLock() as second:
            second.acquire(job)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_a_file_that_was_replaced_before_it_was_locked_does_not_count(
    job: JobDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Locking what nobody can open any more would let two drivers in."""
    path, flock, taken = os.path.join(job.path, FILE), fcntl.flock, []

    def replaced_first(descriptor: int, how: int) -> None:
        if not taken:
            taken.append(path)
            os.unlink(path)
        flock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", replaced_first)
    with DriverLock() as first:
        first.acquire(job)
        with DriverLock() as second, pytest.raises(JobRunningError):
            second.acquire(job)


def test_without_locks_a_job_runs_and_says_that_nobody_checks(
    job: JobDirectory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def none(descriptor: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", none)
    with DriverLock() as lock:
        lock.acquire(job)
        assert not lock.held
    assert "cannot be locked (No locks available)" in caplog.text


def test_a_lock_that_cannot_be_opened_is_named(job: JobDirectory) -> None:
    os.mkdir(os.path.join(job.path, FILE))
    with DriverLock() as lock, pytest.raises(ConfigurationError, match=r"_driver, .* cannot be used: Is a directory"):
        lock.acquire(job)


# ---- what does not depend on locks


def program(uid: str) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment().set_parallelism(1).enable_checkpointing(1)
    numbers = env.from_source(Sliced(NumberSequenceSource(1, 500), 50), source_name="numbers").uid("numbers")
    numbers.key_by(lambda n: n % 3).reduce(lambda a, b: a + b).uid(uid).print()
    return env


def test_a_wrong_program_under_a_jobs_name_claims_and_fences_nothing(tmp_path: Path) -> None:
    LocalRun(program("totals"), str(tmp_path)).run()
    before = sorted(tmp_path.rglob("*"))
    settings = JobSettings("job", CheckpointSettings(1000, directory=str(tmp_path)))
    with pytest.raises(RestoreError, match=r"would be lost: 'Keyed Reduce' \(uid totals\).*new to it: .*\(uid sums\)"):
        check_start(program("sums").plan(), settings)
    assert sorted(tmp_path.rglob("*")) == before
    check_start(program("totals").plan(), settings)


def test_a_driver_that_was_replaced_while_it_waited_to_restart_does_not_take_the_job_back(tmp_path: Path) -> None:
    run = LocalRun(program("totals"), str(tmp_path), fail_at=[3])
    delay = run.job._restarts.delay_s

    def take_over(failure: BaseException) -> float | None:
        if not isinstance(failure, SupersededError):
            JobDirectory.open(str(tmp_path), "job").claim()
        return delay(failure)

    run.job._restarts.delay_s = take_over  # type: ignore[method-assign]
    with pytest.raises(SupersededError):
        run.run()
    assert JobDirectory.open(str(tmp_path), "job").incarnations() == [2, 1]
