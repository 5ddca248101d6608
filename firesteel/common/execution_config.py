"""What a whole program is run with, unless an operator says otherwise."""

from __future__ import annotations

from collections.abc import Mapping

from firesteel.common.durations import DurationLike, parse_duration_ms

__all__ = ["ExecutionConfig"]

MAX_KEY_GROUPS = 1 << 15


class ExecutionConfig:
    """Parallelism and other defaults of a program. Setters return the config, to be chained."""

    PARALLELISM_DEFAULT = -1
    """Not set: the environment decides."""

    PARALLELISM_UNKNOWN = -2

    def __init__(self) -> None:
        self._parallelism = self.PARALLELISM_DEFAULT
        self._max_parallelism = -1
        self._auto_watermark_interval_ms = 200
        self._global_job_parameters: dict[str, str] = {}
        self._latency_tracking_interval_ms = 0
        self._cancellation_interval_ms = 30_000
        self._cancellation_timeout_ms = 180_000
        self._closure_cleaner = True
        self._auto_generated_uids = True
        self._object_reuse = False
        self._snapshot_compression = False
        self._window_pre_combining = True

    def get_parallelism(self) -> int:
        return self._parallelism

    def set_parallelism(self, parallelism: int) -> ExecutionConfig:
        if parallelism < 1 and parallelism != self.PARALLELISM_DEFAULT:
            raise ValueError(f"Parallelism must be at least 1, not {parallelism}")
        self._parallelism = parallelism
        return self

    def get_max_parallelism(self) -> int:
        """The number of key groups; -1 while not set."""
        return self._max_parallelism

    def set_max_parallelism(self, max_parallelism: int) -> ExecutionConfig:
        """Fix the number of key groups. It cannot change as long as state made with it is to be read."""
        if not 1 <= max_parallelism <= MAX_KEY_GROUPS:
            raise ValueError(f"max_parallelism must be between 1 and {MAX_KEY_GROUPS}, not {max_parallelism}")
        self._max_parallelism = max_parallelism
        return self

    def get_auto_watermark_interval(self) -> int:
        """Milliseconds."""
        return self._auto_watermark_interval_ms

    def set_auto_watermark_interval(self, interval: DurationLike) -> ExecutionConfig:
        self._auto_watermark_interval_ms = parse_duration_ms(interval)
        return self

    def enable_auto_generated_uids(self) -> ExecutionConfig:
        """Operators without a uid get one that follows from their place in the program: the default."""
        self._auto_generated_uids = True
        return self

    def disable_auto_generated_uids(self) -> ExecutionConfig:
        """Refuse to run a program with an operator that has no `uid(...)`, so that state survives any later edit."""
        self._auto_generated_uids = False
        return self

    def has_auto_generated_uids_enabled(self) -> bool:
        return self._auto_generated_uids

    def enable_object_reuse(self) -> ExecutionConfig:
        """Promise that no function changes a record that it is given. Otherwise operators that read the same records, or
        what a state still holds, get copies of those that could be changed."""
        self._object_reuse = True
        return self

    def disable_object_reuse(self) -> ExecutionConfig:
        """Functions may change the records that they are given, and nobody else sees it: the default."""
        self._object_reuse = False
        return self

    def is_object_reuse_enabled(self) -> bool:
        return self._object_reuse

    def enable_closure_cleaner(self) -> ExecutionConfig:
        """Accepted, and without effect: it is about Java's closures."""
        self._closure_cleaner = True
        return self

    def disable_closure_cleaner(self) -> ExecutionConfig:
        self._closure_cleaner = False
        return self

    def is_closure_cleaner_enabled(self) -> bool:
        return self._closure_cleaner

    def get_latency_tracking_interval(self) -> int:
        """Milliseconds; 0 when off."""
        return self._latency_tracking_interval_ms

    def set_latency_tracking_interval(self, interval: DurationLike) -> ExecutionConfig:
        """Accepted, and without effect."""
        self._latency_tracking_interval_ms = parse_duration_ms(interval)
        return self

    def get_task_cancellation_interval(self) -> int:
        """Milliseconds."""
        return self._cancellation_interval_ms

    def set_task_cancellation_interval(self, interval: DurationLike) -> ExecutionConfig:
        """Accepted, and without effect: cancelling a job ends its slots' processes."""
        self._cancellation_interval_ms = parse_duration_ms(interval)
        return self

    def get_task_cancellation_timeout(self) -> int:
        """Milliseconds."""
        return self._cancellation_timeout_ms

    def set_task_cancellation_timeout(self, timeout: DurationLike) -> ExecutionConfig:
        """Accepted, and without effect, as the interval."""
        self._cancellation_timeout_ms = parse_duration_ms(timeout)
        return self

    def is_use_snapshot_compression(self) -> bool:
        return self._snapshot_compression

    def set_use_snapshot_compression(self, use_snapshot_compression: bool) -> ExecutionConfig:
        """Accepted, and without effect."""
        self._snapshot_compression = use_snapshot_compression
        return self

    def get_global_job_parameters(self) -> dict[str, str]:
        """What every function of the job sees with `get_job_parameter` of its context."""
        return dict(self._global_job_parameters)

    def set_global_job_parameters(self, global_job_parameters_dict: Mapping[str, object]) -> ExecutionConfig:
        self._global_job_parameters = {k: str(v) for k, v in global_job_parameters_dict.items()}
        return self

    def set_window_pre_combining(self, enabled: bool) -> ExecutionConfig:
        """Whether windows' records are combined before they are sent, where that gives the same results and the program
        does not say (`firesteel.window.pre-combine`)."""
        self._window_pre_combining = enabled
        return self

    def is_window_pre_combining_enabled(self) -> bool:
        return self._window_pre_combining
