"""When a checkpoint is due, and when failed ones fail the job."""

from __future__ import annotations

import pytest

from firesteel.coordinator.failure_manager import FailureManager
from firesteel.coordinator.trigger import Trigger
from firesteel.errors import CheckpointError
from firesteel.graph.settings import CheckpointSettings


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_checkpoint_is_due_when_the_interval_is_over_by_the_middle_of_the_next_epoch() -> None:
    clock = Clock()
    trigger = Trigger(CheckpointSettings(1000), clock)
    assert not trigger.due(0.2)
    clock.now += 0.89
    assert not trigger.due(0.2)
    clock.now += 0.02
    assert trigger.due(0.2)
    trigger.triggered()
    assert not trigger.due(0.2)


def test_without_an_interval_none_is_ever_due() -> None:
    assert not Trigger(CheckpointSettings(None), Clock()).due(1.0)


def test_the_minimum_pause_counts_from_the_end_of_the_last_checkpoint() -> None:
    clock = Clock()
    trigger = Trigger(CheckpointSettings(1000, min_pause_ms=5000), clock)
    clock.now += 1
    assert trigger.due(0.1)
    trigger.triggered()
    clock.now += 3
    trigger.resolved()
    clock.now += 4
    assert not trigger.due(0.1)
    clock.now += 1
    assert trigger.due(0.1)


def test_more_failures_in_a_row_than_tolerable_fail_the_job_and_a_success_starts_the_count_over() -> None:
    failures = FailureManager(1)
    failures.failed(1, "disk full")
    failures.completed()
    failures.failed(3, "disk full")
    with pytest.raises(CheckpointError, match=r"checkpoint 4 failed: disk full.* second in a row.* 1 are tolerable"):
        failures.failed(4, "disk full")


def test_when_nothing_is_said_any_number_is_tolerable() -> None:
    failures = FailureManager(None)
    for checkpoint in range(100):
        failures.failed(checkpoint, "slow")
