"""Random programs: what plain Python computes, what the harness gives however it is cut and whatever fails, and what Spark
gives are the same. Every run has new programs; FIRESTEEL_DIFFERENTIAL_SEED brings those of an earlier one back."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.differential.comparing import SEED, check_in_harness, check_on_spark, describe, fresh_seed

FIRST = fresh_seed()


@pytest.fixture(autouse=True)
def _name_the_seed() -> None:
    print(f"{SEED}={FIRST}")


@pytest.mark.parametrize("group", range(4))
def test_programs_do_not_depend_on_cuts_or_failures(group: int) -> None:
    for index in range(10):
        check_in_harness(FIRST + 10 * group + index)


def test_a_larger_program_meets_many_batches_and_the_real_distance_of_watermarks() -> None:
    check_in_harness(FIRST, size=12_000, watermarks_every=4096)


@pytest.mark.parametrize(("index", "size", "checkpoints"), [(0, 200, False), (1, 200, True), (2, 10_000, True)])
def test_programs_give_the_same_on_spark(index: int, size: int, checkpoints: bool) -> None:
    check_on_spark(FIRST + index, size, checkpoints=checkpoints)


def test_one_seed_is_one_program_and_many_seeds_use_every_operator() -> None:
    assert describe(7, 100)[1].script == describe(7, 100)[1].script
    used = Counter(word for seed in range(150) for word in describe(seed, 10)[1].script)
    steps = (
        "map filter flat_map rekey spread partition_custom broadcast split union co_map co_flat_map join fail_once stamp "
        "reduce rolling five_states alarms windows co_windows rebalance rescale shuffle global_ sum min max min_by max_by"
    )
    assert not [step for step in steps.split() if used[step] < 3], used
