"""A small chaos run with new faults each time; `make chaos` makes a long one. And the plans themselves."""

from __future__ import annotations

import os
import random
from collections import Counter

import pytest

from tests.chaos.life import REPOSITORY
from tests.chaos.plan import DRIVER_POINTS, EACH_POINT, EVERY, OTHERS, POINTS, RECOVERY_POINTS, SERVED, WHERE, plan
from tests.chaos.run import Result, Run

FAULTS = 12
ELSEWHERE = {
    "import-before-metadata",  # a start from another job's checkpoint, which has tests of its own
    "savepoint-before-state",  # these in tests/faults/test_savepoint_deaths.py
    "merging-state",
    "savepoint-before-metadata",
    "savepoint-after-metadata",
    "savepoint-half-removed",
    "my-point",  # of a docstring
    "jdbc-before-batch-commit",  # these two promise at least once only
    "jdbc-after-batch-commit",
}


@pytest.mark.timeout(600)
def test_no_fault_of_a_random_dozen_loses_or_repeats_anything() -> None:
    seed = int(os.environ.get("CHAOS_SEED", random.SystemRandom().randrange(10**6)))
    print(f"CHAOS_SEED={seed}; the same faults again: make chaos SEED={seed} FAULTS={FAULTS}")
    result = Run(seed, FAULTS).run()
    print(result.line())
    assert result.good(), "\n".join([result.line(), *result.violations])


def test_a_seed_decides_the_plan() -> None:
    assert plan(7, 200) == plan(7, 200)
    assert plan(7, 200) != plan(8, 200)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("faults", [1, 12, 50, 200, 300])
def test_a_plan_has_as_many_faults_as_asked_for_each_where_it_can_happen(seed: int, faults: int) -> None:
    lives = plan(seed, faults)
    kinds = Counter(fault.kind for life in lives for fault in life.faults)
    firsts = Counter(fault.first for life in lives for fault in life.faults if fault.first)
    assert kinds.total() == faults
    for life in lives:
        for fault in life.faults:
            assert life.kind in WHERE.get(fault.kind, (life.kind,))
            assert not fault.first or life.kind in POINTS[fault.first]
            assert not fault.first or fault.kind not in RECOVERY_POINTS or fault.first in DRIVER_POINTS
    if faults >= 200:
        reached = kinds + firsts
        assert {kind for kind in (*POINTS, "slot-restore", "durable-file-empty") if reached[kind] < EACH_POINT} == set()
        assert {kind for kind in OTHERS if kinds[kind] < 3} == set()
        assert {life.kind for life in lives} == set(EVERY)
    if faults == FAULTS:
        assert sum(life.kind in SERVED for life in lives) == 1


def test_a_long_run_that_missed_a_crash_point_is_not_good() -> None:
    result = Result(seed=1, planned=200, faults=200, survived=200)
    result.points.update(dict.fromkeys((*POINTS, "slot-restore", "durable-file-empty"), EACH_POINT))
    assert result.good()
    result.points["after-claim"] -= 1
    assert result.rare_points() == ["after-claim"] and not result.good()
    assert Result(seed=1, planned=12, faults=12, survived=12).good()


def test_every_crash_point_of_the_engine_is_in_the_plan() -> None:
    known = {*POINTS, *OTHERS, *ELSEWHERE}
    used = set()
    for path in (REPOSITORY / "firesteel").rglob("*.py"):
        for part in path.read_text().split('crash_point("')[1:]:
            used.add(part.partition('"')[0])
    assert used - known == set()
