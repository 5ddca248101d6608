"""Starts the sensor job as a process, hurts it, starts it again, and checks what is left.

Every driver is started in a session of its own. The JVM, Spark's workers and the slots stay in that session, whatever
their process group, so it tells what belongs to a driver even after the driver is dead.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from tests.faults import oracle
from tests.faults.jvm import java_options

REPOSITORY = Path(__file__).resolve().parents[2]
JOB = Path(__file__).parent / "jobs" / "sensor_job.py"
PATIENCE_S = 90.0
RECORDS, KEYS, RATE = 3000, 7, 1500
LASTING = 50
"""The rate of a start that is to be interrupted: its input does not end before that on the slowest of machines."""


def wait_until(condition: Callable[[], Any], what: str, timeout: float = PATIENCE_S) -> Any:
    """Poll until the condition gives something true, and return that."""
    pause, deadline = threading.Event(), time.monotonic() + timeout
    while not (result := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout:g} s in vain for: {what}")
        pause.wait(0.02)
    return result


def session_members(session: int) -> list[psutil.Process]:
    alive = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, ProcessLookupError, PermissionError):
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                alive.append(process)
    return alive


def end_session(leader: subprocess.Popen[bytes]) -> None:
    """Kill a process that was started with a session of its own, and whatever is left of that session."""
    while members := session_members(leader.pid):
        for process in members:
            with contextlib.suppress(psutil.Error):
                process.kill()
        leader.poll()
        threading.Event().wait(0.05)
    leader.wait()


def _default_sigint() -> None:
    """A shell starts background jobs with SIGINT ignored, and the driver would inherit that from a pytest run there."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _without_privileges() -> None:
    """Permissions mean nothing to root, unless it gives up the right to ignore them. Others do not have that right."""
    _default_sigint()
    for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP: gone with the exec that follows


class Driver:
    """One start of the job."""

    def __init__(
        self,
        arena: Arena,
        number: int,
        options: dict[str, Any],
        crash: str | None = None,
        once: str | None = None,
        take_over: bool = False,
        privileged: bool = True,
    ) -> None:
        self.arena = arena
        command = [sys.executable, str(JOB), "--out", str(arena.out)]
        for name, value in options.items():
            if value is True:
                command.append(f"--{name}")
            elif value is not None:
                command += [f"--{name}", str(value)]
        environment = {k: v for k, v in os.environ.items() if not k.startswith("FIRESTEEL_") or k == "FIRESTEEL_HOME"}
        environment |= {
            "TMPDIR": str(arena.tmp),
            "PYTHONPATH": str(REPOSITORY),
            "JAVA_TOOL_OPTIONS": java_options(),
        }
        if take_over:
            environment["FIRESTEEL_TAKE_OVER"] = "true"
        if crash is not None:
            environment["FIRESTEEL_CRASH"] = crash
        if once is not None:
            environment["FIRESTEEL_CRASH_ONCE"] = str(arena.home / once)
        self._stderr = arena.home / f"driver-{number}.err"
        with self._stderr.open("wb") as errors:
            self.process = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=errors,
                stderr=errors,
                cwd=arena.home,
                start_new_session=True,
                preexec_fn=_default_sigint if privileged else _without_privileges,
            )
        self.pid = self.process.pid

    def tell(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n".encode())
        self.process.stdin.flush()

    def said(self) -> str:
        return self._stderr.read_text(errors="replace")

    # ---- its processes

    def family(self) -> list[psutil.Process]:
        """Everything alive of its session, itself included."""
        return session_members(self.pid)

    def _with_command(self, part: str) -> list[psutil.Process]:
        found = []
        for process in self.family():
            with contextlib.suppress(psutil.Error):
                if part in " ".join(process.cmdline()):
                    found.append(process)
        return found

    def jvm(self) -> list[psutil.Process]:
        return self._with_command("org.apache.spark.deploy.SparkSubmit")

    # ---- what can be done to it

    def signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        self.wait()

    def wait(self, timeout: float = PATIENCE_S) -> int:
        """Its exit code; what it printed is shown when it does not end."""
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the driver did not end within {timeout:g} s. It said:\n{self.said()}") from None

    def wait_stopped(self) -> None:
        wait_until(
            lambda: psutil.Process(self.pid).status() in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE),
            "the driver to stop at its crash point",
        )
        assert self.process.poll() is None, f"it ended instead of stopping:\n{self.said()}"

    def wait_family_gone(self) -> None:
        wait_until(
            lambda: not self.family(), f"all processes of driver {self.pid} to end: now there are {self.family()}"
        )

    def end(self) -> None:
        """Nothing of it stays, whatever happened."""
        end_session(self.process)
        if self.process.stdin is not None:
            with contextlib.suppress(OSError):
                self.process.stdin.close()


class Arena:
    """The directories of one job and the drivers that were started for it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.out = home / "out"
        self.checkpoints = home / "checkpoints"
        # short, because Spark's and the slots' sockets are below it, and a socket's path has room for 107 bytes
        self.tmp = Path(tempfile.mkdtemp(prefix="fsfault-", dir="/tmp"))
        self.drivers: list[Driver] = []
        self.options: dict[str, Any] = {
            "checkpoints": self.checkpoints,
            "records": RECORDS,
            "keys": KEYS,
            "rate": RATE,
        }

    def start(
        self,
        crash: str | None = None,
        *,
        once: str | None = None,
        take_over: bool = False,
        privileged: bool = True,
        **options: Any,
    ) -> Driver:
        given = {**self.options, **options}
        driver = Driver(self, len(self.drivers) + 1, given, crash, once, take_over, privileged)
        self.drivers.append(driver)
        return driver

    def start_and_crash(self, crash: str, **options: Any) -> Driver:
        """A start that must die at its crash point; until then nothing wrong may be visible."""
        driver = self.start(crash, **{"rate": LASTING, **options})
        code = driver.wait()
        assert code == -signal.SIGKILL, f"it did not get to {crash}, but ended with {code}:\n{driver.said()}"
        self.check_so_far()
        return driver

    def finish(self, **options: Any) -> Driver:
        """A start that must run to the end, after which everything must be as without faults."""
        driver = self.start(**options)
        code = driver.wait()
        assert code == 0, f"the job failed:\n{driver.said()}"
        self.check_end()
        return driver

    def close(self) -> None:
        for driver in self.drivers:
            driver.end()
        shutil.rmtree(self.tmp, ignore_errors=True)

    # ---- what must be true

    def check_so_far(self) -> None:
        oracle.check_output(self.out, self.options["records"], self.options["keys"], complete=False)

    def check_end(self) -> None:
        """All output is there once, and nothing else is left: no process, no temporary file, no broken checkpoint."""
        oracle.check_output(self.out, self.options["records"], self.options["keys"])
        for driver in self.drivers:
            if driver.process.poll() is not None:
                driver.wait_family_gone()
        assert oracle.temporary(self.out) == []
        self.check_newest_checkpoint()
        assert list(self.tmp.iterdir()) == []

    def check_newest_checkpoint(self) -> None:
        """All files that the newest checkpoint refers to are there, with the recorded sizes."""
        newest = self.completed()[-1]
        metadata = self.metadata(newest)
        for chain in metadata["state"]:
            for handle in chain:
                file = self.job_directory / handle["file"]
                assert file.is_file(), f"{newest} needs {file}, which is gone"
                assert file.stat().st_size == handle["size"]

    # ---- the checkpoint directory, read without the engine's code

    @property
    def job_directory(self) -> Path:
        return self.checkpoints / "sensor"

    def completed(self) -> list[Path]:
        """Completed checkpoints, oldest first."""
        found = []
        for path in self.job_directory.glob("inc-*/chk-*"):
            match = re.fullmatch(r".*/inc-(\d+)/chk-(\d+)", str(path))
            if match and (path / "_metadata").exists():
                found.append((int(match[1]), int(match[2]), path))
        return [path for _, _, path in sorted(found)]

    def newest_incarnation(self) -> int:
        return max((int(p.name[4:]) for p in self.job_directory.glob("inc-*")), default=0)

    def checkpoints_of(self, incarnation: int) -> list[Path]:
        return [path for path in self.completed() if path.parent.name == f"inc-{incarnation}"]

    @staticmethod
    def metadata(checkpoint: Path) -> dict[str, Any]:
        content: dict[str, Any] = json.loads((checkpoint / "_metadata").read_bytes().split(b"\n", 1)[1])
        return content

    def wait_checkpoint(self, driver: Driver, *, after: int = 0) -> Path:
        """Wait for a completed checkpoint of an incarnation above `after`."""

        def found() -> Path | None:
            assert driver.process.poll() is None, f"the driver ended early:\n{driver.said()}"
            newest = self.completed()[-1:]
            return newest[0] if newest and int(newest[0].parent.name[4:]) > after else None

        return wait_until(found, f"a checkpoint of an incarnation above {after}")
