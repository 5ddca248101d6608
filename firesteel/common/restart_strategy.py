"""How often, and after how long, a failed job is started again. Descriptions only: the coordinator acts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import timedelta

from firesteel.common.durations import DurationLike, parse_duration_ms

__all__ = ["RestartStrategies", "RestartStrategyConfiguration"]


class RestartStrategyConfiguration(ABC):
    """A description of a restart strategy."""

    @abstractmethod
    def get_description(self) -> str: ...


@dataclass(frozen=True)
class NoRestart(RestartStrategyConfiguration):
    """The first failure fails the job."""

    def get_description(self) -> str:
        return "Restarts are off: the first failure fails the job."


@dataclass(frozen=True)
class FallbackRestart(RestartStrategyConfiguration):
    """Whatever the job's configuration says."""

    def get_description(self) -> str:
        return "Restarts as configured by restart-strategy.type."


@dataclass(frozen=True)
class FixedDelayRestart(RestartStrategyConfiguration):
    """A number of restarts over the job's whole life, the same time after each failure."""

    restart_attempts: int
    delay_ms: int

    def __post_init__(self) -> None:
        _at_least("restart_attempts", self.restart_attempts, 0)

    def get_restart_attempts(self) -> int:
        return self.restart_attempts

    def get_delay_between_attempts_interval(self) -> timedelta:
        return timedelta(milliseconds=self.delay_ms)

    def get_description(self) -> str:
        return f"Restarts at most {self.restart_attempts} times, {self.delay_ms} ms after each failure."


@dataclass(frozen=True)
class FailureRateRestart(RestartStrategyConfiguration):
    """Restarts as long as failures stay rare enough."""

    max_failure_rate: int
    failure_interval_ms: int
    delay_ms: int

    def __post_init__(self) -> None:
        _at_least("failure_rate", self.max_failure_rate, 1)

    def get_max_failure_rate(self) -> int:
        return self.max_failure_rate

    def get_failure_interval(self) -> timedelta:
        return timedelta(milliseconds=self.failure_interval_ms)

    def get_delay_between_attempts_interval(self) -> timedelta:
        return timedelta(milliseconds=self.delay_ms)

    def get_description(self) -> str:
        return (
            f"Restarts {self.delay_ms} ms after each failure, "
            f"up to {self.max_failure_rate} failures in {self.failure_interval_ms} ms."
        )


@dataclass(frozen=True)
class ExponentialDelayRestart(RestartStrategyConfiguration):
    """Restarts for ever, waiting longer after each failure until the job has run quietly for a while."""

    initial_backoff_ms: int
    max_backoff_ms: int
    backoff_multiplier: float
    reset_backoff_threshold_ms: int
    jitter_factor: float

    def __post_init__(self) -> None:
        _at_least("initial_backoff", self.initial_backoff_ms, 1)
        _at_least("max_backoff", self.max_backoff_ms, self.initial_backoff_ms)
        _at_least("backoff_multiplier", self.backoff_multiplier, 1)
        _at_least("reset_backoff_threshold", self.reset_backoff_threshold_ms, 1)
        if not 0 <= self.jitter_factor <= 1:
            raise ValueError(f"jitter_factor must be between 0 and 1, not {self.jitter_factor}")

    def get_initial_backoff(self) -> timedelta:
        return timedelta(milliseconds=self.initial_backoff_ms)

    def get_max_backoff(self) -> timedelta:
        return timedelta(milliseconds=self.max_backoff_ms)

    def get_backoff_multiplier(self) -> float:
        return self.backoff_multiplier

    def get_reset_backoff_threshold(self) -> timedelta:
        return timedelta(milliseconds=self.reset_backoff_threshold_ms)

    def get_jitter_factor(self) -> float:
        return self.jitter_factor

    def get_description(self) -> str:
        return (
            f"Restarts {self.initial_backoff_ms} ms after a failure, "
            f"each time {self.backoff_multiplier} times longer up to {self.max_backoff_ms} ms "
            f"(jitter {self.jitter_factor}), "
            f"from the start again after {self.reset_backoff_threshold_ms} ms without a failure."
        )


class RestartStrategies:
    """Factories for the strategies. Durations are milliseconds, timedeltas, or texts such as `"10 s"`."""

    NoRestartStrategyConfiguration = NoRestart
    FallbackRestartStrategyConfiguration = FallbackRestart
    FixedDelayRestartStrategyConfiguration = FixedDelayRestart
    FailureRateRestartStrategyConfiguration = FailureRateRestart
    ExponentialDelayRestartStrategyConfiguration = ExponentialDelayRestart

    @staticmethod
    def no_restart() -> NoRestart:
        return NoRestart()

    @staticmethod
    def fall_back_restart() -> FallbackRestart:
        return FallbackRestart()

    @staticmethod
    def fixed_delay_restart(restart_attempts: int, delay_between_attempts: DurationLike) -> FixedDelayRestart:
        return FixedDelayRestart(restart_attempts, parse_duration_ms(delay_between_attempts))

    @staticmethod
    def failure_rate_restart(
        failure_rate: int, failure_interval: DurationLike, delay_interval: DurationLike
    ) -> FailureRateRestart:
        return FailureRateRestart(failure_rate, parse_duration_ms(failure_interval), parse_duration_ms(delay_interval))

    @staticmethod
    def exponential_delay_restart(
        initial_backoff: DurationLike = "1 s",
        max_backoff: DurationLike = "1 min",
        backoff_multiplier: float = 1.5,
        reset_backoff_threshold: DurationLike = "1 h",
        jitter_factor: float = 0.1,
    ) -> ExponentialDelayRestart:
        return ExponentialDelayRestart(
            parse_duration_ms(initial_backoff),
            parse_duration_ms(max_backoff),
            backoff_multiplier,
            parse_duration_ms(reset_backoff_threshold),
            jitter_factor,
        )


def _at_least(name: str, value: float, least: float) -> None:
    if value < least:
        raise ValueError(f"{name} must be at least {least}, not {value}")
