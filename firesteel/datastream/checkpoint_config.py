"""Checkpoint settings under PyFlink's names."""

from __future__ import annotations

import enum

from firesteel.common.durations import parse_duration_ms
from firesteel.errors import ConfigurationError
from firesteel.graph.settings import CheckpointSettings


class CheckpointingMode(enum.Enum):
    """The guarantee inside the job. Epochs end at planned positions, so exactly-once costs nothing extra here."""

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1


class CheckpointConfig:
    """When checkpoints are taken, where they are kept, and how many."""

    def __init__(self) -> None:
        self._interval: int | None = None
        self._mode = CheckpointingMode.EXACTLY_ONCE
        self._timeout = 600_000
        self._directory: str | None = None
        self._retained = 1

    def is_checkpointing_enabled(self) -> bool:
        return self._interval is not None

    def get_checkpoint_interval(self) -> int:
        """In milliseconds, -1 when checkpointing is off."""
        return -1 if self._interval is None else self._interval

    def set_checkpoint_interval(self, checkpoint_interval: int) -> CheckpointConfig:
        if checkpoint_interval < 1:
            raise ConfigurationError(f"the checkpoint interval must be at least 1 ms, not {checkpoint_interval!r}")
        self._interval = checkpoint_interval
        return self

    def get_checkpointing_mode(self) -> CheckpointingMode:
        return self._mode

    def set_checkpointing_mode(self, checkpointing_mode: CheckpointingMode) -> CheckpointConfig:
        self._mode = checkpointing_mode
        return self

    def get_checkpoint_timeout(self) -> int:
        return self._timeout

    def set_checkpoint_timeout(self, checkpoint_timeout: int) -> CheckpointConfig:
        """In milliseconds: a checkpoint that takes longer is dropped and the job goes on."""
        if checkpoint_timeout < 10:
            raise ConfigurationError(f"the checkpoint timeout must be at least 10 ms, not {checkpoint_timeout!r}")
        self._timeout = checkpoint_timeout
        return self

    def set_checkpoint_storage_dir(self, directory: str) -> CheckpointConfig:
        """Where checkpoints are kept: a directory (or `file://` URI) that every machine of the job can reach."""
        self._directory = directory
        return self

    def get_checkpoint_storage_dir(self) -> str | None:
        return self._directory

    def set_max_retained_checkpoints(self, number: int) -> CheckpointConfig:
        """How many completed checkpoints are kept (default 1)."""
        if number < 1:
            raise ConfigurationError(f"at least 1 checkpoint has to be retained, not {number!r}")
        self._retained = number
        return self

    def configure(self, key: str, value: str) -> bool:
        """Take one configuration entry; False when it is not about checkpoints."""
        if key == "execution.checkpointing.interval":
            self.set_checkpoint_interval(parse_duration_ms(value))
        elif key == "execution.checkpointing.timeout":
            self.set_checkpoint_timeout(parse_duration_ms(value))
        elif key in ("state.checkpoints.dir", "execution.checkpointing.dir"):
            self.set_checkpoint_storage_dir(value)
        elif key in ("state.checkpoints.num-retained", "execution.checkpointing.num-retained"):
            self.set_max_retained_checkpoints(int(value))
        else:
            return False
        return True

    def settings(self) -> CheckpointSettings:
        return CheckpointSettings(self._interval, self._timeout, self._directory, self._retained)
