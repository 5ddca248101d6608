"""Where checkpoints are kept."""

from __future__ import annotations

from abc import ABC

__all__ = ["CheckpointStorage", "FileSystemCheckpointStorage", "JobManagerCheckpointStorage"]


class CheckpointStorage(ABC):  # noqa: B024  a base class to recognise storages by
    """A choice of storage. `checkpoint_path` is the directory, None for one that lasts as long as the job."""

    checkpoint_path: str | None = None

    def get_savepoint_path(self) -> str | None:
        """Savepoints have a directory of their own: env.set_default_savepoint_directory(...)."""
        return None


class JobManagerCheckpointStorage(CheckpointStorage):
    """Checkpoints that last as long as the driver, in its temporary directory: enough to restart from, not to move on.

    With a path they are kept there, as with FileSystemCheckpointStorage.
    """

    DEFAULT_MAX_STATE_SIZE = 5 * 1024 * 1024

    def __init__(self, checkpoint_path: str | None = None, max_state_size: int | None = None) -> None:
        self.checkpoint_path = checkpoint_path
        self._max_state_size = max_state_size or self.DEFAULT_MAX_STATE_SIZE

    def get_checkpoint_path(self) -> str | None:
        return self.checkpoint_path

    def get_max_state_size(self) -> int:
        """Accepted, and without effect: state does not pass through the driver's memory."""
        return self._max_state_size


class FileSystemCheckpointStorage(CheckpointStorage):
    """Checkpoints in a directory (or `file://` URI) that every machine of the job can reach."""

    MAX_FILE_STATE_THRESHOLD = 1024 * 1024

    def __init__(
        self, checkpoint_path: str, file_state_size_threshold: int | None = None, write_buffer_size: int = -1
    ) -> None:
        if not checkpoint_path:
            raise ValueError("checkpoint_path must not be None or empty")
        self._path = self.checkpoint_path = checkpoint_path
        self._threshold = -1 if file_state_size_threshold is None else file_state_size_threshold
        self._buffer = write_buffer_size

    def get_checkpoint_path(self) -> str:
        return self._path

    def get_min_file_size_threshold(self) -> int:
        """Accepted, and without effect: all state is in files."""
        return self._threshold if self._threshold >= 0 else 20 * 1024

    def get_write_buffer_size(self) -> int:
        """Accepted, and without effect."""
        return self._buffer if self._buffer >= 0 else 4096
