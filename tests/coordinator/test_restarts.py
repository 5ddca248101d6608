"""Restart strategies against a clock of the test's own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.common import RestartStrategies
from firesteel.coordinator.restarts import Restarts
from firesteel.errors import RestoreError


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def restarts(strategy: object, clock: Clock | None = None, checkpointing: bool = True) -> Restarts:
    return Restarts(strategy, checkpointing=checkpointing, clock=clock or Clock())  # type: ignore[arg-type]


def test_a_fixed_delay_gives_up_after_so_many_attempts() -> None:
    strategy = restarts(RestartStrategies.fixed_delay_restart(2, 500))
    assert [strategy.delay_s(OSError()) for _ in range(4)] == [0.5, 0.5, None, None]
    assert strategy.count == 2


def test_no_strategy_means_endless_restarts_with_checkpoints_and_none_without() -> None:
    endless = restarts(RestartStrategies.fall_back_restart())
    assert {endless.delay_s(OSError()) for _ in range(1000)} == {1.0}
    assert restarts(RestartStrategies.fall_back_restart(), checkpointing=False).delay_s(OSError()) is None


@pytest.mark.parametrize(
    "strategy",
    [
        RestartStrategies.fixed_delay_restart(3, 0),
        RestartStrategies.failure_rate_restart(3, 1000, 0),
        RestartStrategies.exponential_delay_restart(),
    ],
)
def test_without_checkpoints_nothing_is_restarted(strategy: object) -> None:
    assert restarts(strategy, checkpointing=False).delay_s(OSError()) is None


def test_a_failure_that_would_only_come_again_is_not_restarted() -> None:
    assert restarts(RestartStrategies.fall_back_restart()).delay_s(RestoreError("damaged")) is None


@given(
    allowed=st.integers(1, 5),
    gaps=st.lists(st.integers(0, 3000), min_size=1, max_size=40),
    interval=st.integers(1, 4000),
)
def test_a_failure_rate_gives_up_exactly_when_more_than_allowed_fall_into_the_interval(
    allowed: int, gaps: list[int], interval: int
) -> None:
    clock = Clock()
    strategy = restarts(RestartStrategies.failure_rate_restart(allowed, interval, 250), clock)
    failures: list[int] = []
    for gap in gaps:
        failures.append((failures[-1] if failures else 0) + gap)
        clock.now = failures[-1] / 1000
        recent = [at for at in failures[:-1] if failures[-1] - at <= interval]
        delay = strategy.delay_s(OSError())
        if len(recent) >= allowed:
            assert delay is None
            return
        assert delay == 0.25


def test_an_exponential_delay_grows_to_its_maximum_and_starts_over_after_a_quiet_time() -> None:
    clock = Clock()
    strategy = restarts(RestartStrategies.exponential_delay_restart(100, 1000, 2.0, "10 s", 0.0), clock)
    delays = []
    for _ in range(6):
        delay = strategy.delay_s(OSError())
        assert delay is not None
        delays.append(delay)
        clock.now += delay + 1
    assert delays == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    clock.now += 10
    assert strategy.delay_s(OSError()) == 0.1


def test_jitter_stays_within_its_factor_and_the_limits() -> None:
    clock = Clock()
    strategy = restarts(RestartStrategies.exponential_delay_restart(1000, 3000, 1.5, "1 h", 0.1), clock)
    delays = [strategy.delay_s(OSError()) for _ in range(200)]
    assert all(delay is not None and 1.0 <= delay <= 3.0 for delay in delays)
    assert len(set(delays)) > 50
