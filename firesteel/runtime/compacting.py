"""Keeping a slot's chain of state files short, whatever happens to the processes that do it.

A compaction that fails costs nothing but time: the chain it read is untouched, and checkpoints go on with it, longer by a
file each. So it is tried again, because a process may well have been killed by accident or for want of memory, at growing
intervals, because an input that cannot be read will not be readable in a second.
"""

from __future__ import annotations

import contextlib
import sys
import time
import uuid
from collections.abc import Callable
from typing import Any

from firesteel.common.storage import Storage
from firesteel.errors import CheckpointError
from firesteel.state.compaction import Compaction
from firesteel.state.parts import PART

COMPACT_FILES = 8
_FIRST_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 300.0


class Compactor:
    """Compacts one slot's chain, one process at a time. Used by the thread that writes snapshots; any may `kill` it."""

    def __init__(
        self, storage: Storage, folder: str, slot: int, main_classes: bytes, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._storage, self._slot, self._main_classes, self._clock = storage, slot, main_classes, clock
        self._prefix = f"{folder}/slot-{slot}-base-"
        self._running: Compaction | None = None
        self._pause_s, self._not_before = _FIRST_PAUSE_S, 0.0
        self._told = ""

    def shortened(self, chain: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The chain with its beginning replaced by its compaction, if one is ready; starts one when it is long."""
        if self._running is not None:
            if self._running.running():
                return chain
            compaction, self._running = self._running, None
            try:
                result = compaction.result()
            except CheckpointError as error:
                self._failed(str(error))
                self._discard(compaction)
                return chain
            self._pause_s, self._told = _FIRST_PAUSE_S, ""
            if chain[: len(compaction.inputs)] == compaction.inputs:
                return [result, *chain[len(compaction.inputs) :]]
            self._discard(compaction)
        if _worth_compacting(chain) and self._clock() >= self._not_before:
            try:
                self._running = Compaction(
                    self._storage, f"{self._prefix}{uuid.uuid4().hex}.state", list(chain), self._main_classes
                )
            except OSError as error:  # no memory for another process, say: no reason to decline a checkpoint
                self._failed(f"it could not be started: {error}")
        return chain

    def close(self) -> None:
        """End the process, if there is one, and leave nothing of what it made."""
        if self._running is not None:
            self._running.kill()
            self._running.wait()
            self._discard(self._running)

    def _discard(self, compaction: Compaction) -> None:
        with contextlib.suppress(OSError):
            self._storage.delete(compaction.output)

    def kill(self) -> None:
        """End the process, if there is one. Waits for nothing, so that handlers of signals may call this too."""
        compaction = self._running
        if compaction is not None:
            compaction.kill()

    def _failed(self, why: str) -> None:
        """Wait longer each time, and say the same thing only once."""
        self._not_before = self._clock() + self._pause_s
        if why != self._told:
            self._told = why
            print(  # noqa: T201  forwarded to the driver
                f"firesteel: the process that compacts the state files of slot {self._slot} failed: {why}\nIt is tried again "
                f"in {self._pause_s:g} s, then less and less often. Checkpoints go on meanwhile, with more files each",
                file=sys.stderr,
            )
        self._pause_s = min(self._pause_s * 2, _LONGEST_PAUSE_S)


def _worth_compacting(chain: list[dict[str, Any]]) -> bool:
    """When the deltas have grown to the base's size: each byte is then rewritten a few times, however large the state.

    A part of somebody's file is no base: it says nothing about the size of this slot's state, and others wait for the file.
    """
    if len(chain) < COMPACT_FILES:
        return False
    base = 0 if PART in chain[0] else chain[0]["size"]
    return bool(sum(f["size"] for f in chain[1:]) >= base)
