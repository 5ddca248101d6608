"""The names of Flink 1.x, in which most examples are written, for the environment and its checkpoint settings.

| Flink 1.x | now |
| --- | --- |
| `env.set_state_backend(HashMapStateBackend())` | the configuration's `state.backend.type` |
| `MemoryStateBackend()` | `HashMapStateBackend()` and `JobManagerCheckpointStorage()` |
| `FsStateBackend(path)` | `HashMapStateBackend()` and `set_checkpoint_storage_dir(path)` |
| `RocksDBStateBackend(path, True)` | `EmbeddedRocksDBStateBackend(True)` and `set_checkpoint_storage_dir(path)` |
| `enable_externalized_checkpoints(cleanup)` | `set_externalized_checkpoint_retention(retention)` |
| `ExternalizedCheckpointCleanup` | `ExternalizedCheckpointRetention` |
| `env.from_elements(1, 2)` | `from_collection([1, 2])` |
| `env.generate_sequence(1, 5)` | `from_sequence(1, 5)` |
| `env.get_restart_strategy()` | the configuration's `restart-strategy.type` |
| `set_stream_time_characteristic(...)` | nothing: event time begins with a WatermarkStrategy, windows name theirs |
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from firesteel.common.restart_strategy import RestartStrategyConfiguration
from firesteel.datastream.externalized_checkpoint_retention import ExternalizedCheckpointRetention
from firesteel.datastream.rocksdb_options import rocksdb_settings
from firesteel.datastream.state_backend import (
    EmbeddedRocksDBStateBackend,
    HashMapStateBackend,
    StateBackend,
    check_usable,
)
from firesteel.errors import ConfigurationError, GraphError
from firesteel.graph.settings import RocksDBSettings

if TYPE_CHECKING:
    from firesteel.datastream.checkpoint_config import CheckpointConfig
    from firesteel.datastream.data_stream import DataStream

__all__ = ["ExternalizedCheckpointCleanup", "Flink1CheckpointConfig", "Flink1Environment", "TimeCharacteristic"]

ExternalizedCheckpointCleanup = ExternalizedCheckpointRetention

Env = TypeVar("Env", bound="Flink1Environment")
Config = TypeVar("Config", bound="Flink1CheckpointConfig")


class TimeCharacteristic(enum.Enum):
    """What `set_stream_time_characteristic` took."""

    ProcessingTime = 0
    IngestionTime = 1
    EventTime = 2


class Sources(Protocol):
    """What has today's names of the sources."""

    def from_collection(self, collection: Iterable[Any]) -> DataStream: ...

    def from_sequence(self, start: int, end: int) -> DataStream: ...


class Flink1Environment:
    """Methods that StreamExecutionEnvironment had."""

    _checkpoints: CheckpointConfig
    _restart: RestartStrategyConfiguration
    _state_backend: StateBackend | None = None
    _rocksdb_options: Mapping[str, Any] = {}
    _time_characteristic = TimeCharacteristic.EventTime

    def from_elements(self: Sources, *elements: Any) -> DataStream:
        """Today: `from_collection`."""
        if not elements:
            raise GraphError("from_elements() takes at least one element")
        return self.from_collection(elements)

    def generate_sequence(self: Sources, start: int, end: int) -> DataStream:
        """Today: `from_sequence`."""
        return self.from_sequence(start, end)

    def get_restart_strategy(self) -> RestartStrategyConfiguration:
        return self._restart

    def set_state_backend(self: Env, state_backend: StateBackend) -> Env:
        """Where working state lives; the backends of Flink 1.x also say where checkpoints are kept.

        :raises ConfigurationError: RocksDB was chosen, and its package is not installed.
        """
        self._state_backend = check_usable(state_backend)
        if state_backend.checkpoint_storage is not None:
            self._checkpoints.set_checkpoint_storage(state_backend.checkpoint_storage)
        return self

    def get_state_backend(self) -> StateBackend:
        return self._state_backend or HashMapStateBackend()

    def set_rocksdb_option(self, name: str, value: Any) -> None:
        """What a setting `state.backend.rocksdb.*` says, should the backend be RocksDB."""
        self._rocksdb_options = {**self._rocksdb_options, name: value}

    def _rocksdb(self) -> RocksDBSettings | None:
        """None: state is in memory."""
        backend = self.get_state_backend()
        if not isinstance(backend, EmbeddedRocksDBStateBackend):
            return None
        return rocksdb_settings(backend, self._rocksdb_options)

    def set_stream_time_characteristic(self, characteristic: TimeCharacteristic) -> None:
        """Only decides what `time_window` stands for: windows and timers say themselves which time they mean.

        Ingestion time is refused, as nothing would assign it.
        """
        if characteristic is TimeCharacteristic.IngestionTime:
            raise ConfigurationError(
                "ingestion time is not supported: use a WatermarkStrategy whose timestamp assigner returns the time of day"
            )
        self._time_characteristic = characteristic

    def get_stream_time_characteristic(self) -> TimeCharacteristic:
        return self._time_characteristic


class Flink1CheckpointConfig(ABC):
    """Methods that CheckpointConfig had."""

    _prefer_checkpoint = False

    @abstractmethod
    def set_externalized_checkpoint_retention(self, retention_mode: ExternalizedCheckpointRetention) -> Any: ...

    @abstractmethod
    def get_externalized_checkpoint_retention(self) -> ExternalizedCheckpointRetention: ...

    def enable_externalized_checkpoints(self: Config, cleanup_mode: ExternalizedCheckpointRetention) -> Config:
        self.set_externalized_checkpoint_retention(cleanup_mode)
        return self

    def set_externalized_checkpoint_cleanup(self: Config, cleanup_mode: ExternalizedCheckpointRetention) -> Config:
        self.set_externalized_checkpoint_retention(cleanup_mode)
        return self

    def get_externalized_checkpoint_cleanup(self) -> ExternalizedCheckpointRetention:
        return self.get_externalized_checkpoint_retention()

    def set_prefer_checkpoint_for_recovery(self: Config, prefer_checkpoint_for_recovery: bool) -> Config:
        """Accepted, and without effect: recovery takes the last checkpoint, never an older savepoint in its place."""
        self._prefer_checkpoint = prefer_checkpoint_for_recovery
        return self

    def is_prefer_checkpoint_for_recovery(self) -> bool:
        return self._prefer_checkpoint
