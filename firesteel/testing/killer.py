"""Kills, stops and wakes the processes of a job that a test has started, and no others. Linux only: it reads /proc.

A driver that is started in a session of its own (`start_new_session=True`) keeps its JVM, Spark's daemon and workers and
the slots in that session, whatever their process groups, and also after it is dead itself. The session therefore says what
may be killed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KINDS = ("slot", "worker", "daemon", "jvm", "driver")


@dataclass(frozen=True)
class Member:
    """A living process of the family."""

    pid: int
    parent: int
    state: str  # of /proc: R, S, D, T (stopped), ...
    command: str


class Family:
    """A driver and all processes of its session.

    :param driver: a process that the caller started with `start_new_session=True`.
    """

    def __init__(self, driver: subprocess.Popen[Any]) -> None:
        with contextlib.suppress(ProcessLookupError):
            if os.getsid(driver.pid) != driver.pid:
                raise ValueError(f"process {driver.pid} was not started with start_new_session=True")
        self.driver = driver
        self._extinct = False

    def members(self) -> list[Member]:
        """All that are alive; zombies are not."""
        if self._extinct:  # the kernel may give the number to a stranger's session now
            return []
        found = [member for entry in os.listdir("/proc") if entry.isdigit() and (member := self._member(int(entry)))]
        if not found and self.driver.poll() is not None:
            self._extinct = True
        return found

    def _member(self, pid: int) -> Member | None:
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
            state, parent, _, session = stat[stat.rindex(")") + 2 :].split()[:4]
            if int(session) != self.driver.pid or state in "ZX":
                return None
            command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except (OSError, ValueError):
            return None  # it ended meanwhile
        return Member(pid, int(parent), state, command)

    def of_kind(self, kind: str) -> list[Member]:
        """Its slots, Spark's workers, Spark's daemon, the JVM, or the driver: one of `KINDS`."""
        members = self.members()
        if kind == "driver":
            return [member for member in members if member.pid == self.driver.pid]
        if kind == "slot":
            return [member for member in members if "firesteel.runtime.slot" in member.command]
        jvms = [member for member in members if "org.apache.spark.deploy.SparkSubmit" in member.command]
        if kind == "jvm":
            return jvms
        # workers are forks of the daemon and look like it; the daemon's parent is the JVM
        ancestors = {member.pid for member in jvms}
        forks = [member for member in members if "pyspark.daemon" in member.command]
        daemons = [member for member in forks if member.parent in ancestors]
        if kind == "daemon":
            return daemons
        if kind == "worker":
            return [member for member in forks if member not in daemons]
        raise ValueError(f"there is no kind of process {kind!r}, but: {', '.join(KINDS)}")

    def signal(self, member: Member, number: int) -> bool:
        """Send a signal, if it still is one of the family. False if it has ended."""
        if self._member(member.pid) is None:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(member.pid, number)
            return True
        return False

    def kill(self, kind: str, choose: Callable[[list[Member]], Member] | None = None) -> Member | None:
        """Kill one of that kind with SIGKILL, the first if nothing else is chosen. None if there is none at the moment."""
        found = self.of_kind(kind)
        if not found:
            return None
        victim = found[0] if choose is None else choose(found)
        return victim if self.signal(victim, signal.SIGKILL) else None

    def wait_gone(self, timeout: float = 30.0) -> list[Member]:
        """Wait until all have ended; gives those that have not."""
        deadline = time.monotonic() + timeout
        while (left := self.members()) and time.monotonic() < deadline:
            self.driver.poll()
            threading.Event().wait(0.02)
        return left

    def end(self) -> None:
        """Kill whatever is left."""
        while members := self.members():
            for member in members:
                self.signal(member, signal.SIGKILL)
            self.driver.poll()
            threading.Event().wait(0.02)
        self.driver.wait()
