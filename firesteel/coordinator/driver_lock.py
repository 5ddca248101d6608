"""One driver at a time: whoever runs a job holds the file `_driver` in its directory locked, for as long as it lives.

The lock keeps people from mistakes: a second driver, or another program under a running job's name, is refused and told who
has the job. It is not what keeps data safe. Incarnations do that (lineage.py), for a driver that was taken over from while it
slept as well as on file systems without locks.

The kernel drops the lock when its holder dies, however it dies, so the job of a dead driver is free at once. A driver that is
stopped still has it. Taking over puts a new, locked file in the place of the old one, whose lock then means nothing.
"""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import os
import socket
import time
import uuid
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from firesteel.common.file_lock import FileLock
from firesteel.common.storage import LocalStorage
from firesteel.coordinator.lineage import JobDirectory
from firesteel.errors import ConfigurationError, JobRunningError

log = logging.getLogger("firesteel")

FILE = "_driver"
_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)


@dataclass(frozen=True)
class Holder:
    """Who runs a job, for people to read."""

    pid: int
    host: str
    boot: str  # of the host's start, so that a pid means the same process
    since_ms: int

    @classmethod
    def this_process(cls) -> Holder:
        return cls(os.getpid(), socket.gethostname(), _boot(), int(time.time() * 1000))

    def __str__(self) -> str:
        since = datetime.fromtimestamp(self.since_ms / 1000)
        return f"process {self.pid} on {self.host}, since {since:%Y-%m-%d %H:%M:%S}{self._state()}"

    def _state(self) -> str:
        """Its state, if it is on this machine and something is special about it."""
        if (self.host, self.boot) != (socket.gethostname(), _boot()):
            return ""
        if self.pid == os.getpid():
            return ", which is this one"
        with contextlib.suppress(OSError, IndexError):
            if Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] in "Tt":
                return ", which is stopped and goes on when it gets SIGCONT"
        return ""


class DriverLock:
    """This process's hold on a job; as a context, until its end."""

    def __init__(self) -> None:
        self._lock: FileLock | None = None

    def __enter__(self) -> DriverLock:
        return self

    def __exit__(self, *_: object) -> None:
        """The file stays: removing it could take a successor's from under it."""
        if self._lock is not None:
            self._lock.release()

    @property
    def held(self) -> bool:
        return self._lock is not None

    def acquire(self, directory: JobDirectory, *, take_over: bool = False) -> None:
        """
        :param take_over: even if another driver has it, which then has to end.
        :raises JobRunningError: another driver runs the job.
        """
        if not isinstance(directory.storage, LocalStorage):
            return  # nothing there can be locked
        path = directory.storage.path(FILE)
        try:
            while self._lock is None:
                self._lock = _locked(directory, path, take_over)
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise ConfigurationError(
                    f"{path}, by which drivers of a job know of each other, cannot be used: {error.strerror}. Check its "
                    f"permissions"
                ) from error
            log.warning("%s cannot be locked (%s), so that nobody notices a second driver", path, error.strerror)


def _locked(directory: JobDirectory, path: str, take_over: bool) -> FileLock | None:
    """The lock, None if the file was replaced meanwhile."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        lock = FileLock(descriptor)
    except BlockingIOError:
        holder = _holder(descriptor)
        os.close(descriptor)
        if not take_over:
            raise _running(directory, path, holder) from None
        log.warning("job '%s' is taken over from %s", directory.job_name, holder or "another process")
        return _replaced(path)
    except OSError:
        os.close(descriptor)
        raise
    if not _is_at(path, descriptor):  # somebody took over, or removed the directory, between opening and locking
        lock.release()
        return None
    _sign(descriptor)
    return lock


def _replaced(path: str) -> FileLock:
    """A new file that is locked before it has its name, so that nobody can come between."""
    draft = f"{path}.{uuid.uuid4().hex}"
    descriptor = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    lock = FileLock(descriptor)
    _sign(descriptor)
    os.replace(draft, path)
    return lock


def _sign(descriptor: int) -> None:
    text = json.dumps(asdict(Holder.this_process())).encode()
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, text, 0)


def _holder(descriptor: int) -> Holder | None:
    """Who wrote the file; None while it is being written. It is only for the message, so nothing depends on it."""
    try:
        return Holder(**json.loads(os.pread(descriptor, 4096, 0)))
    except (ValueError, TypeError):
        return None


def _is_at(path: str, descriptor: int) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    return False


def _running(directory: JobDirectory, path: str, holder: Holder | None) -> JobRunningError:
    return JobRunningError(
        f"job {directory.job_name!r} is running already: {holder or 'another process'} (it holds {path}). Wait for its end, or "
        f"end it; or give this job another name or checkpoint directory, if it is another one; or take over, which ends the "
        f"other driver: firesteel run --take-over, or the setting firesteel.take-over"
    )


def _boot() -> str:
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return ""  # not Linux
