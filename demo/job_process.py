"""The job as a process that can be watched and killed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


class JobProcess:
    """One start of the job, in a session of its own, by which all of its processes can be found."""

    def __init__(self, home: Path, arguments: dict[str, object]) -> None:
        command = [sys.executable, "-m", "demo.sensor_job"]
        for name, value in arguments.items():
            command += [f"--{name}", str(value)]
        self._log = tempfile.TemporaryFile(dir=home)  # noqa: SIM115  closed by end()
        self.process = subprocess.Popen(
            command,
            cwd=ROOT,
            # compiling less makes Spark start in half the time
            env={**os.environ, "TMPDIR": str(home), "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"},
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )
        self.pid = self.process.pid

    def kill_driver(self) -> None:
        """SIGKILL, which no process can catch: no goodbye, no flush, no clean-up."""
        self.process.kill()
        self.process.wait()

    def said(self) -> str:
        """The end of what it printed."""
        self._log.seek(0)
        return "\n".join(self._log.read().decode(errors="replace").splitlines()[-30:])

    def family(self) -> list[int]:
        """Its processes that are alive: driver, JVM, Spark's Python workers, slots."""
        return [pid for pid in _processes() if _session(pid) == self.pid]

    def end(self) -> None:
        """Leave nothing of it running, whatever state it is in."""
        while family := self.family():  # again, because one may just have started another
            for pid in family:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self.process.poll()
            time.sleep(0.01)
        self.process.wait()
        self._log.close()


def _processes() -> list[int]:
    """All that are not zombies."""
    if os.path.exists("/proc/self/stat"):
        return [int(name) for name in os.listdir("/proc") if name.isdigit() and not _is_zombie(name)]
    listed = subprocess.run(["ps", "-A", "-o", "pid=,stat="], capture_output=True, text=True, check=True).stdout
    rows = (line.split() for line in listed.splitlines())
    return [int(pid) for pid, state in rows if not state.startswith("Z")]


def _is_zombie(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] == b"Z"
    except OSError:
        return True  # gone meanwhile


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None  # gone meanwhile, or somebody else's
