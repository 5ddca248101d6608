"""Where a job's working state lives. Where checkpoints are kept is said apart from it (`checkpoint_storage`).

Flink 1.x had classes that said both: they are here too, and set the checkpoint storage along with the backend.
"""

from __future__ import annotations

import enum
from abc import ABC

from firesteel.datastream.checkpoint_storage import (
    CheckpointStorage,
    FileSystemCheckpointStorage,
    JobManagerCheckpointStorage,
)
from firesteel.errors import ConfigurationError

__all__ = [
    "EmbeddedRocksDBStateBackend",
    "FsStateBackend",
    "HashMapStateBackend",
    "MemoryStateBackend",
    "PredefinedOptions",
    "RocksDBStateBackend",
    "StateBackend",
]


class StateBackend(ABC):  # noqa: B024  a base class to recognise backends by
    """A choice of backend. `checkpoint_storage` is None for backends that leave that open."""

    checkpoint_storage: CheckpointStorage | None = None


class HashMapStateBackend(StateBackend):
    """Python objects in the slots' memory: fast, and as large as memory. The default."""

    def __str__(self) -> str:
        return "HashMapStateBackend"


class PredefinedOptions(enum.Enum):
    """Settings of RocksDB for kinds of disks."""

    DEFAULT = 0
    SPINNING_DISK_OPTIMIZED = 1
    SPINNING_DISK_OPTIMIZED_HIGH_MEM = 2
    FLASH_SSD_OPTIMIZED = 3


class EmbeddedRocksDBStateBackend(StateBackend):
    """State on local disks, larger than memory. Comes with a later version: an environment refuses it."""

    def __init__(self, enable_incremental_checkpointing: bool | None = None) -> None:
        if enable_incremental_checkpointing not in (None, True, False):
            raise TypeError(f"enable_incremental_checkpointing is a bool, not {enable_incremental_checkpointing!r}")
        self._incremental = enable_incremental_checkpointing
        self._paths: list[str] = []
        self._options = PredefinedOptions.DEFAULT
        self._transfer_threads = 4

    def is_incremental_checkpoints_enabled(self) -> bool:
        return bool(self._incremental)

    def set_db_storage_paths(self, *paths: str) -> None:
        self._paths = list(paths)

    def get_db_storage_paths(self) -> list[str]:
        return list(self._paths)

    def set_predefined_options(self, options: PredefinedOptions) -> None:
        self._options = options

    def get_predefined_options(self) -> PredefinedOptions:
        return self._options

    def set_number_of_transfer_threads(self, number_of_transfering_threads: int) -> None:
        self._transfer_threads = number_of_transfering_threads

    def get_number_of_transfer_threads(self) -> int:
        return self._transfer_threads

    def __str__(self) -> str:
        return type(self).__name__


class MemoryStateBackend(HashMapStateBackend):
    """Flink 1.x: state and checkpoints in memory. Now HashMapStateBackend and JobManagerCheckpointStorage."""

    def __init__(self, checkpoint_path: str | None = None, max_state_size: int | None = None) -> None:
        self.checkpoint_storage = JobManagerCheckpointStorage(checkpoint_path, max_state_size)


class FsStateBackend(HashMapStateBackend):
    """Flink 1.x: state in memory, checkpoints in files. Now HashMapStateBackend and FileSystemCheckpointStorage."""

    def __init__(self, checkpoint_directory_uri: str) -> None:
        self.checkpoint_storage = FileSystemCheckpointStorage(checkpoint_directory_uri)

    def get_checkpoint_path(self) -> str:
        assert isinstance(self.checkpoint_storage, FileSystemCheckpointStorage)
        return self.checkpoint_storage.get_checkpoint_path()


class RocksDBStateBackend(EmbeddedRocksDBStateBackend):
    """Flink 1.x: state in RocksDB, checkpoints in files. Now EmbeddedRocksDBStateBackend and a checkpoint directory."""

    def __init__(
        self, checkpoint_data_uri: str | None = None, enable_incremental_checkpointing: bool | None = None
    ) -> None:
        super().__init__(enable_incremental_checkpointing)
        if checkpoint_data_uri is not None:
            self.checkpoint_storage = FileSystemCheckpointStorage(checkpoint_data_uri)


def state_backend_named(name: str) -> StateBackend:
    """What `state.backend.type` (once `state.backend`) may say. The checkpoint directory is a setting of its own."""
    if name in ("hashmap", "filesystem", "jobmanager"):
        return HashMapStateBackend()
    if name == "rocksdb":
        return EmbeddedRocksDBStateBackend()
    raise ValueError("known are hashmap, rocksdb, filesystem and jobmanager")


def check_usable(backend: StateBackend) -> StateBackend:
    """Refuse what this version cannot run with."""
    if not isinstance(backend, StateBackend):
        raise ConfigurationError(f"set_state_backend() takes a StateBackend, not {backend!r:.200}")
    if isinstance(backend, EmbeddedRocksDBStateBackend):
        raise ConfigurationError(
            f"{backend} is not supported in this version: state has to fit into the memory of the slots. Use "
            f"HashMapStateBackend(), the default; its checkpoints are incremental as well"
        )
    return backend
