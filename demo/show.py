"""The show: start the job, kill it, start it again, and check every alert."""

from __future__ import annotations

import argparse
import contextlib
import shutil
import signal
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from demo import disk
from demo.expected import expected_alerts
from demo.job_process import JobProcess
from demo.readings import GATEWAYS, SENSORS_EACH, write_readings

T = TypeVar("T")

JUMP = 20.0
KILL_AFTER = 3
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_POLL_S = 0.02
_PATIENCE_S = 180.0


class DemoError(Exception):
    """Something that should not happen did."""


class Show:
    """One run of the demo in a directory of its own."""

    def __init__(self, home: Path, readings: int, rate: int, interval: int, seed: int) -> None:
        self.home = home
        self.readings, self.alerts, self.job = (
            home / "readings",
            home / "alerts",
            home / "checkpoints" / "sensor-alerts",
        )
        self._count, self._rate, self._interval, self._seed = readings, rate, interval, seed
        self._started = time.monotonic()
        self._starts: list[JobProcess] = []
        self._seen: set[str] = set()

    def run(self) -> bool:
        self.title("A stream of readings")
        self.say(
            f"Writing {self._count:,} temperature readings of {GATEWAYS * SENSORS_EACH:,} sensors, which the job will get at "
            f"{self._rate:,} a second. It raises an alert when two consecutive readings of one sensor differ by more "
            f"than {JUMP:g} degrees, so it has to remember every sensor's last reading."
        )
        write_readings(self.readings, self._count, self._seed)

        self.title("First start")
        first = self.start()
        self.watch(first, until=KILL_AFTER)
        self.wait_for(first, lambda: disk.uncommitted_files(self.alerts) or None, "output after the checkpoint")

        self.title("kill -9")
        left = self.kill(first)

        self.title("Second start")
        second = self.start()
        source = self.wait_for(second, lambda: disk.restored_from(self.job, 2), "the job to find its checkpoint")
        self.say(
            f"It goes on from checkpoint {source}: with each sensor's state, and the position in each file, as they were "
            f"after {left.readings:,} readings. What it had read beyond that it reads again."
        )
        self.watch(second, until=None)

        self.title("Was anything lost or repeated?")
        return self.compare()

    # ---- acts

    def start(self) -> JobProcess:
        self.say("Starting Spark and two slots, the processes that hold the state ...")
        arguments: dict[str, object] = {
            "readings": self.readings,
            "alerts": self.alerts,
            "checkpoints": self.job.parent,
            "jump": JUMP,
            "rate": self._rate,
            "interval": self._interval,
        }
        with _uninterrupted():  # a process that was started but not noted down could not be ended
            job = JobProcess(self.home, arguments)
            self._starts.append(job)
        return job

    def watch(self, job: JobProcess, until: int | None) -> None:
        """Report checkpoints as they complete, up to number `until` or the end of the job."""
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            ended = job.process.poll()  # before looking, so that the last checkpoint is seen
            for checkpoint in disk.checkpoints(self.job):
                if checkpoint.confirmed and checkpoint.name not in self._seen:
                    self._seen.add(checkpoint.name)
                    self.report(checkpoint)
                    deadline = time.monotonic() + _PATIENCE_S
                    if checkpoint.number == until:
                        return
            if ended == 0 and until is None:
                self.say("The input has ended; the job has committed its last output and finished.")
                return
            if ended is not None:
                early = "" if until is None else f" before checkpoint {until}"
                raise DemoError(f"the job ended{early} with code {ended}. It said:\n{job.said()}")
            if time.monotonic() > deadline:
                raise DemoError(f"no checkpoint for {_PATIENCE_S:g} s. The job said:\n{job.said()}")
            time.sleep(_POLL_S)

    def report(self, checkpoint: disk.Checkpoint) -> None:
        alerts = sum(disk.committed_alerts(self.alerts).values())
        self.say(
            f"checkpoint {checkpoint.number} complete: {checkpoint.readings:,} readings counted, {alerts:,} alerts committed"
        )

    def kill(self, job: JobProcess) -> disk.Checkpoint:
        """Kill it and show what is left; returns the checkpoint that a new start will find."""
        others = len(job.family()) - 1
        job.kill_driver()
        self.say(
            f"Killed the driver (process {job.pid}) in the middle of its work. Nothing in it got the chance to flush, "
            f"commit or clean up."
        )
        self.wait_for(None, lambda: not job.family() or None, "the job's processes to end")
        self.say(f"Its {others} other processes (Spark's JVM and Python workers, the slots) noticed, and ended too.")
        self.say("This is left on disk:")
        left = disk.checkpoints(self.job)[-1]
        alerts = sum(disk.committed_alerts(self.alerts).values())
        self.show(f"checkpoint {left.name}", f"complete, taken after {left.readings:,} readings")
        self.show(f"{len(disk.committed_files(self.alerts))} committed files", f"{alerts:,} alerts")
        for file in disk.uncommitted_files(self.alerts):
            fate = (
                "to be committed: it belongs to" if file.name in left.promised else "to be thrown away: it came after"
            )
            self.show("1 uncommitted file", f"{fate} checkpoint {left.number}")
        self.say("The names of uncommitted files start with a dot, so whoever reads the output does not see them.")
        return left

    def compare(self) -> bool:
        self.say("Working the alerts out again, with a plain loop over the input that shares no code with the job ...")
        expected, committed = expected_alerts(self.readings, JUMP), disk.committed_alerts(self.alerts)
        missing = sum((expected - committed).values())
        surplus = committed - expected
        repeated = sum(count for alert, count in surplus.items() if alert in expected)
        wrong = sum(surplus.values()) - repeated
        left_over = disk.uncommitted_files(self.alerts)
        verdict = (
            f"expected {sum(expected.values()):,} alerts, committed {sum(committed.values()):,}, missing {missing:,}, "
            f"repeated {repeated:,}"
        )
        self.say(verdict + (f", wrong {wrong:,}" if wrong else ""))
        if left_over:
            self.say(f"{len(left_over)} uncommitted files were left behind")
        exact = bool(expected) and not (missing or surplus or left_over)
        if exact:
            self.say(
                "Every alert carries its sensor's reading number, so state that was lost or counted twice would show."
            )
        self.say("Exactly once." if exact else "This is NOT exactly once: please report it.")
        return exact

    # ---- helpers

    def wait_for(self, job: JobProcess | None, look: Callable[[], T | None], what: str) -> T:
        deadline = time.monotonic() + _PATIENCE_S
        while (found := look()) is None:
            if job is not None and job.process.poll() is not None:
                raise DemoError(f"the job ended while waiting for {what}. It said:\n{job.said()}")
            if time.monotonic() > deadline:
                raise DemoError(f"waited {_PATIENCE_S:g} s in vain for {what}")
            time.sleep(_POLL_S)
        return found

    def title(self, text: str) -> None:
        _write(f"\n{text}\n")

    def say(self, text: str) -> None:
        """A paragraph with the time in front of it."""
        stamp = f"{time.monotonic() - self._started:6.1f} s  "
        _write(textwrap.fill(text, 100, initial_indent=stamp, subsequent_indent=" " * len(stamp)) + "\n")

    def show(self, what: str, about: str) -> None:
        _write(f"{'':14}{what:24} {about}\n")

    def close(self) -> None:
        for job in self._starts:
            job.end()


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Hold back signals that would end the demo until this is done."""
    held: list[int] = []
    handlers = {number: signal.signal(number, lambda which, _: held.append(which)) for number in ENDING}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    for which in held:
        signal.raise_signal(which)


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m demo", description=__doc__)
    parser.add_argument("--readings", type=int, default=1_000_000, help="how many (default: %(default)s)")
    parser.add_argument("--rate", type=int, default=100_000, help="readings a second (default: %(default)s)")
    parser.add_argument("--interval", type=int, default=1000, help="ms between checkpoints (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the readings (default: %(default)s)")
    args = parser.parse_args()
    for number in ENDING[1:]:  # Ctrl-C has a handler already
        signal.signal(number, lambda which, _: sys.exit(128 + which))
    home = Path(tempfile.mkdtemp(prefix="fs-demo-"))  # short, because sockets will be below it
    show = Show(home, args.readings, args.rate, args.interval, args.seed)
    try:
        return 0 if show.run() else 1
    except DemoError as error:
        _write(f"\nThe demo failed: {error}\n")
        return 1
    except KeyboardInterrupt:
        _write("\nStopped.\n")
        return 130
    finally:
        with _uninterrupted():
            show.close()
            shutil.rmtree(home, ignore_errors=True)
