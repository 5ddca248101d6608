"""The driver's temporary directory, which does not outlive its driver.

`firesteel-<pid>-<random>` holds Spark's local files, its log and the slots' sockets. Its file `lock` is
flock'ed by the owner for as long as it lives, and the kernel drops that lock however the owner dies. So a
directory whose lock can be had is garbage, whatever its age and whoever has the pid by now; every driver that
starts sweeps such directories away.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import secrets
import shutil
import stat
import tempfile
import threading
import time
from pathlib import Path

from firesteel.common.file_lock import FileLock

_PATTERN = re.compile(r"firesteel-\d+-[0-9a-f]{8}")
_LOCK = "lock"
_SOCKET_ROOM = 28
"""How long a base may be: a Unix socket's whole path is limited to 104 bytes (macOS) or 108 (Linux), and Spark's own is
`<base>/firesteel-<pid>-<8 digits>/tmp/.<uuid>.sock`.
"""


class ScratchDir:
    """A directory of mode 0700 that this process owns; `create` it, `remove` it."""

    def __init__(self, path: Path, lock: FileLock) -> None:
        self.path = path
        self._lock = lock

    @classmethod
    def create(cls, base: Path | None = None) -> ScratchDir:
        """A new directory, after sweeping away those of dead owners."""
        base = default_base() if base is None else base
        sweep_stale(base)
        # Under its final name a directory whose lock is free is garbage, so it is locked before it gets it.
        unborn = Path(tempfile.mkdtemp(prefix=".firesteel-new-", dir=base))
        lock_fd = os.open(unborn / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            lock = FileLock(lock_fd)
            path = base / f"firesteel-{os.getpid()}-{secrets.token_hex(4)}"
            unborn.rename(path)
        except BaseException:
            os.close(lock_fd)
            shutil.rmtree(unborn, ignore_errors=True)
            raise
        return cls(path, lock)

    def subdir(self, name: str) -> Path:
        """A directory of that name inside, made if need be."""
        path = self.path / name
        path.mkdir(mode=0o700, exist_ok=True)
        return path

    def remove(self, patience: float = 2.0) -> bool:
        """Delete the directory and give up the lock. True if nothing is left.

        Processes that are just dying may still write into it, so deletion is tried again for `patience`
        seconds. What is left after that is swept by the next driver. In a forked child this does nothing: the
        directory is the parent's.
        """
        if not self._lock.held:
            return not self.path.exists()
        deadline = time.monotonic() + patience
        while not (gone := _delete(self.path)) and time.monotonic() < deadline:
            threading.Event().wait(0.02)
        self._lock.release()
        return gone


def default_base() -> Path:
    """The system's temporary directory, or /tmp where that one's path is too long to hold a Unix socket."""
    base = tempfile.gettempdir()
    if len(os.fsencode(base)) > _SOCKET_ROOM and os.access("/tmp", os.W_OK | os.X_OK):
        base = "/tmp"
    return Path(base)


def sweep_stale(base: Path | None = None) -> list[Path]:
    """Delete this user's directories of dead owners in `base`; returns those that are gone."""
    base = default_base() if base is None else base
    swept = []
    for name in os.listdir(base):
        path = base / name
        if _PATTERN.fullmatch(name) and _is_ours(path) and _sweep(path):
            swept.append(path)
    return swept


def _is_ours(path: Path) -> bool:
    try:
        status = path.lstat()
    except FileNotFoundError:  # another sweeper was faster
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()


def _sweep(path: Path) -> bool:
    try:
        lock_fd = os.open(path / _LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        # The lock was there before the name was: someone was deleting the directory and did not finish.
        return _delete(path)
    except OSError:
        return False
    try:
        fcntl.flock(lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # its owner lives, or another sweeper is at it
        return False
    else:
        return _delete(path)
    finally:
        os.close(lock_fd)


def _delete(path: Path) -> bool:
    """Delete a directory whose lock is held. The lock goes last: a sweep takes up a deletion cut short."""
    try:
        for name in os.listdir(path):
            if name != _LOCK:
                _delete_entry(path / name)
        if set(os.listdir(path)) - {_LOCK}:
            return False
        (path / _LOCK).unlink(missing_ok=True)
        path.rmdir()
    except FileNotFoundError:
        return not path.exists()
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.EACCES, errno.EPERM, errno.EBUSY):
            return False
        raise
    return True


def _delete_entry(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink()
