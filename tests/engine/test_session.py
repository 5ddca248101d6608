"""The embedded Spark starts quietly, survives its JVM, and leaves nothing behind; a given one is checked.

Every test with Spark runs a script of its own in a subprocess, with a temporary directory and a working directory
of its own, both of which must be empty when it has ended.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from firesteel.engine import session
from firesteel.engine.scratch import sweep_stale

PRELUDE = """
import contextlib, json, os, signal, subprocess, sys, threading, time
from firesteel.engine import session
from firesteel.errors import ConfigurationError

facts = {}

def tell():
    print(json.dumps(facts), flush=True)

def wait_until(condition, seconds=20.0):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        threading.Event().wait(0.02)
    return condition()

def total(handle):
    return handle.sc.parallelize(range(10), 2).map(lambda x: (x % 2, x)).reduceByKey(max).values().sum()

def error_of(call):
    try:
        call()
    except ConfigurationError as error:
        return str(error)

def start_slot(_):
    # as slots are: started by a Python worker, in the process group of Spark's daemon, meant to stay
    slot = subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL)
    yield [os.getpid(), os.getpgid(0), slot.pid]

def python_processes(handle):
    pids = handle.sc.parallelize(range(2), 2).mapPartitions(start_slot).collect()
    return sorted({pid for row in pids for pid in row})
"""


class Sandbox:
    """Runs scripts that have a temporary and a working directory to themselves."""

    def __init__(self, root: Path) -> None:
        # short, because a long one would be passed over for its sockets' sake
        self.tmp, self.cwd = root / "t", root / "cwd"
        self.tmp.mkdir()
        self.cwd.mkdir()

    def start(self, script: str, *launcher: str, **environ: str) -> subprocess.Popen[str]:
        path = self.cwd.parent / "script.py"
        path.write_text(PRELUDE + script)
        return subprocess.Popen(
            [*(launcher or [sys.executable]), str(path)],
            cwd=self.cwd, env={**os.environ, "TMPDIR": str(self.tmp), **environ},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def leftovers(self) -> list[str]:
        return sorted(os.listdir(self.tmp)) + sorted(os.listdir(self.cwd))


@pytest.fixture(scope="module", autouse=True)
def no_session_of_other_tests() -> None:
    """These tests are about which session is found, so none may be left over."""
    session.stop_embedded()


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    root = Path(tempfile.mkdtemp(prefix="fs-", dir="/tmp"))
    yield Sandbox(root)
    shutil.rmtree(root, ignore_errors=True)


def wait_until(condition: Callable[[], bool], seconds: float = 20.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        threading.Event().wait(0.02)
    return condition()


def gone(pids: list[int]) -> bool:
    return not any(psutil.pid_exists(pid) for pid in pids)


def facts_of(stdout: str) -> dict[str, Any]:
    """The script's one line: anything else in its output fails here."""
    facts: dict[str, Any] = json.loads(stdout.splitlines()[-1])  # packages may print warnings before
    return facts


FIRST = """
before = dict(os.environ)
handle = session.acquire(2, {"spark.ui.retainedJobs": "7"})
facts["total"] = total(handle)
facts["owned"], facts["alive"] = handle.owned, handle.alive()
facts["conf"] = dict(handle.sc.getConf().getAll())
facts["ui"] = handle.sc.uiWebUrl
facts["environ"] = sorted(k for k in os.environ if os.environ[k] != before.get(k)) + [
    k for k in before if k not in os.environ]
facts["python"] = handle.sc.parallelize([0], 1).map(lambda _: sys.executable).first()
facts["pids"] = [handle.sc._gateway.proc.pid, *python_processes(handle)]

again = session.acquire(8, {"spark.ui.retainedJobs": "7"})
facts["shared"] = again.sc is handle.sc

child = os.fork()
if child == 0:
    refused = error_of(lambda: session.acquire(2, {}))
    session.stop_embedded()
    os._exit(0 if "forked" in refused else 1)
facts["forked child"] = os.waitpid(child, 0)[1]
facts["alive after fork"] = handle.alive() and total(handle)

# Ctrl-C in a job: KeyboardInterrupt at once; the job can be cancelled; the session goes on
def interrupt():
    wait_until(lambda: handle.sc.statusTracker().getActiveJobsIds())
    os.kill(os.getpid(), signal.SIGINT)
facts["handler"] = signal.getsignal(signal.SIGINT) is signal.default_int_handler
threading.Thread(target=interrupt).start()
try:
    # jobs run on a coordinator's thread; the main thread waits for their result
    job = handle.sc.parallelize([0, 1], 2).map(lambda _: threading.Event().wait(60))
    def run_job():
        with contextlib.suppress(Exception):  # it is going to be cancelled
            job.collect()
    threading.Thread(target=run_job, daemon=True).start()
    threading.Event().wait(60)
except KeyboardInterrupt:
    handle.sc.cancelAllJobs()
    facts["cancelled"] = wait_until(lambda: not handle.sc.statusTracker().getActiveJobsIds())
facts["after Ctrl-C"] = total(handle)
handle.release(); again.release(); again.release()
tell()
raise ValueError("the user's own")
"""


def test_an_embedded_session_is_quiet_tidy_and_interruptible_and_ends_with_a_failing_script(
    sandbox: Sandbox,
) -> None:
    script = sandbox.start(FIRST)
    stdout, stderr = script.communicate(timeout=120)
    lines = stderr.splitlines()
    assert lines[0] == "Traceback (most recent call last):", stderr
    assert lines[-1] == "ValueError: the user's own"
    assert len(lines) == 4, stderr
    facts = facts_of(stdout)
    assert script.returncode == 1
    assert facts["total"] == facts["after Ctrl-C"] == facts["alive after fork"] == 17
    assert (facts["owned"], facts["alive"]) == (True, True)
    conf = facts["conf"]
    assert conf["spark.master"] == "local[6]"
    assert conf["spark.ui.retainedJobs"] == "7"  # the user's wins
    assert conf["spark.speculation"] == "false"
    assert conf["spark.sql.warehouse.dir"].startswith(f"{sandbox.tmp}/firesteel-")
    assert conf["spark.python.unix.domain.socket.enabled"] == "true"
    assert facts["ui"].startswith("http://127.0.0.1:")
    # SparkContext itself leaves these two for its readers
    assert set(facts["environ"]) <= {"SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE"}
    assert facts["python"] == sys.executable
    assert facts["shared"] is True
    assert facts["forked child"] == 0
    assert (facts["handler"], facts["cancelled"]) == (True, True)
    assert wait_until(lambda: gone(facts["pids"]))
    assert sandbox.leftovers() == []


KILLED = """
import logging
logging.basicConfig(level=logging.INFO)  # a user who logs must not get py4j's log either
handles = []
def in_a_thread(call):
    thread = threading.Thread(target=lambda: handles.append(call()))
    thread.start(); thread.join()
in_a_thread(lambda: session.acquire(1, {}))
first = handles[0]
facts["pids"] = python_processes(first)
jvm, scratch = first.sc._gateway.proc.pid, first.scratch.path

def kill():
    wait_until(lambda: first.sc.statusTracker().getActiveJobsIds())
    os.kill(jvm, signal.SIGKILL)
threading.Thread(target=kill).start()
try:
    first.sc.parallelize([0], 1).foreach(lambda _: threading.Event().wait(60))
except Exception as error:
    facts["error"] = type(error).__name__
facts["alive"] = not wait_until(lambda: not first.alive(), 5)
import psutil
facts["vanished"] = wait_until(lambda: not any(psutil.pid_exists(pid) for pid in facts["pids"]))

import socket
taken = [socket.socket() for _ in range(17)]
for port, listener in zip(range(4040, 4057), taken):
    try:
        listener.bind(("127.0.0.1", port)); listener.listen()
    except OSError:
        pass  # taken already, by someone else
second = session.acquire(1, {})  # while the first is not released: its job is being restarted
facts["swept"] = not scratch.exists()
facts["total"] = total(second)
facts["frame"] = sum(row.id for row in second.spark.range(5).collect())
facts["ui"] = second.sc.uiWebUrl
first.release(); second.release()

facts["pids"] += [second.sc._gateway.proc.pid, *python_processes(second)]
facts["scratch"] = str(second.scratch.path)
tell()
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_jvm_is_replaced_and_a_killed_driver_leaves_only_files_for_the_next_start_to_sweep(
    sandbox: Sandbox,
) -> None:
    script = sandbox.start(KILLED)
    stdout, stderr = script.communicate(timeout=120)
    assert (script.returncode, stderr) == (-signal.SIGKILL, "")
    facts = facts_of(stdout)
    assert facts["error"] in ("Py4JError", "Py4JJavaError", "ConnectionRefusedError")
    assert facts["alive"] is False
    assert facts["vanished"] is True  # the JVM's death took its Python processes along
    assert facts["swept"] is True
    assert (facts["total"], facts["frame"]) == (17, 10)
    assert int(facts["ui"].rsplit(":", 1)[1]) not in range(4040, 4057)  # those were taken
    assert wait_until(lambda: gone(facts["pids"]))
    assert sweep_stale(sandbox.tmp) == [Path(facts["scratch"])]
    assert sandbox.leftovers() == []


GIVEN = """
from pyspark.sql import SparkSession
import warnings
build = SparkSession.builder.config("spark.ui.enabled", "false").config("spark.sql.warehouse.dir", "w")
spark = build.master("local[2,3]").config("spark.speculation", "true").getOrCreate()
facts["refused"] = error_of(lambda: session.acquire(2, {}))
spark.stop()

spark = SparkSession.builder.master("local[2]").config("spark.speculation", "false").getOrCreate()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    handle = session.acquire(4, {"spark.ui.retainedJobs": "7"}, "local[4]")
facts["warned"] = [str(w.message) for w in caught]
facts["same"] = handle.spark is spark
facts["owned"], facts["total"] = handle.owned, total(handle)
handle.release()
facts["alive"] = handle.alive()
users_jvm = spark.sparkContext._gateway.proc.pid
spark.stop()
facts["stopped"] = handle.alive()

handle = session.acquire(1, {})  # the user's is stopped, so there is none
facts["owned later"], facts["other jvm"] = handle.owned, handle.sc._gateway.proc.pid != users_jvm
facts["total later"] = total(handle)
facts["pids"] = [users_jvm, handle.sc._gateway.proc.pid]
tell()
"""


def test_a_given_session_is_checked_used_as_it_is_and_left_alone(sandbox: Sandbox, tmp_path: Path) -> None:
    other = tmp_path / "python3"  # what PySpark takes if nobody says otherwise: not ours
    other.write_text("#!/bin/sh\nexit 1\n")
    other.chmod(0o755)
    script = sandbox.start(GIVEN, PATH=f"{tmp_path}:{os.environ['PATH']}")
    stdout, _ = script.communicate(timeout=120)  # stderr: the user's session, the user's noise
    assert script.returncode == 0
    facts = facts_of(stdout)
    assert "spark.speculation is true, and must be false" in facts["refused"]
    assert "spark.master is local[2,3]" in facts["refused"]
    assert facts["same"] is True
    assert (facts["owned"], facts["total"], facts["alive"], facts["stopped"]) == (False, 17, True, False)
    [warning] = facts["warned"]
    assert "'spark.ui.retainedJobs': '7'" in warning
    assert "'spark.master': 'local[4]'" in warning
    assert (facts["owned later"], facts["other jvm"], facts["total later"]) == (True, True, 17)
    assert wait_until(lambda: gone(facts["pids"]))


def test_under_spark_submit_its_master_and_settings_are_used(sandbox: Sandbox) -> None:
    script = sandbox.start(
        """
handle = session.acquire(4, {})
conf = handle.sc.getConf()
facts["owned"], facts["master"], facts["total"] = handle.owned, handle.sc.master, total(handle)
facts["alive"], facts["attempts"] = handle.alive(), conf.get("spark.stage.maxConsecutiveAttempts")
facts["handler"] = signal.getsignal(signal.SIGINT) is signal.default_int_handler
tell()
""",
        str(Path(sys.executable).with_name("spark-submit")), "--master", "local[2]",
        "--conf", "spark.ui.enabled=false",
        PYSPARK_PYTHON=sys.executable,
    )  # fmt: skip
    stdout, stderr = script.communicate(timeout=120)
    assert script.returncode == 0, stderr
    assert facts_of(stdout) == {
        "owned": False, "master": "local[2]", "total": 17, "alive": True, "attempts": "1", "handler": True,
    }  # fmt: skip


def test_a_spark_that_does_not_start_says_why_and_leaves_nothing(sandbox: Sandbox) -> None:
    script = sandbox.start(
        """
facts["error"] = error_of(lambda: session.acquire(1, {"spark.driver.memory": "1k"}))
tell()
"""
    )
    stdout, stderr = script.communicate(timeout=120)
    assert (script.returncode, stderr) == (0, "")
    assert "'spark.driver.memory': '1k'" in facts_of(stdout)["error"]
    assert "Too small maximum heap" in facts_of(stdout)["error"]
    assert sandbox.leftovers() == []
