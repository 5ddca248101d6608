"""What a slot is told about itself when it starts."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

from firesteel.common.storage import MemoryStorage, Storage, open_storage
from firesteel.graph.settings import RocksDBSettings
from firesteel.runtime.keyed_state import wall_clock
from firesteel.runtime.snapshots import FileHandle
from firesteel.state.origin import Origin


@dataclass(frozen=True)
class SlotPlace:
    """Which slot of which job this is."""

    job_id: str
    slot: int
    incarnation: int
    attempt: int
    directory: str  # the job's checkpoint directory, a path or URI
    restore: tuple[FileHandle, ...] = ()  # state files, oldest first
    origin: Origin | None = None  # the checkpoint they are of
    main_classes: bytes = b""  # see graph.shipping
    parameters: dict[str, str] = field(default_factory=dict)  # the job's, for functions
    checkpointing: bool = True  # if not, nobody needs to know what changed
    max_state_size: int | None = None  # state goes to the driver's memory, and comes from there inside the handles
    rocksdb: RocksDBSettings | None = None  # None: state is in memory
    scratch: str | None = None  # a directory of this machine, for as long as the driver lives
    now: Callable[[], int] = wall_clock
    on_restored: Callable[[int], None] | None = None  # told how much was read of each state file

    @cached_property
    def storage(self) -> Storage:
        """Where its state files are."""
        if self.max_state_size is None:
            return open_storage(self.directory)
        memory = MemoryStorage()
        for handle in chain(self.restore, *(self.origin.chains if self.origin is not None else ())):
            memory.replace(handle["file"], base64.b64decode(handle["data"]))
        return memory
