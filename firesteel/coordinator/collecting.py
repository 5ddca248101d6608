"""Records on their way to `execute_and_collect`, held back until no rollback can repeat them."""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from typing import Any

from firesteel.coordinator.pending import PendingCheckpoint

_ROOM = 1000  # batches


class CollectedResults:
    """A queue of batches. With checkpoints, an epoch's records come out when a checkpoint that covers them is complete."""

    def __init__(self) -> None:
        self.queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._open: list[list[Any]] = []  # covered by no barrier yet
        self._held: dict[int, list[list[Any]]] = {}  # barrier -> what it covers
        self._lock = threading.Lock()

    def wait_for_room(self, cancelled: threading.Event) -> None:
        """Wait while whoever reads the results is far behind, so that they do not pile up in memory."""
        while self.queue.qsize() > _ROOM and not cancelled.wait(0.01):
            pass

    def add(self, batches: Sequence[list[Any]], *, held: bool, pending: PendingCheckpoint | None) -> None:
        """An epoch's records, and the barrier at its end."""
        with self._lock:
            if not held:
                for batch in batches:
                    self.queue.put(batch)
                return
            self._open += batches
            if pending is not None:
                self._held[pending.checkpoint] = self._open
                self._open = []

    def release(self, checkpoint: int) -> None:
        """That checkpoint is complete, and with it all before."""
        with self._lock:
            for barrier in sorted(self._held):
                if barrier <= checkpoint:
                    for batch in self._held.pop(barrier):
                        self.queue.put(batch)

    def rollback(self) -> None:
        """What no completed checkpoint covers will be made again."""
        with self._lock:
            self._open, self._held = [], {}
