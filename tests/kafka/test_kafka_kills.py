"""Sudden deaths in a job from Kafka to Kafka, wherever one could hurt.

The oracle: readers of committed records see every record exactly once; those of all records saw more where records were
written twice; and in the end no transaction is in doubt.
"""

from __future__ import annotations

import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_copy import RECORDS, CopyJob, end_of
from tests.support.waiting import PATIENCE_S, wait_until


@pytest.fixture
def job(kafka: KafkaBroker, topic: Callable[..., str], tmp_path: Path) -> Iterator[CopyJob]:
    made = CopyJob(kafka, topic, tmp_path)
    yield made
    made.close()


KILLS = {
    "kafka-mid-transaction:3": None,
    "kafka-after-flush:3": True,
    "before-metadata:2": True,
    "kafka-before-first-commit:2": False,
    "kafka-after-commits:2": False,
    "before-confirm:2": False,
}
"""Where the process dies, and whether records are then written twice. They are before the commit point; within a transaction
they may not have left the process yet."""


@pytest.fixture(scope="module")
def killed_jobs(broker: KafkaBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future[CopyJob]]]:
    """A job that was killed and then finished, for each point. Three at a time: they mostly wait."""
    broker.running()
    jobs = []

    def kill(point: str) -> CopyJob:
        names = iter((f"{point.split(':')[0]}-in", f"{point.split(':')[0]}-out"))
        home = tmp_path_factory.mktemp("job")
        jobs.append(job := CopyJob(broker, lambda partitions: broker.create_topic(next(names), partitions), home))
        job.crash(point)
        job.finish()
        return job

    with ThreadPoolExecutor(3) as pool:
        yield {point: pool.submit(kill, point) for point in KILLS}
    for job in jobs:
        job.close()


@pytest.mark.parametrize("point", KILLS)
def test_every_record_comes_out_once_wherever_the_job_is_killed(
    killed_jobs: dict[str, Future[CopyJob]], point: str
) -> None:
    job = killed_jobs[point].result()
    assert KILLS[point] in (None, job.written() > RECORDS)


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
    said = end_of(zombie)
    assert zombie.returncode == 1
    assert "SupersededError" in said
    job.check()


def test_the_broker_may_die_between_the_phases(job: CopyJob) -> None:
    process = job.start("kafka-before-first-commit:2:stop")
    _wait_stopped(process)
    job.kafka.restart()
    process.send_signal(signal.SIGCONT)
    said = end_of(process)
    assert process.returncode == 0, said
    job.check()


def test_the_broker_may_die_while_the_job_runs(job: CopyJob) -> None:
    process = job.start(per_epoch=4)
    deadline = time.monotonic() + PATIENCE_S
    while not job.kafka.values(job.sink):
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
    job.kafka.restart()
    assert process.poll() is None, "too late to prove anything"
    said = end_of(process)
    assert process.returncode == 0, said
    job.check()


def test_a_job_that_was_down_for_longer_than_the_timeout_says_what_is_lost(job: CopyJob) -> None:
    job.crash("kafka-before-first-commit:2", timeout=2500)
    wait_until(lambda: not job.kafka.undecided(f"test-{job.sink}"), "the timeout")
    process = job.start(timeout=2500)
    said = end_of(process)
    assert process.returncode == 1
    lost = re.search(
        r"DataLossError: sink 'out' cannot commit 2 transactions of checkpoint 2, .* complete: (\d+) records", said
    )
    assert lost is not None, said
    process = job.start(timeout=2500, give_up=True)
    said = end_of(process)
    assert process.returncode == 0, said
    assert f"{lost[1]} records are not in Kafka and never will be" in said
    assert len(job.kafka.values(job.sink)) == RECORDS - int(lost[1])


def test_older_transactions_are_the_same(old_broker: KafkaBroker, tmp_path: Path) -> None:
    """With transaction.version=0: one kill on each side of the commit point."""
    broker = old_broker.running()

    def kill(point: str) -> None:
        names = iter((f"old-{point}-in", f"old-{point}-out"))
        home = tmp_path / point
        home.mkdir()
        job = CopyJob(broker, lambda partitions: broker.create_topic(next(names), partitions), home)
        job.crash(f"{point}:2")
        job.finish()
        job.close()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(kill, ("before-metadata", "before-confirm")))


def _wait_stopped(process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while psutil.Process(process.pid).status() != psutil.STATUS_STOPPED:
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline, "it did not get to its crash point"
        time.sleep(0.02)
