"""Faults on command: crash points that are armed while a job runs, flipped bits, clocks that jump.

A job takes part when it is started with the environment of `CrashPoints.environment()`; all of its processes inherit that.
Names of the points: `grep -rn 'crash_point(' firesteel`, listed in docs/reliability.md. A program may have points of its
own: `crash_point("my-point")`.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from pathlib import Path

from firesteel.common.crashpoints import crash_point

__all__ = ["CrashPoints", "SkewedClock", "crash_point", "flip_bit"]


class CrashPoints:
    """Orders to the processes of a job, one at a time, given through a file.

    :param path: where the order is put; it must not be used for anything else.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        self._ids = itertools.count(1)

    def environment(self) -> dict[str, str]:
        """What the job has to be started with."""
        return {"FIRESTEEL_CRASH": f"@{self._path}"}

    def arm(self, point: str, count: int = 1, action: str = "kill") -> None:
        """The process that gets to the point for the `count`-th time from now on, each counting for itself, dies there.

        :param action: `kill`, `stop`, `full`, `wait-<seconds>` or `torn-<percent>`.
        """
        self.disarm()
        draft = self._path.with_name(f"{self._path.name}-draft")
        draft.write_text(f"{point}:{count}:{action}:{next(self._ids)}")
        os.rename(draft, self._path)

    def fired(self) -> int | None:
        """The pid of the process that followed the last order, None while nobody has."""
        for found in self._path.parent.glob(f"{self._path.name}.*"):
            return int(found.suffix[1:])
        return None

    def disarm(self) -> None:
        """Take the order back, and forget that one was followed."""
        for path in [self._path, *self._path.parent.glob(f"{self._path.name}.*")]:
            with contextlib.suppress(FileNotFoundError):
                path.unlink()


class SkewedClock:
    """A wall clock that jumps when a test says so. Call `install` in each process that is to see it: a job's main program,
    and `open` of one of its functions for the slots. Monotonic clocks do not jump, and are left alone.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.fspath(path)

    def jump(self, seconds: float) -> None:
        """From now on clocks are ahead by so much in all; behind if it is negative."""
        Path(f"{self._path}.draft").write_text(repr(float(seconds)))
        os.replace(f"{self._path}.draft", self._path)

    def offset(self) -> float:
        """By how many seconds clocks are ahead at the moment."""
        try:
            return float(Path(self._path).read_text())
        except FileNotFoundError:
            return 0.0

    def install(self) -> None:
        """Replace `time.time` and `time.time_ns` of this process, once."""
        if getattr(time.time, "skewed", False):
            return
        true_time, true_time_ns = time.time, time.time_ns

        def skewed_time() -> float:
            return true_time() + self.offset()

        def skewed_time_ns() -> int:
            return true_time_ns() + int(self.offset() * 1_000_000_000)

        skewed_time.skewed = True  # type: ignore[attr-defined]
        time.time, time.time_ns = skewed_time, skewed_time_ns


def flip_bit(path: str | os.PathLike[str], position: int, bit: int = 0) -> None:
    """Change one bit of a file; the same call changes it back."""
    with open(path, "r+b") as file:
        file.seek(position)
        (byte,) = file.read(1)
        file.seek(position)
        file.write(bytes([byte ^ 1 << bit]))
