"""A checkpoint between its barrier and its completion."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from firesteel.connectors.base import Json
from firesteel.coordinator.engine import EpochResult, FileHandle
from firesteel.coordinator.savepoint_requests import SavepointRequest


class PendingCheckpoint:
    """Checkpoint n on its way: it turns into a completed one when its epoch has ended and every slot's snapshot is
    durable, and is dropped when a slot declines, when it takes too long, or when the job rolls back.

    Acknowledgements may arrive before the epoch's result does. Both name the nonce of the attempt they come from, and
    only an acknowledgement of the attempt whose output was used counts.
    """

    def __init__(
        self,
        checkpoint: int,
        slots: int,
        positions: Mapping[str, Json],
        *,
        snapshot: bool,
        final: bool,
        whole: bool = False,
        savepoints: Sequence[SavepointRequest] = (),
    ) -> None:
        self.checkpoint = checkpoint
        self.positions = positions
        self.snapshot = snapshot
        self.whole = whole
        self.final = final
        self.savepoints = savepoints  # that are to be made of it
        self.started = time.monotonic()
        self.committables: dict[str, list[Json]] = {}
        self._slots = slots
        self._nonces: dict[int, str] | None = None
        self._durable: dict[int, tuple[str, Sequence[FileHandle]]] = {}
        self._declined: str | None = None
        self._changed = threading.Condition()

    def acknowledge(self, slot: int, message: Mapping[str, Any]) -> None:
        """A slot says that its snapshot is durable, or why it is not."""
        with self._changed:
            if message["type"] == "declined":
                self._declined = f"slot {slot}: {message['why']}"
            else:
                self._durable[slot] = (message["nonce"], message["files"])
            self._changed.notify_all()

    def epoch_ended(self, result: EpochResult) -> None:
        """The epoch that ended with this barrier succeeded: these are the attempts that count, and their output."""
        with self._changed:
            self._nonces = {report["slot"]: report["nonce"] for report in result.reports}
            for report in sorted(result.reports, key=lambda report: int(report["slot"])):
                for uid, items in report["committables"].items():
                    self.committables.setdefault(uid, []).extend(items)
            self._changed.notify_all()

    def wait(self, timeout: float) -> bool:
        """Wait a while for everything to be durable.

        :raises OSError: a slot could not write its snapshot.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._declined is not None or self._complete(), timeout)
            if self._declined is not None:
                raise OSError(self._declined)
            return self._complete()

    def _complete(self) -> bool:
        if self._nonces is None:
            return False
        if not self.snapshot:
            return True
        return all(self._durable.get(slot, ("",))[0] == nonce for slot, nonce in self._nonces.items())

    def state(self) -> list[list[FileHandle]]:
        """Every slot's state files."""
        return [list(self._durable[slot][1]) if slot in self._durable else [] for slot in range(self._slots)]

    def age(self) -> float:
        return time.monotonic() - self.started
