from __future__ import annotations

from collections import deque

from hypothesis import given
from hypothesis import strategies as st

from firesteel.connectors.splits import Split, SplitPlanner, cut


def planner_of(parallelism: int, *splits: Split) -> SplitPlanner:
    pending = deque(splits)
    return SplitPlanner(parallelism, lambda: pending.popleft() if pending else None)


def test_every_subtask_gets_its_share_of_the_budget() -> None:
    planner = planner_of(2, Split("a", 0, 100), Split("b", 0, 100))
    assert [(r.subtask, r.name, r.start, r.stop) for r in planner.plan(20)] == [
        (0, "a", 0, 10),
        (1, "b", 0, 10),
    ]
    assert [(r.subtask, r.name, r.start, r.stop) for r in planner.plan(4)] == [
        (0, "a", 10, 12),
        (1, "b", 10, 12),
    ]


def test_a_subtask_without_work_does_not_give_its_share_to_the_others() -> None:
    planner = planner_of(4, Split("a", 0, 100))
    assert [(r.start, r.stop) for r in planner.plan(40)] == [(0, 10)]


def test_small_splits_spread_over_all_subtasks() -> None:
    planner = planner_of(3, *(Split(str(i), 0, 1) for i in range(9)))
    planned = planner.plan(9)
    assert [sum(r.subtask == subtask for r in planned) for subtask in range(3)] == [3, 3, 3]


def test_a_budget_below_the_parallelism_starves_nobody() -> None:
    planner = planner_of(3, *(Split(str(i), 0, 10) for i in range(3)))
    served = [r.subtask for _ in range(6) for r in planner.plan(1)]
    assert served == [0, 1, 2, 0, 1, 2]


def test_a_whole_split_is_one_range_whatever_the_budget() -> None:
    planner = planner_of(2, Split("a", 0, 1000, whole=True))
    assert [(r.start, r.stop) for r in planner.plan(1)] == [(0, 1000)]


def test_no_budget_plans_nothing() -> None:
    planner = planner_of(1, Split("a", 0, 10))
    assert planner.plan(0) == []
    assert planner.plan(-5) == []


@given(st.lists(st.tuples(st.integers(-50, 50), st.integers(0, 30)), max_size=5), st.integers(1, 8))
def test_cutting_loses_nothing_and_makes_enough_pieces(sized: list[tuple[int, int]], parts: int) -> None:
    ranges = [(100 * i + start, 100 * i + start + size) for i, (start, size) in enumerate(sized)]
    pieces = cut(ranges, parts)
    assert [n for start, stop in pieces for n in range(start, stop)] == [n for r in ranges for n in range(*r)]
    assert all(start < stop for start, stop in pieces)
    assert len(pieces) >= min(parts, sum(size for _, size in sized))


def test_one_range_is_cut_evenly() -> None:
    assert list(cut([(0, 10)], 4)) == [(0, 2), (2, 5), (5, 7), (7, 10)]
