"""When a failed job is started again."""

from __future__ import annotations

from firesteel.common.restart_strategy import (
    FallbackRestart,
    FixedDelayRestart,
    NoRestart,
    RestartStrategyConfiguration,
)
from firesteel.errors import (
    ConfigurationError,
    GraphError,
    JobCancelledError,
    RestoreError,
    SerializationError,
    SupersededError,
)

_ENDLESS = FixedDelayRestart(2**31 - 1, 1000)

HOPELESS = (
    ConfigurationError,
    GraphError,
    RestoreError,
    SerializationError,
    SupersededError,
    JobCancelledError,
)
"""Failures that a restart would only meet again."""


class Restarts:
    """Counts failures and says what to do about the next one."""

    def __init__(self, strategy: RestartStrategyConfiguration, *, checkpointing: bool) -> None:
        if isinstance(strategy, FallbackRestart):  # no strategy given: endless with checkpoints, none without
            strategy = _ENDLESS if checkpointing else NoRestart()
        if not isinstance(strategy, (FixedDelayRestart, NoRestart)):
            raise ConfigurationError(
                f"restart strategy {type(strategy).__name__} is not supported in this version; use "
                f"RestartStrategies.fixed_delay_restart(attempts, delay) or no_restart()"
            )
        if not checkpointing and isinstance(strategy, FixedDelayRestart):
            strategy = NoRestart()  # as in Flink: there is nothing to start again from
        self._strategy = strategy
        self.count = 0

    def delay_s(self, failure: BaseException) -> float | None:
        """How long to wait before the next attempt, None to give up."""
        if isinstance(failure, HOPELESS) or not isinstance(self._strategy, FixedDelayRestart):
            return None
        if self.count >= self._strategy.restart_attempts:
            return None
        self.count += 1
        return self._strategy.delay_ms / 1000
