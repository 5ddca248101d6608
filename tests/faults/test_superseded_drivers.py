"""Drivers that are stopped, replaced, and woken up again. They must change nothing, say why they end, and take
everything of theirs with them."""

from __future__ import annotations

import signal

from tests.faults import oracle
from tests.faults.supervisor import LASTING, Arena, Driver, wait_until


def _stopped_at(arena: Arena, point: str) -> Driver:
    driver = arena.start(f"{point}:stop", take_over=True, rate=LASTING)
    driver.wait_stopped()
    return driver


def _wake(zombies: dict[str, Driver]) -> None:
    for zombie in zombies.values():
        zombie.signal(signal.SIGCONT)


def _bury(zombies: dict[str, Driver]) -> None:
    """They must end as soon as they notice, with an error that says why."""
    for point, zombie in zombies.items():
        assert zombie.wait() > 0, f"stopped at {point}:\n{zombie.said()}"
        assert "superseded" in zombie.said(), f"stopped at {point}:\n{zombie.said()}"
        zombie.wait_family_gone()


def test_drivers_that_wake_after_their_successor_has_finished_change_nothing(arena: Arena) -> None:
    arena.options["records"] = 6000
    zombies = {}
    for point in ("before-metadata:2", "after-rename:2"):
        zombies[point] = _stopped_at(arena, point)
    before = arena.newest_incarnation()
    anywhere = arena.start(take_over=True, rate=LASTING)
    arena.wait_checkpoint(anywhere, after=before)
    anywhere.signal(signal.SIGSTOP)
    zombies["anywhere"] = anywhere
    successor = arena.start(take_over=True)
    assert successor.wait() == 0, successor.said()
    oracle.check_output(arena.out, 6000, arena.options["keys"])
    result = oracle.contents(arena.out)
    _wake(zombies)
    _bury(zombies)
    assert oracle.contents(arena.out) == result
    arena.check_end()


def test_drivers_that_wake_from_their_recovery_do_not_harm_their_successor(arena: Arena) -> None:
    """The successor is killed afterwards: harm to its checkpoints would show when they are needed."""
    arena.start_and_crash("after-rename:2")
    zombies = {point: _stopped_at(arena, point) for point in ("after-claim:1", "recovery-before-confirm:1")}
    before = arena.newest_incarnation()
    successor = arena.start(take_over=True, rate=LASTING)  # it must not end before the zombies have
    arena.wait_checkpoint(successor, after=before)
    wait_until(lambda: len(arena.completed()) == 1, "the successor to drop the checkpoint it started from")
    _wake(zombies)
    for zombie in zombies.values():
        zombie.wait()
    arena.check_so_far()
    arena.check_newest_checkpoint()
    _bury(zombies)
    assert successor.process.poll() is None, f"the successor was over too soon for this test:\n{successor.said()}"
    successor.kill()
    arena.finish()
