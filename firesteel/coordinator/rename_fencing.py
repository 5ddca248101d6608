"""Claiming and fencing by renames, which a local file system does at once or not at all.

- **Claim.** A directory with everything in it is renamed to the next free number. Renaming onto a directory that is not
  empty fails, so two drivers never get one number.
- **Fence.** The claimant renames the `pending/` directory of every older incarnation. A checkpoint completes by a rename
  out of `pending/`, so from then on no older incarnation can complete one, however late its driver wakes up.
"""

from __future__ import annotations

import contextlib
import os
import time
import uuid

from firesteel.common.crashpoints import crash_point
from firesteel.common.durable import sync_directory
from firesteel.common.storage import LocalStorage
from firesteel.coordinator.fencing import CHECKPOINT, INCARNATION, Fencing, folder_of, numbered
from firesteel.coordinator.metadata import METADATA

_DRAFT_S = 600
_DROPPED = "dropped-"


class RenameFencing(Fencing):
    """Of a local directory."""

    def __init__(self, storage: LocalStorage) -> None:
        self._storage = storage

    def incarnations(self) -> list[int]:
        return numbered(self._storage.names(), INCARNATION)[::-1]

    def claim(self) -> int:
        """A directory with everything in it appears under the next free number, at once or not at all."""
        draft = self._storage.path(f"new-{uuid.uuid4().hex}")
        for part in ("pending", "state"):
            os.makedirs(os.path.join(draft, part))
        number = max(self.incarnations(), default=0)
        while True:
            number += 1
            try:
                os.rename(draft, self._incarnation(number))  # fails when that exists: it is not empty
            except OSError:
                if not os.path.isdir(self._incarnation(number)):
                    raise
                continue
            self._storage.sync()
            return number

    def fence(self, older: int, by: int) -> None:
        path = self._incarnation(older)
        with contextlib.suppress(FileNotFoundError):  # fenced before, or never more than half made
            os.rename(os.path.join(path, "pending"), os.path.join(path, f"fenced-by-{by}"))
            sync_directory(path)

    def fenced(self, number: int) -> bool:
        return not os.path.isdir(os.path.join(self._incarnation(number), "pending"))

    def begin(self, number: int, checkpoint: int) -> str:
        folder = self._pending(number, checkpoint)
        os.mkdir(self._storage.path(folder))
        return folder

    def complete(self, number: int, checkpoint: int, metadata: bytes) -> None:
        pending = self._pending(number, checkpoint)
        self._storage.write(f"{pending}/{METADATA}", metadata)
        crash_point("before-rename")
        os.rename(self._storage.path(pending), self._storage.path(folder_of(number, checkpoint)))
        sync_directory(self._incarnation(number))
        crash_point("after-rename")

    def drop_pending(self, number: int, checkpoint: int) -> None:
        self._storage.delete_folder(self._pending(number, checkpoint))

    def checkpoints(self, number: int) -> list[int]:
        return numbered(self._storage.names(f"inc-{number}"), CHECKPOINT)

    def remove(self, folder: str) -> None:
        incarnation, _, checkpoint = folder.rpartition("/")
        aside = f"{incarnation}/{_DROPPED}{checkpoint}"
        with contextlib.suppress(FileNotFoundError):
            os.rename(self._storage.path(folder), self._storage.path(aside))
        crash_point("half-dropped")
        self._storage.delete_folder(aside)

    def remove_leftovers(self, number: int) -> None:
        for name in self._storage.names(f"inc-{number}"):
            if name.startswith(("fenced-by-", _DROPPED)):
                self._storage.delete_folder(f"inc-{number}/{name}")

    def remove_drafts(self) -> None:
        """Young ones may be claims under way."""
        for name in self._storage.names():
            path = self._storage.path(name)
            with contextlib.suppress(FileNotFoundError):
                if name.startswith("new-") and time.time() - os.path.getmtime(path) > _DRAFT_S:
                    (self._storage.delete_folder if os.path.isdir(path) else self._storage.delete)(name)

    def _incarnation(self, number: int) -> str:
        return self._storage.path(f"inc-{number}")

    def _pending(self, number: int, checkpoint: int) -> str:
        return f"inc-{number}/pending/{checkpoint}"
