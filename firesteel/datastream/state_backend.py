"""Where a job's working state lives. Where checkpoints are kept is said apart from it (`checkpoint_storage`).

Flink 1.x had classes that said both: they are here too, and set the checkpoint storage along with the backend.
"""

from __future__ import annotations

import enum
import importlib.util
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
    """State on the slots' local disks, larger than memory; hot entries are Python objects in front of it.

    Checkpoints are always incremental, whatever is asked for. Other options are settings: `state.backend.rocksdb.*`.
    """

    transfer_threads: int | None = None
    """None: as configured."""

    def __init__(self, enable_incremental_checkpointing: bool | None = None) -> None:
        if enable_incremental_checkpointing not in (None, True, False):
            raise TypeError(f"enable_incremental_checkpointing is a bool, not {enable_incremental_checkpointing!r}")
        self._incremental = enable_incremental_checkpointing
        self._paths: list[str] = []
        self._options = PredefinedOptions.DEFAULT

    def is_incremental_checkpoints_enabled(self) -> bool:
        return bool(self._incremental)

    def set_db_storage_paths(self, *paths: str) -> None:
        if not paths or not all(isinstance(path, str) and path for path in paths):
            raise ConfigurationError(f"set_db_storage_paths() takes paths of local directories, not {paths!r:.200}")
        self._paths = list(paths)

    def get_db_storage_paths(self) -> list[str]:
        return list(self._paths)

    def set_predefined_options(self, options: PredefinedOptions) -> None:
        self._options = options

    def get_predefined_options(self) -> PredefinedOptions:
        return self._options

    def set_number_of_transfer_threads(self, number_of_transfering_threads: int) -> None:
        if number_of_transfering_threads < 1:
            raise ConfigurationError(f"there is at least 1 transfer thread, not {number_of_transfering_threads}")
        self.transfer_threads = number_of_transfering_threads

    def get_number_of_transfer_threads(self) -> int:
        return 4 if self.transfer_threads is None else self.transfer_threads

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
    """Refuse what cannot be run with here."""
    if not isinstance(backend, StateBackend):
        raise ConfigurationError(f"set_state_backend() takes a StateBackend, not {backend!r:.200}")
    if isinstance(backend, EmbeddedRocksDBStateBackend) and importlib.util.find_spec("rocksdict") is None:
        raise ConfigurationError(f"{backend} needs a package that is not installed: pip install firesteel[rocksdb]")
    return backend
