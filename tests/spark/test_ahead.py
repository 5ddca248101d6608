"""The next epoch's Spark job is there before the epoch is, with tasks that wait at their slots."""

from __future__ import annotations

import os
import signal
import socket
import time

import psutil
from pyspark.sql import SparkSession

from firesteel.datastream import StreamExecutionEnvironment
from firesteel.engine import session
from tests.spark.test_jobs import slots
from tests.support.waiting import wait_until


def waiting_workers() -> list[psutil.Process]:
    """Spark's Python workers with one file more than those that have nothing to do: the connection to a slot."""
    found = {}
    for process in psutil.Process().children(recursive=True):
        try:
            parent = process.parent()
            if parent is not None and "pyspark.daemon" in " ".join(parent.cmdline()) and process not in slots():
                found[process] = process.num_fds()
        except psutil.NoSuchProcess:
            continue
    return [process for process, files in found.items() if files == max(found.values())]


def running_tasks() -> int:
    tracker = SparkSession.active().sparkContext.statusTracker()
    stages = (tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds())
    return sum(stage.numActiveTasks for stage in stages if stage is not None)


def test_a_job_whose_workers_die_while_they_wait_for_input_goes_on_as_if_nothing_had_been(
    env: StreamExecutionEnvironment,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        lines = env.socket_text_stream("127.0.0.1", server.getsockname()[1])
        counts = lines.map(lambda word: (word, 1)).key_by(0).reduce(lambda a, b: (a[0], a[1] + b[1]))
        with counts.execute_and_collect() as results:
            connection, _ = server.accept()
            connection.sendall(b"a\na\n")
            assert [next(results), next(results)] == [("a", 1), ("a", 2)]
            wait_until(lambda: running_tasks() == 2, "tasks to wait for the next epoch")
            assert len(waiting_workers()) == 2
            for worker in waiting_workers():
                os.kill(worker.pid, signal.SIGKILL)
            wait_until(lambda: running_tasks() == 0, "tasks to end")
            time.sleep(0.5)  # until the driver has heard of it, which shows nowhere
            before = [slot.pid for slot in slots()]
            connection.sendall(b"a\n")
            assert next(results) == ("a", 3), "state has come through"
            assert [slot.pid for slot in slots()] == before
            connection.close()
            assert list(results) == []
    wait_until(lambda: running_tasks() == 0, "tasks to end")


def test_cores_are_reserved_for_tasks_that_wait_for_others_and_one_is_left(env: StreamExecutionEnvironment) -> None:
    env.from_collection([1]).print()
    env.execute()
    first, second = session.acquire(2, {}), session.acquire(2, {})
    try:
        assert first.sc.master == "local[6]"
        assert not first.reserve(6), "nothing would be left for others"
        assert first.reserve(4)
        assert not second.reserve(2)
        first.release()
        assert second.reserve(5)
    finally:
        first.release()
        second.release()
