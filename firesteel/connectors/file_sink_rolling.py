"""When the file sink ends a part file and starts the next one.

Every file ends with a checkpoint. A policy decides whether it ends before that.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

from firesteel.common.durations import DurationLike, parse_duration_ms
from firesteel.errors import ConfigurationError

PART_SIZE = 128 * 1024 * 1024
INTERVAL_MS = 60_000


class PartFileInfo(Protocol):
    """What a policy may know about a file in progress. Times are in milliseconds since 1970."""

    def get_bucket_id(self) -> str: ...

    def get_creation_time(self) -> int: ...

    def get_size(self) -> int:
        """Bytes written so far. A bulk writer may have more in memory."""

    def get_last_update_time(self) -> int: ...


class RollingPolicy(ABC):
    """Subclass it for a policy of your own. Pickled to slots."""

    def should_roll_on_checkpoint(self, part_file_state: PartFileInfo) -> bool:
        """Always so: a file that went on after a checkpoint would have to be cut back in recovery."""
        return True

    @abstractmethod
    def should_roll_on_event(self, part_file_state: PartFileInfo, element: Any) -> bool:
        """Whether a batch of records, of which `element` is the first, goes into a new file."""

    @abstractmethod
    def should_roll_on_processing_time(self, part_file_state: PartFileInfo, current_time: int) -> bool:
        """Whether the file ends now. Asked at the end of an epoch, when the bucket check interval is over."""

    @staticmethod
    def default_rolling_policy(
        part_size: int = PART_SIZE, rollover_interval: int = INTERVAL_MS, inactivity_interval: int = INTERVAL_MS
    ) -> DefaultRollingPolicy:
        """
        :param part_size: in bytes.
        :param rollover_interval: how long a file may be open, in milliseconds.
        :param inactivity_interval: how long a file may stay open without being written to, in milliseconds.
        """
        return DefaultRollingPolicy(part_size, rollover_interval, inactivity_interval)

    @staticmethod
    def on_checkpoint_rolling_policy() -> OnCheckpointRollingPolicy:
        """One file per bucket, subtask and checkpoint, however large."""
        return OnCheckpointRollingPolicy()


class DefaultRollingPolicy(RollingPolicy):
    """Ends files that are large, old or quiet."""

    def __init__(
        self, part_size: int = PART_SIZE, rollover_interval: int = INTERVAL_MS, inactivity_interval: int = INTERVAL_MS
    ) -> None:
        for name, value in (
            ("part_size", part_size),
            ("rollover_interval", rollover_interval),
            ("inactivity_interval", inactivity_interval),
        ):
            if not isinstance(value, int) or value < 1:
                raise ConfigurationError(f"{name} must be a number of at least 1, but is {value!r}")
        self.part_size = part_size
        self.rollover_interval = rollover_interval
        self.inactivity_interval = inactivity_interval

    def should_roll_on_event(self, part_file_state: PartFileInfo, element: Any) -> bool:
        return part_file_state.get_size() >= self.part_size

    def should_roll_on_processing_time(self, part_file_state: PartFileInfo, current_time: int) -> bool:
        return (
            current_time - part_file_state.get_creation_time() >= self.rollover_interval
            or current_time - part_file_state.get_last_update_time() >= self.inactivity_interval
        )

    @staticmethod
    def builder() -> DefaultRollingPolicy.PolicyBuilder:
        return DefaultRollingPolicy.PolicyBuilder()

    class PolicyBuilder:
        """Collects the settings of a DefaultRollingPolicy. Sizes are bytes or a MemorySize, times any duration."""

        def __init__(self) -> None:
            self._size, self._rollover, self._inactivity = PART_SIZE, INTERVAL_MS, INTERVAL_MS

        def with_max_part_size(self, size: Any) -> DefaultRollingPolicy.PolicyBuilder:
            self._size = size.get_bytes() if hasattr(size, "get_bytes") else size
            return self

        def with_rollover_interval(self, interval: DurationLike) -> DefaultRollingPolicy.PolicyBuilder:
            self._rollover = milliseconds(interval)
            return self

        def with_inactivity_interval(self, interval: DurationLike) -> DefaultRollingPolicy.PolicyBuilder:
            self._inactivity = milliseconds(interval)
            return self

        def build(self) -> DefaultRollingPolicy:
            return DefaultRollingPolicy(self._size, self._rollover, self._inactivity)


class OnCheckpointRollingPolicy(RollingPolicy):
    """Ends files with checkpoints only."""

    def should_roll_on_event(self, part_file_state: PartFileInfo, element: Any) -> bool:
        return False

    def should_roll_on_processing_time(self, part_file_state: PartFileInfo, current_time: int) -> bool:
        return False

    @staticmethod
    def build() -> OnCheckpointRollingPolicy:
        return OnCheckpointRollingPolicy()


def milliseconds(interval: DurationLike) -> int:
    try:
        return parse_duration_ms(interval)
    except ValueError as error:
        raise ConfigurationError(str(error)) from error
