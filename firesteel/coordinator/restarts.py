"""When a failed job is started again."""

from __future__ import annotations

import random
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable

from firesteel.common.restart_strategy import (
    ExponentialDelayRestart,
    FailureRateRestart,
    FallbackRestart,
    FixedDelayRestart,
    NoRestart,
    RestartStrategyConfiguration,
)
from firesteel.errors import (
    ConfigurationError,
    DataLossError,
    GraphError,
    JobCancelledError,
    RestoreError,
    SerializationError,
    SupersededError,
)

_ENDLESS = FixedDelayRestart(2**31 - 1, 1000)

HOPELESS = (
    ConfigurationError,
    DataLossError,
    GraphError,
    RestoreError,
    SerializationError,
    SupersededError,
    JobCancelledError,
)
"""Failures that a restart would only meet again."""

Clock = Callable[[], float]


class Restarts:
    """Counts failures and says what to do about the next one."""

    def __init__(
        self, strategy: RestartStrategyConfiguration, *, checkpointing: bool, clock: Clock = time.monotonic
    ) -> None:
        if isinstance(strategy, FallbackRestart):  # no strategy given
            strategy = _ENDLESS
        if not checkpointing:  # as in Flink: there is nothing to start again from
            strategy = NoRestart()
        self._backoff = _backoff(strategy, clock)
        self.count = 0

    def delay_s(self, failure: BaseException) -> float | None:
        """How long to wait before the next attempt, None to give up."""
        if isinstance(failure, HOPELESS):
            return None
        delay = self._backoff.failed()
        if delay is not None:
            self.count += 1
        return delay


class _Backoff(ABC):
    @abstractmethod
    def failed(self) -> float | None:
        """The job failed now: seconds until the next attempt, None when it was the last."""


class _Never(_Backoff):
    def failed(self) -> float | None:
        return None


class _FixedDelay(_Backoff):
    def __init__(self, strategy: FixedDelayRestart) -> None:
        self._left, self._delay_s = strategy.restart_attempts, strategy.delay_ms / 1000

    def failed(self) -> float | None:
        self._left -= 1
        return self._delay_s if self._left >= 0 else None


class _FailureRate(_Backoff):
    """Gives up at one failure more than are allowed within the interval."""

    def __init__(self, strategy: FailureRateRestart, clock: Clock) -> None:
        self._strategy, self._clock = strategy, clock
        self._recent: deque[int] = deque(maxlen=strategy.max_failure_rate)

    def failed(self) -> float | None:
        now = round(self._clock() * 1000)
        full = len(self._recent) == self._recent.maxlen
        if full and now - self._recent[0] <= self._strategy.failure_interval_ms:
            return None
        self._recent.append(now)
        return self._strategy.delay_ms / 1000


class _ExponentialDelay(_Backoff):
    """Waits longer after each failure, and starts over once the job has run quietly for a while."""

    def __init__(self, strategy: ExponentialDelayRestart, clock: Clock) -> None:
        self._strategy, self._clock = strategy, clock
        self._delay_ms: float = strategy.initial_backoff_ms
        self._runs_from: float | None = None  # when the last restart began

    def failed(self) -> float | None:
        strategy, now = self._strategy, self._clock()
        if self._runs_from is not None:
            quiet_ms = (now - self._runs_from) * 1000
            if quiet_ms >= strategy.reset_backoff_threshold_ms:
                self._delay_ms = strategy.initial_backoff_ms
            else:
                self._delay_ms = min(self._delay_ms * strategy.backoff_multiplier, strategy.max_backoff_ms)
        jitter = random.uniform(-strategy.jitter_factor, strategy.jitter_factor) * self._delay_ms
        delay_ms = min(max(self._delay_ms + jitter, strategy.initial_backoff_ms), strategy.max_backoff_ms)
        self._runs_from = now + delay_ms / 1000
        return delay_ms / 1000


def _backoff(strategy: RestartStrategyConfiguration, clock: Clock) -> _Backoff:
    match strategy:
        case NoRestart():
            return _Never()
        case FixedDelayRestart():
            return _FixedDelay(strategy)
        case FailureRateRestart():
            return _FailureRate(strategy, clock)
        case ExponentialDelayRestart():
            return _ExponentialDelay(strategy, clock)
    raise ConfigurationError(f"a restart strategy comes from RestartStrategies, not {strategy!r:.200}")
