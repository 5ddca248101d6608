"""Where a slot's database is while the slot lives, and what becomes of it when the slot dies.

`firesteel-state-<job>-<slot>-<random>` has the database in `db` and the last checkpoints' hard links in `chk-<number>`. Its
file `lock` is flock'ed by the slot for as long as it lives, so a directory whose lock can be had is of a dead slot. Whoever
starts a slot beside it takes what it can use of the same slot's, and removes it.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import secrets
import shutil

from firesteel.common.file_lock import FileLock
from firesteel.errors import StateError

_PATTERN = re.compile(r"firesteel-state-[0-9a-f]{12}-\d+-[0-9a-f]{8}")
_LOCK = "lock"


class LocalDirectory:
    """A slot's directory, of mode 0700."""

    def __init__(self, path: str, lock: FileLock, left_behind: list[str]) -> None:
        self.path, self._lock = path, lock
        self.left_behind = left_behind
        """Directories of dead processes of the same slot. To be removed by `sweep`."""

    @classmethod
    def create(cls, base: str, job_id: str, slot: int) -> LocalDirectory:
        """A new directory. Those of dead slots are gone afterwards, apart from this slot's own.

        :raises StateError: there cannot be one.
        """
        job = hashlib.blake2b(job_id.encode(), digest_size=6).hexdigest()
        mine = f"firesteel-state-{job}-{slot}-"
        try:
            os.makedirs(base, exist_ok=True)
            left_behind = _sweep(base, mine)
            path = os.path.join(base, f"{mine}{secrets.token_hex(4)}")
            unborn = os.path.join(base, f".{os.path.basename(path)}")  # locked before it has a name that is swept
            os.mkdir(unborn, 0o700)
            lock = FileLock(os.open(os.path.join(unborn, _LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            os.rename(unborn, path)
        except OSError as error:
            raise StateError(
                f"there is no place for the state of slot {slot} in {base}: {error}. Choose another directory with "
                f"state.backend.rocksdb.localdir"
            ) from error
        return cls(path, lock, left_behind)

    @property
    def database(self) -> str:
        return os.path.join(self.path, "db")

    def checkpoint(self, number: int) -> str:
        return os.path.join(self.path, f"chk-{number}")

    def checkpoints(self) -> list[int]:
        """Numbers of those whose links are here."""
        names = os.listdir(self.path)
        return sorted(int(name[4:]) for name in names if name.startswith("chk-") and name[4:].isdigit())

    def remove_checkpoint(self, number: int) -> None:
        shutil.rmtree(self.checkpoint(number), ignore_errors=True)

    def sweep(self) -> None:
        """Remove what dead processes of the same slot left behind."""
        for path in self.left_behind:
            shutil.rmtree(path, ignore_errors=True)
        self.left_behind = []

    def remove(self) -> None:
        """Any thread may call this, and handlers of signals."""
        if self._lock.held:
            shutil.rmtree(self.path, ignore_errors=True)
            self._lock.release()


def _sweep(base: str, mine: str) -> list[str]:
    """Remove the directories of dead slots. Gives those whose names begin with `mine`, which stay."""
    kept = []
    for name in os.listdir(base):
        path = os.path.join(base, name)
        if _PATTERN.fullmatch(name) and _is_dead(path):
            if name.startswith(mine):
                kept.append(path)
            else:
                shutil.rmtree(path, ignore_errors=True)
    return kept


def _is_dead(path: str) -> bool:
    try:
        descriptor = os.open(os.path.join(path, _LOCK), os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return True  # somebody was removing it and did not finish
    except OSError:
        return False  # another user's
    with contextlib.closing(os.fdopen(descriptor)):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True
