"""The driver dies by SIGKILL in its very first start, and in recoveries from recoveries.

One lineage goes through several crashes, each start recovering from the crash before it. After every crash, what is visible
must be right; at the end everything must be there once. Each step of a running checkpoint, and random moments, are
tests/chaos's.
"""

from __future__ import annotations

import pytest

from tests.faults.supervisor import Arena

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
        "after-lineage",
    ],
}


def test_without_faults_the_job_writes_what_the_oracle_expects(arena: Arena) -> None:
    arena.finish()


@pytest.mark.parametrize("points", CRASHES.values(), ids=CRASHES.keys())
def test_a_driver_killed_at_any_step_loses_and_repeats_nothing(arena: Arena, points: list[str]) -> None:
    for point in points:
        arena.start_and_crash(point)
    arena.finish()


def test_a_driver_killed_while_it_removes_an_old_checkpoint_can_be_started_again(arena: Arena) -> None:
    """Removing a directory is not atomic, so it is first given a name that nobody takes for a checkpoint's."""
    arena.start_and_crash("half-dropped:2")
    assert len(list(arena.checkpoints.glob("sensor/inc-*/dropped-chk-*"))) == 1
    arena.finish()
    assert not list(arena.checkpoints.glob("sensor/inc-*/dropped-chk-*"))
