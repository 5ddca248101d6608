"""Claiming and fencing where nothing can be renamed: in object stores, and in the driver's memory.

All there is are files that appear at once, and listings that have every file written before (`Storage.names`). So whoever
does something says so first and looks around afterwards; of two who do it at the same time, at least one sees the other.

- **Claim.** A driver writes `inc-<next number>/_claim-<random>` and lists that folder. Alone, it has the number. Else it
  deletes its claim and tries again after a random pause: two that both found themselves alone would each have listed
  before the other wrote.
- **Complete.** The commit point is the PUT of `chk-<n>/_metadata`. The driver looks for newer incarnations before it, and
  once more *after* it and before it commits any output (`Checkpointer`). The successor claims first and lists checkpoints
  afterwards. So either the successor goes on from this checkpoint, and commits it; or the driver finds the successor,
  and commits nothing.
- **Fence.** The claim is the fence. A checkpoint that an older incarnation completes later is a file that nobody looks
  at: the successor has recorded in `_start` what it went on from, and the lineage follows that.
"""

from __future__ import annotations

import random
import time
import uuid

from firesteel.common.crashpoints import crash_point
from firesteel.common.storage import Storage
from firesteel.coordinator.fencing import CHECKPOINT, INCARNATION, Fencing, folder_of, numbered
from firesteel.coordinator.metadata import METADATA

_CLAIM = "_claim-"
_PAUSE_S = 0.5


class ListFencing(Fencing):
    """Of a storage that can write and list."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def incarnations(self) -> list[int]:
        return numbered(self._storage.folders(), INCARNATION)[::-1]

    def claim(self) -> int:
        mine = f"{_CLAIM}{uuid.uuid4().hex}"
        while True:
            number = max(self.incarnations(), default=0) + 1
            self._storage.write(f"inc-{number}/{mine}", b"")
            if [name for name in self._storage.names(f"inc-{number}") if name.startswith(_CLAIM)] == [mine]:
                return number
            self._storage.delete(f"inc-{number}/{mine}")
            time.sleep(random.uniform(0, _PAUSE_S))

    def fence(self, older: int, by: int) -> None:
        """The claim was that."""

    def fenced(self, number: int) -> bool:
        return max(self.incarnations(), default=0) > number

    def begin(self, number: int, checkpoint: int) -> str:
        self._refuse(number)
        return folder_of(number, checkpoint)

    def complete(self, number: int, checkpoint: int, metadata: bytes) -> None:
        self._refuse(number)
        crash_point("before-rename")
        self._storage.write(f"{folder_of(number, checkpoint)}/{METADATA}", metadata)
        crash_point("after-rename")

    def _refuse(self, number: int) -> None:
        if self.fenced(number):
            raise FileNotFoundError(f"incarnation {number} is fenced")

    def drop_pending(self, number: int, checkpoint: int) -> None:
        self._storage.delete_folder(folder_of(number, checkpoint))

    def checkpoints(self, number: int) -> list[int]:
        found = numbered(self._storage.names(f"inc-{number}"), CHECKPOINT)
        return [checkpoint for checkpoint in found if self._complete(folder_of(number, checkpoint))]

    def _complete(self, folder: str) -> bool:
        return self._storage.exists(f"{folder}/{METADATA}")

    def remove(self, folder: str) -> None:
        self._storage.delete(f"{folder}/{METADATA}")
        crash_point("half-dropped")
        self._storage.delete_folder(folder)

    def remove_leftovers(self, number: int) -> None:
        for checkpoint in numbered(self._storage.names(f"inc-{number}"), CHECKPOINT):
            if not self._complete(folder_of(number, checkpoint)):
                self._storage.delete_folder(folder_of(number, checkpoint))

    def remove_drafts(self) -> None:
        """There are none."""
