"""Runs a small `make demo`."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture
def home() -> Iterator[Path]:
    """For all temporary files of the demo. Short, because a socket's path has room for 107 bytes."""
    path = Path(tempfile.mkdtemp(prefix="d", dir="/tmp"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


def start(home: Path, *options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "demo", *options],
        cwd=REPOSITORY, env={**os.environ, "TMPDIR": str(home)}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def test_nothing_is_lost_or_repeated_when_the_driver_is_killed(home: Path) -> None:
    demo = start(home, "--readings", "200000", "--rate", "40000", "--interval", "500")
    said, _ = demo.communicate(timeout=280)
    assert demo.returncode == 0, said
    assert "checkpoint 3 complete" in said
    assert re.search(r"goes on from checkpoint inc-1/chk-\d+", said)
    verdict = re.search(r"expected ([\d,]+) alerts, committed ([\d,]+), missing 0, repeated 0$", said, re.MULTILINE)
    assert verdict and verdict[1] == verdict[2] != "0", said
    assert said.splitlines()[-1].endswith("Exactly once.")
    assert list(home.iterdir()) == []


def test_ctrl_c_leaves_no_process_and_no_file(home: Path) -> None:
    demo = start(home, "--readings", "20000")
    assert demo.stdout is not None
    while "Starting Spark" not in demo.stdout.readline():
        assert demo.poll() is None
    job = wait_for_child(demo)
    demo.send_signal(signal.SIGINT)
    said = demo.communicate(timeout=60)[0]
    assert demo.returncode == 130, said
    assert said.splitlines()[-1] == "Stopped."
    assert not job.is_running()
    assert list(home.iterdir()) == []


def wait_for_child(demo: subprocess.Popen[str]) -> psutil.Process:
    pause, deadline = threading.Event(), time.monotonic() + 60
    while not (children := psutil.Process(demo.pid).children()):
        assert time.monotonic() < deadline, "the demo did not start its job"
        pause.wait(0.02)
    return children[0]
