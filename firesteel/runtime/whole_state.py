"""Checkpoints in the driver's memory, as a slot sees them: its whole state travels to the driver, once a checkpoint.

Files are kept in chains because writing all state each time would take too long. Here there is so little of it that it is
simpler to merge: a slot's state is one file, no larger than the limit, sent over the control connection before the
checkpoint is acknowledged on the same one. The slot keeps the file of the last completed checkpoint, to merge the next
delta into.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

from firesteel.common.sizes import show_size
from firesteel.common.storage import MemoryStorage
from firesteel.state.compaction import compact

FileHandle = dict[str, Any]


class WholeState:
    """Turns a chain in the slot's memory into one file in the driver's."""

    def __init__(self, storage: MemoryStorage, limit: int, tell: Callable[[dict[str, Any]], None]) -> None:
        self._storage, self._limit, self._tell = storage, limit, tell

    def send(self, base: list[FileHandle], delta: FileHandle, name: str) -> list[FileHandle]:
        """The chain with the delta merged into it.

        :raises OSError: it is larger than the limit, so the checkpoint is declined.
        """
        merged = compact(self._storage, name, [*base, delta])
        data = self._storage.read(name)
        kept = {handle["file"]: self._storage.read(handle["file"]) for handle in base}  # until this one is completed
        self._storage.delete_folder()
        for file, content in kept.items():
            self._storage.write(file, content)
        if len(data) > self._limit:
            raise OSError(
                f"its state is {show_size(len(data))}, more than the {show_size(self._limit)} a slot that the driver's memory "
                f"has room for. Keep checkpoints in files (execution.checkpointing.dir), or raise the limit: "
                f"JobManagerCheckpointStorage(max_state_size=...)"
            )
        self._storage.write(name, data)
        self._tell({"type": "state", "file": name, "data": base64.b64encode(data).decode()})
        return [merged]
