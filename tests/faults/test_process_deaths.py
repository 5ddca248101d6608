"""Slots die where there is no checkpoint yet, or none will follow. In between, and all other processes: tests/chaos."""

from __future__ import annotations

import pytest

from tests.faults.oracle import check_windows
from tests.faults.supervisor import KEYS, RECORDS, Arena


def test_a_slot_killed_in_the_first_start_is_replaced(arena: Arena) -> None:
    arena.finish(crash="slot-restore", once="crashed")
    assert (arena.home / "crashed").exists(), "the slot never got to its crash point"
    assert arena.newest_incarnation() == 2


def test_a_slot_killed_at_the_final_barrier_does_not_keep_the_job_waiting(arena: Arena) -> None:
    """The epoch is over and no other follows that would fail, so the loss of the slot itself has to be noticed."""
    arena.finish(interval=600_000, **{"die-while-writing": True})
    assert arena.newest_incarnation() == 2


def test_when_restarts_are_used_up_the_job_fails_and_a_new_start_goes_on(arena: Arena) -> None:
    driver = arena.start("slot-mid-epoch:3", attempts=1)
    assert driver.wait() not in (0, None), driver.said()
    assert "slot" in driver.said()
    driver.wait_family_gone()
    assert list(arena.tmp.iterdir()) == []
    arena.check_so_far()
    arena.finish()


@pytest.mark.parametrize("windows", ["combined", "plain"])
def test_windows_that_a_slot_was_filling_when_it_was_killed_are_complete(arena: Arena, windows: str) -> None:
    """Combined ones are filled where their records come from, and that is what is in the checkpoint then."""
    arena.finish(crash="slot-mid-epoch:12", once="crashed", windows=windows)
    assert (arena.home / "crashed").exists(), "the slot never got to its crash point"
    assert arena.newest_incarnation() == 2
    check_windows(arena.out, RECORDS, KEYS)
