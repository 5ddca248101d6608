"""Checkpoint settings under PyFlink's names."""

from __future__ import annotations

import enum

from firesteel.common.durations import DurationLike, parse_duration_ms
from firesteel.common.time import Duration
from firesteel.datastream.checkpoint_storage import (
    CheckpointStorage,
    FileSystemCheckpointStorage,
    JobManagerCheckpointStorage,
)
from firesteel.datastream.checkpointing_mode import CheckpointingMode
from firesteel.datastream.externalized_checkpoint_retention import ExternalizedCheckpointRetention
from firesteel.datastream.flink1_environment import Flink1CheckpointConfig
from firesteel.errors import ConfigurationError
from firesteel.graph.settings import CheckpointSettings

__all__ = ["CheckpointConfig", "CheckpointingMode"]

_UNLIMITED = 2**31 - 1


class CheckpointStorageKind(enum.Enum):
    """What a configuration file may say about storage."""

    FILESYSTEM = 0
    JOBMANAGER = 1


class CheckpointConfig(Flink1CheckpointConfig):
    """When checkpoints are taken, where they are kept, and how many. Setters return the config, to be chained."""

    def __init__(self) -> None:
        self._interval: int | None = None
        self._mode = CheckpointingMode.EXACTLY_ONCE
        self._timeout = 600_000
        self._directory: str | None = None
        self._max_state_size: int | None = None  # of checkpoints in the driver's memory
        self._needs_directory = False
        self._retained = 1
        self._min_pause = 0
        self._max_concurrent = 1
        self._tolerable_failures = _UNLIMITED
        self._retention = ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS
        self._unaligned = False
        self._force_unaligned = False
        self._aligned_timeout = Duration.of_millis(0)
        self._savepoint_directory: str | None = None

    # ---- when

    def is_checkpointing_enabled(self) -> bool:
        return self._interval is not None

    def get_checkpoint_interval(self) -> int:
        """In milliseconds, -1 when checkpointing is off."""
        return -1 if self._interval is None else self._interval

    def set_checkpoint_interval(self, checkpoint_interval: int) -> CheckpointConfig:
        self._interval = _at_least("the checkpoint interval (ms)", checkpoint_interval, 1)
        return self

    def get_checkpointing_mode(self) -> CheckpointingMode:
        return self._mode

    def set_checkpointing_mode(self, checkpointing_mode: CheckpointingMode) -> CheckpointConfig:
        if not isinstance(checkpointing_mode, CheckpointingMode):
            raise ConfigurationError(f"the checkpointing mode is a CheckpointingMode, not {checkpointing_mode!r}")
        self._mode = checkpointing_mode
        return self

    def get_checkpoint_timeout(self) -> int:
        return self._timeout

    def set_checkpoint_timeout(self, checkpoint_timeout: int) -> CheckpointConfig:
        """In milliseconds: a checkpoint that takes longer is dropped and the job goes on."""
        self._timeout = _at_least("the checkpoint timeout (ms)", checkpoint_timeout, 10)
        return self

    def get_min_pause_between_checkpoints(self) -> int:
        return self._min_pause

    def set_min_pause_between_checkpoints(self, min_pause_between_checkpoints: int) -> CheckpointConfig:
        """In milliseconds, from the end of one checkpoint to the barrier of the next."""
        self._min_pause = _at_least("the minimum pause (ms)", min_pause_between_checkpoints, 0)
        return self

    def get_max_concurrent_checkpoints(self) -> int:
        return self._max_concurrent

    def set_max_concurrent_checkpoints(self, max_concurrent_checkpoints: int) -> CheckpointConfig:
        """How many checkpoints may be under way at once. Accepted, but it is always one: the next barrier may be planned
        as soon as a checkpoint is durable, and a second one before that would only write the same changes twice."""
        self._max_concurrent = _at_least("the number of concurrent checkpoints", max_concurrent_checkpoints, 1)
        return self

    # ---- when one fails

    def get_tolerable_checkpoint_failure_number(self) -> int:
        return self._tolerable_failures

    def set_tolerable_checkpoint_failure_number(self, tolerable_checkpoint_failure_number: int) -> CheckpointConfig:
        """How many checkpoints in a row may fail, or take too long, before the job does. Not set: any number, because
        nothing is lost by it: the next one covers their state and carries their output."""
        what = "the number of tolerable checkpoint failures"
        self._tolerable_failures = _at_least(what, tolerable_checkpoint_failure_number, 0)
        return self

    def is_fail_on_checkpointing_errors(self) -> bool:
        return self._tolerable_failures == 0

    def set_fail_on_checkpointing_errors(self, fail_on_checkpointing_errors: bool) -> CheckpointConfig:
        """An older way to say that no, or any number of, failed checkpoints are tolerable."""
        self._tolerable_failures = 0 if fail_on_checkpointing_errors else _UNLIMITED
        return self

    # ---- where, and for how long

    def set_checkpoint_storage(self, storage: CheckpointStorage) -> CheckpointConfig:
        if not isinstance(storage, CheckpointStorage):
            raise ConfigurationError(
                f"set_checkpoint_storage() takes a CheckpointStorage, not {storage!r:.200}; for a directory use "
                f"set_checkpoint_storage_dir(...)"
            )
        self._directory, self._needs_directory = storage.checkpoint_path, False
        self._max_state_size = None
        if isinstance(storage, JobManagerCheckpointStorage):
            self._max_state_size = storage.get_max_state_size()
        return self

    def get_checkpoint_storage(self) -> CheckpointStorage | None:
        """None if nothing was chosen: checkpoints are in a temporary directory then, and last as long as the job."""
        if self._directory is not None:
            return FileSystemCheckpointStorage(self._directory)
        return JobManagerCheckpointStorage(None, self._max_state_size) if self._max_state_size is not None else None

    def _choose_storage(self, kind: CheckpointStorageKind) -> CheckpointConfig:
        """What `execution.checkpointing.storage` says; the directory is a setting of its own."""
        self._needs_directory = kind is CheckpointStorageKind.FILESYSTEM
        in_memory = kind is CheckpointStorageKind.JOBMANAGER
        self._max_state_size = JobManagerCheckpointStorage.DEFAULT_MAX_STATE_SIZE if in_memory else None
        return self

    def set_checkpoint_storage_dir(self, directory: str) -> CheckpointConfig:
        """Where checkpoints are kept: a path, or a URI of a file system that pyarrow knows (`s3://`, `gs://`, `abfs://`,
        `hdfs://`). Every machine of the job has to reach it."""
        if not isinstance(directory, str) or not directory:
            raise ConfigurationError(f"the checkpoint directory is a path or URI, not {directory!r}")
        self._directory = directory
        return self

    def get_checkpoint_storage_dir(self) -> str | None:
        return self._directory

    def set_max_retained_checkpoints(self, number: int) -> CheckpointConfig:
        """How many completed checkpoints are kept (default 1)."""
        self._retained = _at_least("the number of retained checkpoints", number, 1)
        return self

    def set_externalized_checkpoint_retention(
        self, retention_mode: ExternalizedCheckpointRetention
    ) -> CheckpointConfig:
        """Whether checkpoints outlive a cancelled job: they do unless this is DELETE_ON_CANCELLATION."""
        if not isinstance(retention_mode, ExternalizedCheckpointRetention):
            raise ConfigurationError(f"the retention is an ExternalizedCheckpointRetention, not {retention_mode!r}")
        self._retention = retention_mode
        return self

    def is_externalized_checkpoints_enabled(self) -> bool:
        return self._retention is not ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS

    def get_externalized_checkpoint_retention(self) -> ExternalizedCheckpointRetention:
        return self._retention

    def set_savepoint_dir(self, directory: str) -> CheckpointConfig:
        """Where savepoints go that are given no directory: a path or URI, as for checkpoints."""
        if not isinstance(directory, str) or not directory:
            raise ConfigurationError(f"the savepoint directory is a path or URI, not {directory!r}")
        self._savepoint_directory = directory
        return self

    def get_savepoint_dir(self) -> str | None:
        return self._savepoint_directory

    # ---- alignment: barriers do not wait for each other inside an epoch, so there is nothing to switch off

    def is_unaligned_checkpoints_enabled(self) -> bool:
        return self._unaligned

    def enable_unaligned_checkpoints(self, enabled: bool = True) -> CheckpointConfig:
        """Accepted, and without effect: an epoch ends with no record under way, so no barrier waits behind any."""
        self._unaligned = enabled
        return self

    def disable_unaligned_checkpoints(self) -> CheckpointConfig:
        return self.enable_unaligned_checkpoints(False)

    def get_aligned_checkpoint_timeout(self) -> Duration:
        return self._aligned_timeout

    def set_aligned_checkpoint_timeout(self, alignment_timeout: DurationLike) -> CheckpointConfig:
        """Accepted, and without effect, as unaligned checkpoints."""
        self._aligned_timeout = Duration.of_millis(parse_duration_ms(alignment_timeout))
        return self

    get_alignment_timeout = get_aligned_checkpoint_timeout
    set_alignment_timeout = set_aligned_checkpoint_timeout

    def set_force_unaligned_checkpoints(self, force_unaligned_checkpoints: bool = True) -> CheckpointConfig:
        """Accepted, and without effect, as unaligned checkpoints."""
        self._force_unaligned = force_unaligned_checkpoints
        return self

    def is_force_unaligned_checkpoints(self) -> bool:
        return self._force_unaligned

    # ----

    def settings(self) -> CheckpointSettings:
        """
        :raises ConfigurationError: checkpoints are to be in files, and nobody said where.
        """
        if self._interval is not None and self._needs_directory and self._directory is None:
            raise ConfigurationError(
                "execution.checkpointing.storage is filesystem, and there is no directory for checkpoints. Set "
                "execution.checkpointing.dir to a path or URI"
            )
        return CheckpointSettings(
            self._interval,
            self._timeout,
            self._directory,
            self._retained,
            self._mode.name,
            self._min_pause,
            None if self._tolerable_failures == _UNLIMITED else self._tolerable_failures,
            self._retention is ExternalizedCheckpointRetention.DELETE_ON_CANCELLATION,
            self._max_state_size,
            self._savepoint_directory,
        )


def _at_least(what: str, value: int, least: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ConfigurationError(f"{what} must be at least {least}, not {value!r}")
    return value
