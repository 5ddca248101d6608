"""One job from its first start to its end, through all that is done to it, and what must be true of it."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from firesteel.testing.faults import CrashPoints, SkewedClock
from firesteel.testing.killer import Family
from tests.chaos import oracle
from tests.chaos.oracle import ViolationError
from tests.faults.jvm import java_options

REPOSITORY = Path(__file__).resolve().parents[2]
JOB = Path(__file__).parent / "jobs" / "chaos_job.py"
PATIENCE_S = 120.0
KEYS, RATE = 7, 600
PARALLELISMS = (2, 3, 1)
"""Of the first start, the second, the third, and over again."""
SINKS = {
    "file": [("sums", "sums")],
    "transactions": [("store/visible", "sums")],
    "ahead": [("store/visible", "sums")],
    "both": [("numbers", "numbers"), ("store/visible", "sums")],
    "rocksdb": [("numbers", "numbers"), ("store/visible", "sums")],
}
"""Kind of job -> where its output is, and what it is."""


class Driver:
    """One start of a job, in a session of its own."""

    def __init__(self, command: list[str], home: Path, log: Path, environment: dict[str, str]) -> None:
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("FIRESTEEL_", "CHAOS_"))}
        inherited |= {
            "PYTHONPATH": str(REPOSITORY),
            "JAVA_TOOL_OPTIONS": java_options(),
        }
        self._log = log
        with log.open("wb") as said:
            self.process = subprocess.Popen(
                [sys.executable, str(JOB), *command],
                env=inherited | environment,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                cwd=home,
                start_new_session=True,
            )
        self.family = Family(self.process)

    def said(self) -> str:
        return self._log.read_text(errors="replace")

    def tail(self) -> str:
        return "\n".join(self.said().splitlines()[-25:])

    def ended(self) -> int | None:
        return self.process.poll()


class Life:
    """The directories of one job and the drivers that were started for it."""

    def __init__(
        self,
        home: Path,
        kind: str,
        *,
        keys: int = KEYS,
        rate: int = RATE,
        backends: Sequence[str] = ("hashmap",),
        **options: Any,
    ) -> None:
        self.home, self.kind, self.keys = home, kind, keys
        self._backends = backends
        self._in_event_time = kind == "rocksdb"
        home.mkdir(parents=True, exist_ok=True)
        self.checkpoints = home / "checkpoints"
        self.job = self.checkpoints / "chaos"
        # short, because Spark's and the slots' sockets are below it, and a socket's path has room for 107 bytes
        self.tmp = Path(tempfile.mkdtemp(prefix="fschaos-", dir="/tmp"))
        self.points = CrashPoints(home / "crash")
        self.clock = SkewedClock(home / "clock")
        self.options = {"keys": keys, "rate": rate, **options}
        self.environment: dict[str, str] = {}
        self.drivers: list[Driver] = []
        self.last: int | None = None  # the input's end, once it is decided
        self._closed = False

    # ---- running it

    def command(self, home: Path | None = None) -> list[str]:
        home = home or self.home
        given = {"kind": self.kind, "home": home, "checkpoints": home / "checkpoints", **self.options}
        return [part for name, value in given.items() if value is not None for part in (f"--{name}", str(value))]

    def start(self, *, take_over: bool = False) -> Driver:
        if self._closed:
            raise ViolationError("the run was ended")
        log = self.home / f"driver-{len(self.drivers) + 1}.log"
        environment = {"TMPDIR": str(self.tmp), **self.points.environment(), **self.environment}
        if take_over:
            environment["FIRESTEEL_TAKE_OVER"] = "true"
        parallelism = PARALLELISMS[len(self.drivers) % len(PARALLELISMS)]
        backend = self._backends[len(self.drivers) % len(self._backends)]
        choices = ["--parallelism", str(parallelism), "--backend", backend]
        driver = Driver([*self.command(), *choices], self.home, log, environment)
        self.drivers.append(driver)
        return driver

    @property
    def driver(self) -> Driver:
        """The newest one."""
        return self.drivers[-1]

    def wait(self, condition: Callable[[], Any], what: str, *, alive: bool = False, timeout: float = PATIENCE_S) -> Any:
        """Poll until the condition gives something true. With `alive`, the driver must not end meanwhile."""
        pause, deadline = threading.Event(), time.monotonic() + timeout
        while not (result := condition()):
            if alive and self.driver.ended() is not None:
                raise ViolationError(
                    f"the driver ended with {self.driver.ended()} while waiting for {what}\n{self.driver.tail()}"
                )
            if time.monotonic() > deadline:
                raise ViolationError(f"waited {timeout:g} s in vain for {what}\n{self.driver.tail()}")
            pause.wait(0.02)  # polling more often takes a good part of a core from those it waits for
        return result

    def recover(self, after: int, timeout: float = PATIENCE_S) -> None:
        """Wait for a checkpoint of an incarnation above `after`, starting a new driver if this one was killed."""

        def found() -> bool:
            self.restart_if_killed()
            newest = self.newest()
            return newest is not None and int(newest.parent.name[4:]) > after

        self.wait(found, f"a checkpoint of an incarnation above {after}", timeout=timeout)

    def go_on(self, after: Path | None, count: int = 2) -> None:
        """Wait for so many more checkpoints, starting a new driver if this one was killed: the first of them may have been
        on its way before."""
        for _ in range(count):

            def found(before: Path | None = after) -> Path | None:
                self.restart_if_killed()
                newest = self.newest()
                return newest if newest != before else None

            after = self.wait(found, "another checkpoint")

    def restart_if_killed(self) -> None:
        code = self.driver.ended()
        if code == -signal.SIGKILL:
            self.start()
        elif code is not None:
            raise ViolationError(f"the driver ended with {code}:\n{self.driver.tail()}")

    def finish(self) -> None:
        """Decide where the input ends, and run the job to that end."""
        self.end_at(self._decide_end())
        self.wait(lambda: self.driver.ended() is not None, "the job to end")
        if self.driver.ended() != 0:
            raise ViolationError(f"the job failed at its end:\n{self.driver.tail()}")

    def _decide_end(self) -> int:
        newest = self.newest()
        assert newest is not None
        return oracle.position(newest) + 2 * int(self.options["rate"]) + 1000

    def end_at(self, last: int) -> None:
        self.last = last
        draft = self.home / "end-draft"
        draft.write_text(str(last))
        draft.rename(self.home / "end")

    def forget_machine(self) -> None:
        """Remove what dead slots have left in its temporary files, as if the next ones were elsewhere."""
        for directory in self.tmp.rglob("firesteel-state-*"):
            shutil.rmtree(directory)

    def close(self) -> None:
        self._closed = True
        for driver in self.drivers:
            driver.family.end()
        shutil.rmtree(self.tmp, ignore_errors=True)

    # ---- its checkpoint directory, read without the engine's code

    def incarnation(self) -> int:
        return max((int(path.name[4:]) for path in self.job.glob("inc-*")), default=0)

    def newest(self) -> Path | None:
        return (oracle.checkpoints(self.job) or [None])[-1]

    def wait_checkpoint(self, after: Path | None = None) -> Path:
        """A completed checkpoint that is not this one."""
        found: Path = self.wait(
            lambda: newest if (newest := self.newest()) not in (None, after) else None, "a checkpoint", alive=True
        )
        return found

    # ---- what must be true

    def check_so_far(self) -> None:
        """What is visible is right, and so is the newest checkpoint."""
        self._check_output(complete=False)
        for _ in range(20):
            newest = self.newest()
            with contextlib.suppress(FileNotFoundError):  # dropped while it was read: there is a newer one
                if newest is not None:
                    self._check_checkpoint(self.job, newest)
                break

    def _check_checkpoint(self, job: Path, checkpoint: Path) -> None:
        oracle.check_checkpoint(job, checkpoint, self.keys)

    def _check_output(self, *, complete: bool, home: Path | None = None, first: int = 0) -> None:
        last = self.last if self.last is not None else 10**5 + 50 * max(1, self._reached())
        for directory, what in SINKS[self.kind]:
            lines = oracle.visible((home or self.home) / directory)
            if what == "numbers":
                oracle.check_numbers(lines, first, last, complete=complete)
            else:
                oracle.check_sums(lines, first, last, self.keys, complete=complete)
        complaints = (home or self.home) / "store" / "complaints"
        if complaints.exists():
            raise ViolationError(f"the transactional store complains: {complaints.read_text()}")

    def _reached(self) -> int:
        newest = self.newest()
        try:
            return oracle.position(newest) if newest is not None else 0
        except FileNotFoundError:
            return self._reached()

    def check_end(self) -> None:
        """All output is there once, state is right, nothing is in doubt, and nothing is left behind."""
        self._check_output(complete=True)
        newest = self.newest()
        assert newest is not None
        self._check_checkpoint(self.job, newest)
        if oracle.position(newest) != self.last:
            raise ViolationError(f"{newest} is the last one, but not at the end of the input")
        for driver in self.drivers:
            if left := driver.family.wait_gone():
                raise ViolationError(f"a driver ended, but not all of its processes: {left}")
        if in_doubt := self._in_doubt():
            raise ViolationError(f"in doubt at the end: {in_doubt[:5]}")
        if files := list(self.tmp.iterdir()):
            raise ViolationError(f"temporary files are left: {files}")
        self.check_restarts()

    def _in_doubt(self) -> list[Any]:
        output = [self.home / directory for directory, _ in SINKS.get(self.kind, [])]
        return oracle.leftovers(*output) + oracle.in_doubt(self.job, self.home / "store")

    def check_restarts(self) -> None:
        """Every incarnation is a start of a driver or a restart that the strategy allowed and the log tells of."""
        restarts = sum(driver.said().count("restarts from its last checkpoint in") for driver in self.drivers)
        starts, incarnations = len(self.drivers), self.incarnation()
        if not restarts <= incarnations <= starts + restarts:
            raise ViolationError(f"{incarnations} incarnations from {starts} starts and {restarts} restarts")

    @property
    def more(self) -> int:
        """How much more input there is for a copy: none after the end of event time, when everything is late."""
        return 0 if self._in_event_time else 300

    def copy_to(self, home: Path) -> list[str]:
        """Copy the checkpoint directory elsewhere; the command that goes on from there, with more input."""
        shutil.copytree(self.checkpoints, home / "checkpoints")
        assert self.last is not None
        (home / "end").write_text(str(self.last + self.more))
        return self.command(home)

    def check_copy(self, home: Path) -> None:
        assert self.last is not None
        first, self.last = self.last, self.last + self.more
        self._check_output(complete=True, home=home, first=first)
        job = home / "checkpoints" / "chaos"
        self._check_checkpoint(job, oracle.checkpoints(job)[-1])
        self.last = first
