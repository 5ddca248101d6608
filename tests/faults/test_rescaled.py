"""The driver dies, and the program is started again with another parallelism, over and over."""

from __future__ import annotations

from tests.faults.supervisor import Arena


def slots_of(arena: Arena) -> int:
    """How many slots the newest checkpoint is of."""
    return len(arena.metadata(arena.completed()[-1])["state"])


def test_a_job_that_is_killed_and_started_with_other_parallelisms_loses_and_repeats_nothing(arena: Arena) -> None:
    arena.options["records"] = 12_000
    for parallelism in (2, 4, 1):
        arena.start_and_crash("after-rename:2", parallelism=parallelism)  # two of its checkpoints are complete
        assert slots_of(arena) == parallelism
    assert any("part" in handle for handle in arena.metadata(arena.completed()[-1])["state"][0])
    arena.finish(parallelism=3)
    assert slots_of(arena) == 3
