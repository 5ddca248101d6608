"""A lock on a file that ends with the process that took it, however that dies, and is not kept alive by its children."""

from __future__ import annotations

import fcntl
import os
import weakref


class FileLock:
    """An exclusive flock on an open descriptor, which belongs to the lock from then on."""

    def __init__(self, descriptor: int) -> None:
        """
        :param descriptor: opened with O_CLOEXEC, so that programs which this process starts do not have it.
        :raises BlockingIOError: somebody else holds the lock.
        :raises OSError: this file system has no locks.
        """
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._descriptor = descriptor
        self._owner = os.getpid()
        _in_this_process.add(self)

    @property
    def held(self) -> bool:
        """False after `release`, and in a forked child: the lock is the parent's."""
        return self._descriptor >= 0 and os.getpid() == self._owner

    def release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


_in_this_process: weakref.WeakSet[FileLock] = weakref.WeakSet()


def _close_inherited_locks() -> None:
    # CLOEXEC covers children that exec. One that is only forked would hold the lock after its parent's death.
    for lock in list(_in_this_process):
        lock.release()


os.register_at_fork(after_in_child=_close_inherited_locks)
