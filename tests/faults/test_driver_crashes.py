"""The driver dies by SIGKILL: at each step of the checkpoint protocol and of recovery (DESIGN 7), and at random.

One lineage goes through several crashes, each start recovering from the crash before it. After every crash, what is visible
must be right; at the end everything must be there once.
"""

from __future__ import annotations

import os
import random
import threading

import pytest

from tests.faults.supervisor import Arena, wait_until

CRASHES = {
    "the-first-start": ["after-claim", "after-fence", "after-lineage", "after-plan"],
    "files-created-but-not-yet-written": [
        "durable-file-empty:1",  # _job
        "durable-file-empty:2",  # _start, after _job
        "durable-file-empty:2",  # _metadata, after _start
    ],
    "a-recovery-and-its-recovery": [
        "after-rename:2",
        "after-one-commit",  # of the recovery
        "recovery-before-confirm",
        "recovery-after-sweep",
        "after-fence",
        "after-lineage",
    ],
    "each-step-of-a-checkpoint": [
        "before-epoch:3",
        "after-epoch:2",
        "before-metadata:2",
        "before-rename:2",
        "after-rename:2",
        "after-one-rename:2",
        "after-one-commit:2",
        "before-confirm:2",
        "after-confirm:2",
        "between-drops:2",
        "after-drop:2",
    ],
}


def test_without_faults_the_job_writes_what_the_oracle_expects(arena: Arena) -> None:
    arena.finish()


@pytest.mark.parametrize("points", CRASHES.values(), ids=CRASHES.keys())
def test_a_driver_killed_at_any_step_loses_and_repeats_nothing(arena: Arena, points: list[str]) -> None:
    arena.options["records"] = 6000
    for point in points:
        arena.start_and_crash(point)
    arena.finish()


def test_a_driver_killed_while_it_removes_an_old_checkpoint_can_be_started_again(arena: Arena) -> None:
    """Removing a directory is not atomic, so it is first given a name that nobody takes for a checkpoint's."""
    arena.start_and_crash("half-dropped:2")
    assert len(list(arena.checkpoints.glob("sensor/inc-*/dropped-chk-*"))) == 1
    arena.finish()
    assert not list(arena.checkpoints.glob("sensor/inc-*/dropped-chk-*"))


def test_a_driver_killed_at_random_moments_loses_and_repeats_nothing(arena: Arena) -> None:
    seed = int(os.environ.get("FAULTS_SEED", random.SystemRandom().randrange(10**6)))
    print(f"FAULTS_SEED={seed}")
    chance = random.Random(seed)
    arena.options["records"] = 6000
    for _ in range(4):
        driver = arena.start()
        before = arena.newest_incarnation()
        wait_until(lambda d=driver, b=before: arena.newest_incarnation() > b or d.process.poll() is not None, "a claim")
        threading.Event().wait(chance.uniform(0, 2.5))
        driver.kill()
        arena.check_so_far()
    arena.finish()
