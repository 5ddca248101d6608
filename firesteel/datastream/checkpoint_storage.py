"""Where checkpoints are kept."""

from __future__ import annotations

from abc import ABC

from firesteel.errors import ConfigurationError

__all__ = ["CheckpointStorage", "FileSystemCheckpointStorage", "JobManagerCheckpointStorage"]


class CheckpointStorage(ABC):  # noqa: B024  a base class to recognise storages by
    """A choice of storage. `checkpoint_path` is the directory, None for one that lasts as long as the job."""

    checkpoint_path: str | None = None

    def get_savepoint_path(self) -> str | None:
        """Savepoints have a directory of their own: env.set_default_savepoint_directory(...)."""
        return None


class JobManagerCheckpointStorage(CheckpointStorage):
    """Checkpoints in the driver's memory, for little state: enough to restart from when something else than the driver
    dies, and gone with it.

    A checkpoint is declined when the state of one slot is larger than `max_state_size` (5 MB). The driver holds up to that
    much for each slot and retained checkpoint, and the one on its way.

    With a path checkpoints are kept there, whole and of any size, as with FileSystemCheckpointStorage.
    """

    DEFAULT_MAX_STATE_SIZE = 5 * 1024 * 1024

    def __init__(self, checkpoint_path: str | None = None, max_state_size: int | None = None) -> None:
        if max_state_size is not None and (not isinstance(max_state_size, int) or max_state_size <= 0):
            raise ConfigurationError(f"max_state_size is a number of bytes above 0, not {max_state_size!r}")
        self.checkpoint_path = checkpoint_path
        self._max_state_size = max_state_size or self.DEFAULT_MAX_STATE_SIZE

    def get_checkpoint_path(self) -> str | None:
        return self.checkpoint_path

    def get_max_state_size(self) -> int:
        """How large the state of one slot may be, in bytes."""
        return self._max_state_size

    def __str__(self) -> str:
        return f"JobManagerCheckpointStorage({self.checkpoint_path or ''}, max_state_size={self._max_state_size})"


class FileSystemCheckpointStorage(CheckpointStorage):
    """Checkpoints in a directory: a path, or a URI of a file system that pyarrow knows (`s3://`, `gs://`, `abfs://`,
    `hdfs://`). Every machine of the job has to reach it."""

    MAX_FILE_STATE_THRESHOLD = 1024 * 1024

    def __init__(
        self, checkpoint_path: str, file_state_size_threshold: int | None = None, write_buffer_size: int = -1
    ) -> None:
        if not checkpoint_path:
            raise ValueError("checkpoint_path must not be None or empty")
        threshold = -1 if file_state_size_threshold is None else file_state_size_threshold
        if not -1 <= threshold <= self.MAX_FILE_STATE_THRESHOLD:
            raise ConfigurationError(
                f"file_state_size_threshold is -1 or a number of bytes up to {self.MAX_FILE_STATE_THRESHOLD}, not {threshold}"
            )
        self._path = self.checkpoint_path = checkpoint_path
        self._threshold = threshold
        self._buffer = write_buffer_size

    def get_checkpoint_path(self) -> str:
        return self._path

    def get_min_file_size_threshold(self) -> int:
        """Accepted, and without effect: all state is in files."""
        return self._threshold if self._threshold >= 0 else 20 * 1024

    def get_write_buffer_size(self) -> int:
        """Accepted, and without effect."""
        return self._buffer if self._buffer >= 0 else 4096

    def __str__(self) -> str:
        return f"FileSystemCheckpointStorage({self._path})"
