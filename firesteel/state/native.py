"""What a store that takes its own snapshots does at a checkpoint, beside the state files that all slots write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from firesteel.common.storage import Storage
from firesteel.graph.keys import KeyGroups
from firesteel.state.origin import FileHandle
from firesteel.state.store import Store


class NativeState(Protocol):
    """The state of one slot, as far as it is not in state files."""

    def store(self, uid: str, key_groups: KeyGroups) -> Store:
        """An operator's part of it."""

    def settle(self) -> None:
        """Between two batches of records: keep to the memory there is."""

    def barrier(self, checkpoint: int) -> None:
        """Hold on to what the state is now. On the slot's own thread, which waits for it."""

    def write(self, checkpoint: int, storage: Storage, folder: str, base: Sequence[FileHandle]) -> list[FileHandle]:
        """Make that durable, on another thread. Files of the base, the last completed checkpoint, need not be written again.

        :raises OSError: it cannot be; the checkpoint is declined.
        """

    def completed(self, checkpoint: int) -> None:
        """Nobody will ask for older ones."""

    def close(self) -> None:
        """The slot ends, and its part of this machine's disk with it."""

    def discard(self) -> None:
        """The same, without waiting for anything: any thread may call this, and handlers of signals."""
