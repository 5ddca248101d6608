"""Where harnesses keep state files, and how errors come out of them."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from firesteel.runtime.failures import OperatorFailure

FileHandle = dict[str, Any]

_ROOM_BYTES = 1 << 28


@dataclass(frozen=True)
class HarnessSnapshot:
    """A function's state, timers and watermark, as the bytes of real state files. It can be pickled, for instance to keep
    the state of an old version of a function among the tests of a newer one."""

    files: tuple[tuple[FileHandle, bytes], ...] = field(repr=False)
    checkpoint: int
    incarnation: int
    clock: int

    def size(self) -> int:
        """In bytes."""
        return sum(len(data) for _, data in self.files)


def temporary_directory() -> tempfile.TemporaryDirectory[str]:
    """In memory if there is room: state files are synced to the disk, and a test need not wait for that."""
    with contextlib.suppress(OSError, AttributeError):  # not Linux
        memory = os.statvfs("/dev/shm")
        if memory.f_bavail * memory.f_frsize > _ROOM_BYTES:
            return tempfile.TemporaryDirectory(prefix="firesteel-harness-", dir="/dev/shm")
    return tempfile.TemporaryDirectory(prefix="firesteel-harness-")


class Workspace:
    """A directory for state files that lasts as long as a harness."""

    def __init__(self, incarnation: int) -> None:
        self._directory = temporary_directory()
        self.path = self._directory.name
        os.makedirs(os.path.join(self.path, f"inc-{incarnation}", "state"))

    def put(self, snapshot: HarnessSnapshot) -> tuple[FileHandle, ...]:
        for handle, data in snapshot.files:
            path = os.path.join(self.path, handle["file"])
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(data)
        return tuple(handle for handle, _ in snapshot.files)

    def take(self, handles: Iterable[FileHandle], checkpoint: int, incarnation: int, clock: int) -> HarnessSnapshot:
        files = []
        for handle in handles:
            with open(os.path.join(self.path, handle["file"]), "rb") as file:
                files.append((handle, file.read()))
        return HarnessSnapshot(tuple(files), checkpoint, incarnation, clock)

    def close(self) -> None:
        self._directory.cleanup()


@contextlib.contextmanager
def users_own_errors() -> Iterator[None]:
    """What user code raised comes out as it is, with a note (from Python 3.11 on) about the operator and the record."""
    try:
        yield
    except OperatorFailure as failure:
        cause = failure.cause
        if hasattr(cause, "add_note"):
            cause.add_note(f"It happened in {failure.operator}, {failure.doing}.")
        raise cause from None
