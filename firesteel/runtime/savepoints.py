"""A slot's part of savepoints: its chain of a completed checkpoint, merged into one file in the savepoint's directory.

A process of its own does that, so the slot goes on meanwhile. The driver hears how far it is, and at the end the file's
handle or what went wrong.
"""

from __future__ import annotations

import queue
import threading
from typing import Any

from firesteel.common.storage import Storage
from firesteel.errors import CheckpointError
from firesteel.runtime.snapshots import Tell
from firesteel.state.compaction import Compaction


class SavepointWriter:
    """Writes one savepoint after the other."""

    def __init__(self, storage: Storage, slot: int, main_classes: bytes, tell: Tell) -> None:
        self._storage, self._slot, self._main_classes, self._tell = storage, slot, main_classes, tell
        self._orders: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._running: Compaction | None = None
        self._dropped: set[str] = set()
        self._closed = False

    def write(self, order: dict[str, Any]) -> None:
        """Called by the thread that listens to the driver."""
        self._orders.put(order)
        if self._thread is None:
            self._thread = threading.Thread(target=self._write_all, name="savepoints", daemon=True)
            self._thread.start()

    def drop(self, savepoint: str) -> None:
        """Nobody needs that one any more."""
        self._dropped.add(savepoint)
        running = self._running
        if running is not None and savepoint in running.into:
            running.kill()

    def kill(self) -> None:
        """End the process, if there is one. Waits for nothing, so that handlers of signals may call this too."""
        self._closed = True
        running = self._running
        if running is not None:
            running.kill()

    def close(self) -> None:
        self.kill()
        if self._thread is not None:
            self._orders.put(None)
            self._thread.join()

    def _write_all(self) -> None:
        while (order := self._orders.get()) is not None and not self._closed:
            answer = {"type": "savepoint", "savepoint": order["savepoint"]}
            try:
                self._tell({**answer, "handle": self._merge(order, answer)})
            except (CheckpointError, OSError) as error:
                self._tell({**answer, "why": str(error)})

    def _merge(self, order: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
        merging = Compaction(
            self._storage, order["output"], order["chain"], self._main_classes, order["into"], order["uids"]
        )
        self._running = merging
        if self._closed or order["savepoint"] in self._dropped:
            merging.kill()
        merging.follow(lambda read: self._tell({**answer, "read": read}))
        try:
            return merging.result()
        finally:
            self._running = None
