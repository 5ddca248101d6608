"""What a whole program is run with, unless an operator says otherwise."""

from __future__ import annotations

from collections.abc import Mapping

from firesteel.common.durations import DurationLike, parse_duration_ms

__all__ = ["ExecutionConfig"]

_MAX_KEY_GROUPS = 1 << 15


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
        if not 1 <= max_parallelism <= _MAX_KEY_GROUPS:
            raise ValueError(f"max_parallelism must be between 1 and {_MAX_KEY_GROUPS}, not {max_parallelism}")
        self._max_parallelism = max_parallelism
        return self

    def get_auto_watermark_interval(self) -> int:
        """Milliseconds."""
        return self._auto_watermark_interval_ms

    def set_auto_watermark_interval(self, interval: DurationLike) -> ExecutionConfig:
        self._auto_watermark_interval_ms = parse_duration_ms(interval)
        return self

    def get_global_job_parameters(self) -> dict[str, str]:
        return dict(self._global_job_parameters)

    def set_global_job_parameters(self, global_job_parameters_dict: Mapping[str, object]) -> ExecutionConfig:
        self._global_job_parameters = {k: str(v) for k, v in global_job_parameters_dict.items()}
        return self
