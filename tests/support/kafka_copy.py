"""Starts of a job that copies one topic into another, and what must be true of the copy."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.kafka_broker import KafkaBroker
from tests.support.waiting import PATIENCE_S

ROOT = Path(__file__).parents[2]
JOB = ROOT / "tests" / "kafka" / "jobs" / "copy_job.py"
RECORDS = 100


def end_of(process: subprocess.Popen[str]) -> str:
    """Wait until a job ends; what it said. One that does not end says where it hangs."""
    try:
        return process.communicate(timeout=PATIENCE_S)[1]
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)
        raise AssertionError(f"it did not end within {PATIENCE_S} s:\n{process.communicate()[1]}") from None


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
        command = [sys.executable, "-X", "faulthandler", str(JOB), "--servers", self.kafka.bootstrap]
        command += ["--source", self.source, "--sink", self.sink, "--checkpoints", str(self.home)]
        for name, value in options.items():
            command += [f"--{name.replace('_', '-')}"] + ([] if value is True else [str(value)])
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "FIRESTEEL_CRASH": crash}
        process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True, cwd=self.home)
        self.started.append(process)
        return process

    def crash(self, point: str, **options: Any) -> None:
        process = self.start(point, **options)
        said = end_of(process)
        assert process.returncode == -signal.SIGKILL, f"it did not get to {point}:\n{said}"
        visible = self.kafka.values(self.sink)
        assert len(visible) == len(set(visible)), "records twice"
        assert set(visible) <= set(self.expected)

    def finish(self, **options: Any) -> None:
        process = self.start(**options)
        said = end_of(process)
        assert process.returncode == 0, said
        self.check()

    def check(self) -> None:
        assert self.kafka.undecided(f"test-{self.sink}") == []
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
