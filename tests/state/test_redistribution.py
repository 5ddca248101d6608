"""Operator state divided among another number of subtasks: nothing is lost, nothing is there twice, everybody agrees."""

from __future__ import annotations

from collections import Counter
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.state.files import BROADCAST, LIST, RAW, UNION
from firesteel.state.redistribution import copy_to_all, needs_others, redistribute, split_evenly, unite

PARTS = st.lists(st.lists(st.integers(0, 9), max_size=6), min_size=1, max_size=6)
COPIES = st.builds(
    lambda copy, count: [dict(copy) for _ in range(count)],
    st.dictionaries(st.integers(), st.integers(), max_size=4),
    st.integers(1, 6),
)
PARALLELISM = st.integers(1, 8)


@given(PARTS, PARALLELISM)
def test_a_split_list_keeps_every_element_and_their_order(parts: list[list[int]], parallelism: int) -> None:
    given_out = split_evenly(parts, parallelism)
    assert len(given_out) == parallelism
    assert list(chain.from_iterable(given_out)) == list(chain.from_iterable(parts))


@given(PARTS, PARALLELISM)
def test_a_split_is_even_when_the_number_of_subtasks_changes(parts: list[list[int]], parallelism: int) -> None:
    sizes = [len(part) for part in split_evenly(parts, parallelism)]
    if len(parts) != parallelism:
        assert max(sizes) - min(sizes) <= 1
        assert sizes == sorted(sizes, reverse=True)


@given(PARTS)
def test_with_as_many_subtasks_everybody_keeps_their_list(parts: list[list[int]]) -> None:
    assert split_evenly(parts, len(parts)) == parts


@given(PARTS, PARALLELISM)
def test_a_union_gives_everything_to_everybody(parts: list[list[int]], parallelism: int) -> None:
    given_out = unite(parts, parallelism)
    assert len(given_out) == parallelism
    assert all(part == list(chain.from_iterable(parts)) for part in given_out)


@given(COPIES, PARALLELISM)
def test_equal_copies_stay_equal_copies(copies: list[dict[int, int]], parallelism: int) -> None:
    assert copy_to_all(copies, parallelism) == [copies[0]] * parallelism


@given(PARTS, st.lists(PARALLELISM, max_size=4))
def test_rescaling_again_and_again_loses_nothing(parts: list[list[int]], parallelisms: list[int]) -> None:
    state = parts
    for parallelism in parallelisms:
        state = split_evenly(state, parallelism)
    assert Counter(chain.from_iterable(state)) == Counter(chain.from_iterable(parts))


def test_every_kind_has_its_rule() -> None:
    parts = [["a", "b", "c"], ["d"]]
    assert redistribute(LIST, parts, 3) == [["a", "b"], ["c"], ["d"]]
    assert redistribute(RAW, [[b"1", b"2", b"3"], []], 3) == [[b"1"], [b"2"], [b"3"]]
    assert redistribute(UNION, parts, 2) == [["a", "b", "c", "d"]] * 2
    assert redistribute(BROADCAST, [{1: 2}, {1: 2}], 1) == [{1: 2}]


@pytest.mark.parametrize("kind", [LIST, RAW, BROADCAST])
def test_only_a_union_needs_others_when_the_number_of_subtasks_stays(kind: str) -> None:
    assert not needs_others(kind, rescaled=False)
    assert needs_others(kind, rescaled=True)
    assert needs_others(UNION, rescaled=False)
