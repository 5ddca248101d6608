"""Sudden deaths in a job from Kafka to Kafka, wherever one could hurt.

The oracle: readers of committed records see every record exactly once; those of all records saw more where records were
written twice; and in the end no transaction is in doubt.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.kafka_broker import KafkaBroker

JOB = Path(__file__).parent / "jobs" / "copy_job.py"
ROOT = Path(__file__).parents[2]
RECORDS = 100
PATIENCE_S = 60.0


class CopyJob:
    """Starts of one job."""

    def __init__(self, kafka: KafkaBroker, topic: Callable[..., str], home: Path) -> None:
        self.kafka, self.home = kafka, home
        self.source, self.sink = topic(2), topic(2)
        for partition in range(2):
            kafka.produce(self.source, range(partition * 50, partition * 50 + 50), partition)
        self.expected = sorted(f"{number}!" for number in range(RECORDS))
        self.started: list[subprocess.Popen[str]] = []

    def start(self, crash: str = "", **options: Any) -> subprocess.Popen[str]:
        command = [sys.executable, str(JOB), "--servers", self.kafka.bootstrap]
        command += ["--source", self.source, "--sink", self.sink, "--checkpoints", str(self.home)]
        for name, value in options.items():
            command += [f"--{name.replace('_', '-')}"] + ([] if value is True else [str(value)])
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "FIRESTEEL_CRASH": crash}
        process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True, cwd=self.home)
        self.started.append(process)
        return process

    def crash(self, point: str, **options: Any) -> None:
        process = self.start(point, **options)
        said = process.communicate(timeout=PATIENCE_S)[1]
        assert process.returncode == -signal.SIGKILL, f"it did not get to {point}:\n{said}"
        visible = self.kafka.values(self.sink)
        assert len(visible) == len(set(visible)), "records twice"
        assert set(visible) <= set(self.expected)

    def finish(self, **options: Any) -> None:
        process = self.start(**options)
        said = process.communicate(timeout=PATIENCE_S)[1]
        assert process.returncode == 0, said
        self.check()

    def check(self) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while in_doubt := self.kafka.in_doubt(f"test-{self.sink}"):  # markers of a commit are on their way for a moment
            assert all(each.state != "Ongoing" for each in in_doubt), in_doubt
            assert time.monotonic() < deadline, in_doubt
        assert self.kafka.values(self.sink) == self.expected

    def written(self) -> int:
        return len(self.kafka.values(self.sink, committed=False))

    def close(self) -> None:
        for process in self.started:
            if process.poll() is None:
                process.kill()
                process.wait()
            if process.stderr is not None:
                process.stderr.close()


@pytest.fixture
def job(kafka: KafkaBroker, topic: Callable[..., str], tmp_path: Path) -> Iterator[CopyJob]:
    made = CopyJob(kafka, topic, tmp_path)
    yield made
    made.close()


@pytest.mark.parametrize(
    ("point", "repeated"),
    [
        ("kafka-mid-transaction:3", True),
        ("slot-after-prepare-commit:3", True),
        ("kafka-after-flush:3", True),
        ("before-metadata:2", True),
        ("after-rename:2", False),
        ("kafka-before-first-commit:2", False),
        ("kafka-after-commits:2", False),
        ("before-confirm:2", False),
    ],
)
def test_every_record_comes_out_once_wherever_the_job_is_killed(job: CopyJob, point: str, repeated: bool) -> None:
    job.crash(point)
    job.finish()
    assert (job.written() > RECORDS) == repeated


def test_a_job_that_is_killed_again_and_again_finishes_with_another_parallelism(job: CopyJob) -> None:
    job.crash("kafka-before-first-commit:2")
    job.crash("recovery-before-confirm:1", parallelism=3)
    job.crash("before-metadata:1", parallelism=1)
    job.finish(parallelism=3)


def test_a_zombie_that_wakes_after_its_successor_took_over_changes_nothing(job: CopyJob) -> None:
    zombie = job.start("before-metadata:2:stop")
    _wait_stopped(zombie)
    job.finish()
    zombie.send_signal(signal.SIGCONT)
    said = zombie.communicate(timeout=PATIENCE_S)[1]
    assert zombie.returncode == 1
    assert "SupersededError" in said
    job.check()


def test_the_broker_may_die_between_the_phases(job: CopyJob) -> None:
    process = job.start("kafka-before-first-commit:2:stop")
    _wait_stopped(process)
    job.kafka.restart()
    process.send_signal(signal.SIGCONT)
    said = process.communicate(timeout=PATIENCE_S)[1]
    assert process.returncode == 0, said
    job.check()


def test_a_job_that_was_down_for_longer_than_the_timeout_says_what_is_lost(job: CopyJob) -> None:
    job.crash("kafka-before-first-commit:2", timeout=2500)
    deadline = time.monotonic() + PATIENCE_S
    while job.kafka.in_doubt(f"test-{job.sink}"):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process = job.start(timeout=2500)
    said = process.communicate(timeout=PATIENCE_S)[1]
    assert process.returncode == 1
    lost = re.search(
        r"DataLossError: sink 'out' cannot commit 2 transactions of checkpoint 2, .* complete: (\d+) records", said
    )
    assert lost is not None, said
    process = job.start(timeout=2500, give_up=True)
    said = process.communicate(timeout=PATIENCE_S)[1]
    assert process.returncode == 0, said
    assert f"{lost[1]} records are not in Kafka and never will be" in said
    assert len(job.kafka.values(job.sink)) == RECORDS - int(lost[1])


def test_older_transactions_are_the_same(
    old_broker: KafkaBroker, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """With transaction.version=0: one kill on each side of the commit point."""
    broker = old_broker.running()
    for point in ("before-metadata:2", "before-confirm:2"):
        names = iter((f"old-in-{point[:10]}", f"old-out-{point[:10]}"))
        home = tmp_path / point
        home.mkdir()
        job = CopyJob(broker, lambda partitions, names=names: broker.create_topic(next(names), partitions), home)
        job.crash(point)
        job.finish()


def _wait_stopped(process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while psutil.Process(process.pid).status() != psutil.STATUS_STOPPED:
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline, "it did not get to its crash point"
        time.sleep(0.02)
