"""The jobs of this user on this machine, running and ended.

    $FIRESTEEL_HOME or ~/.firesteel, which only the user can enter
        /jobs/<job id>-<8 digits>/lock       locked by the driver for as long as it lives
                                 /job.json   what there is to know about the job, replaced at every change
                                 /token      with it the job can be controlled
        /logs/                               what detached programs write

A folder stands for one run of a job. Its lock is taken before it has its name, and the kernel drops it however the driver
dies: so a run whose lock can be had and whose last word is not that it ended was lost. Nothing here is needed to run or to
restore a job.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import secrets
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from firesteel.common.file_lock import FileLock
from firesteel.common.job_status import JobStatus

log = logging.getLogger("firesteel")

_KEPT_MS = 7 * 24 * 3600 * 1000  # what has ended is remembered for so long
_MOST_ENDED = 200
_JOB, _LOCK, _TOKEN = "job.json", "lock", "token"

_log_file: str | None = None


def logs_to(path: str) -> None:
    """Everything that this process writes goes to this file, which its jobs are to be found with."""
    global _log_file
    _log_file = path


def home() -> Path:
    given = os.environ.get("FIRESTEEL_HOME")
    return Path(given) if given else Path.home() / ".firesteel"


@dataclass(frozen=True)
class JobEntry:
    """What is known about one run of a job."""

    job_id: str
    name: str
    pid: int
    host: str
    started_ms: int
    status: str = JobStatus.CREATED.name
    address: str | None = None  # host:port of its server
    log: str | None = None
    ended_ms: int | None = None
    failure: str | None = None


@dataclass(frozen=True)
class FoundJob:
    """An entry as somebody else finds it."""

    folder: Path
    entry: JobEntry
    alive: bool

    @property
    def status(self) -> JobStatus:
        status = JobStatus[self.entry.status]
        return status if self.alive or status.is_terminal_state() else JobStatus.FAILED

    @property
    def lost(self) -> bool:
        """Its driver died without a word."""
        return not self.alive and not JobStatus[self.entry.status].is_terminal_state()

    @property
    def ended_ms(self) -> int | None:
        """Of a lost one, when something was last heard of it."""
        if self.entry.ended_ms is not None or not self.lost:
            return self.entry.ended_ms
        with contextlib.suppress(OSError):
            return int((self.folder / _JOB).stat().st_mtime * 1000)
        return self.entry.started_ms

    def token(self) -> str | None:
        with contextlib.suppress(OSError):
            return (self.folder / _TOKEN).read_text().strip()
        return None


class RegisteredJob:
    """A job's own entry, in the hands of its driver. That it cannot be written harms nobody but those who look for it."""

    def __init__(self, folder: Path, lock: FileLock, entry: JobEntry) -> None:
        self._folder, self._lock, self.entry = folder, lock, entry
        self._writing = threading.Lock()

    @property
    def token_file(self) -> Path:
        return self._folder / _TOKEN

    def update(self, **changes: Any) -> None:
        with self._writing:
            self.entry = replace(self.entry, **changes)
            try:
                _replace(self._folder / _JOB, json.dumps(asdict(self.entry), indent=1))
            except OSError as error:
                log.warning("what is known about job '%s' cannot be written: %s", self.entry.name, error)

    def close(self) -> None:
        self._lock.release()


def register(job_id: str, name: str, address: str | None, token: str) -> RegisteredJob | None:
    """Make an entry for a job of this process; None if that is impossible, of which the log tells."""
    entry = JobEntry(
        job_id, name, os.getpid(), socket.gethostname(), int(time.time() * 1000), address=address, log=_log_file
    )
    try:
        jobs = _folder("jobs")
        _sweep(jobs)
        draft = Path(tempfile.mkdtemp(prefix=".new-", dir=jobs))
        lock = FileLock(os.open(draft / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        try:
            _replace(draft / _TOKEN, token)
            _replace(draft / _JOB, json.dumps(asdict(entry), indent=1))
            folder = jobs / f"{job_id}-{secrets.token_hex(4)}"
            draft.rename(folder)
        except BaseException:
            lock.release()
            shutil.rmtree(draft, ignore_errors=True)
            raise
    except OSError as error:
        log.warning(
            "job '%s' cannot be found by `firesteel list`: %s. FIRESTEEL_HOME says where jobs are noted", name, error
        )
        return None
    return RegisteredJob(folder, lock, entry)


def new_log(program: str) -> Path:
    """A new file for what a detached program writes.

    :raises OSError: it cannot be made.
    """
    stamp = time.strftime("%Y%m%d-%H%M%S")
    name = f"{stamp}-{Path(program).stem}-{secrets.token_hex(3)}.log"
    path = _folder("logs") / name
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    return path


def find_jobs() -> list[FoundJob]:
    """All runs there are, the oldest first."""
    found = list(_found(home() / "jobs"))
    return sorted(found, key=lambda one: one.entry.started_ms)


def _found(jobs: Path) -> Iterator[FoundJob]:
    known = {field.name for field in fields(JobEntry)}
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        for folder in jobs.iterdir():
            if folder.name.startswith("."):
                continue
            alive = _locked(folder / _LOCK)  # first: a driver writes its last word before it lets go of the lock
            with contextlib.suppress(OSError, ValueError, TypeError, KeyError, AttributeError):  # half gone, or none
                content = json.loads((folder / _JOB).read_text())
                entry = JobEntry(**{key: value for key, value in content.items() if key in known})
                JobStatus[entry.status]
                yield FoundJob(folder, entry, alive)


def _locked(path: Path) -> bool:
    """Whether somebody holds the lock. To look, a shared one does: so nobody who looks is taken for the holder."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False


def _sweep(jobs: Path) -> None:
    """Forget what has ended long ago, with its log."""
    now = int(time.time() * 1000)
    ended = sorted((one for one in _found(jobs) if not one.alive), key=lambda one: one.ended_ms or 0)
    old = [one for one in ended if (one.ended_ms or 0) < now - _KEPT_MS] + ended[:-_MOST_ENDED]
    for one in old:
        shutil.rmtree(one.folder, ignore_errors=True)
    needed = {one.entry.log for one in _found(jobs)}
    for left in [*jobs.glob(".new-*"), *_folder("logs").glob("*.log")]:  # of those who died on the way here
        with contextlib.suppress(OSError):
            if str(left) not in needed and left.stat().st_mtime * 1000 < now - _KEPT_MS:
                shutil.rmtree(left) if left.is_dir() else left.unlink()


def _folder(name: str) -> Path:
    path = home() / name
    home().mkdir(mode=0o700, parents=True, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)
    return path.resolve()


def _replace(path: Path, text: str) -> None:
    """At once or not at all, and for this user only. Not synced: after a crash of the machine no driver is alive."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    os.replace(draft, path)
