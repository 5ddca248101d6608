"""Everything but the driver dies: slots at their crash points, and slots, Spark's workers, its daemon and its JVM by pid."""

from __future__ import annotations

import psutil
import pytest

from tests.faults.supervisor import Arena, Driver, wait_until


@pytest.mark.parametrize(
    "point",
    [
        "slot-restore",
        "slot-mid-epoch:3",
        "slot-after-prepare-commit:3",  # two sinks: the first of the second barrier
        "slot-before-state-file:2",
        "slot-after-state-file:2",
    ],
)
def test_a_slot_killed_at_any_step_is_replaced_and_nothing_is_lost_or_repeated(arena: Arena, point: str) -> None:
    arena.finish(crash=point, once="crashed")
    assert (arena.home / "crashed").exists(), "the slot never got to its crash point"
    assert arena.newest_incarnation() == 2


def test_a_slot_killed_while_it_restores_state_is_replaced(arena: Arena) -> None:
    arena.start_and_crash("after-confirm:2")
    arena.finish(crash="slot-restore", once="crashed")
    assert (arena.home / "crashed").exists()
    assert arena.newest_incarnation() == 3


def test_a_slot_killed_at_the_final_barrier_does_not_keep_the_job_waiting(arena: Arena) -> None:
    """The epoch is over and no other follows that would fail, so the loss of the slot itself has to be noticed."""
    arena.finish(interval=600_000, **{"die-while-writing": True})
    assert arena.newest_incarnation() == 2


def _victim(driver: Driver, kind: str) -> psutil.Process:
    daemons, workers = driver.daemon_and_workers()
    found = {"slot": driver.slots, "worker": lambda: workers, "daemon": lambda: daemons, "JVM": driver.jvm}[kind]()
    assert found, f"no {kind} among {driver.family()}"
    return found[0]


def test_every_kind_of_process_may_die_while_the_job_runs(arena: Arena) -> None:
    arena.options["records"] = 12_000
    driver = arena.start()
    for kind in ("slot", "worker", "daemon", "JVM", "slot"):
        arena.wait_checkpoint(driver, after=arena.newest_incarnation() - 1)
        before, incarnation = arena.completed()[-1], arena.newest_incarnation()
        _victim(driver, kind).kill()
        if kind in ("slot", "JVM"):  # Spark may replace an idle worker or its daemon without failing a task
            arena.wait_checkpoint(driver, after=incarnation)
        wait_until(lambda b=before: arena.completed()[-1:] != [b], f"a checkpoint after the death of a {kind}")
        arena.check_so_far()
    assert driver.wait() == 0, driver.said()
    arena.check_end()


def test_when_restarts_are_used_up_the_job_fails_and_a_new_start_goes_on(arena: Arena) -> None:
    driver = arena.start("slot-mid-epoch:3", attempts=1)
    assert driver.wait() not in (0, None), driver.said()
    assert "slot" in driver.said()
    driver.wait_family_gone()
    assert list(arena.tmp.iterdir()) == []
    arena.check_so_far()
    arena.finish()
