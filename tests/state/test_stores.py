"""The contract of every store. New stores join the list."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.errors import StateError
from firesteel.graph.keys import KeyGroups
from firesteel.state.hashmap import HashMapStore
from firesteel.state.store import Store

STORES: list[Callable[[], Store]] = [lambda: HashMapStore(KeyGroups(128))]
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 5), st.integers()),
        st.tuples(st.just("delete"), st.integers(0, 5)),
        st.tuples(st.just("scan")),
        st.tuples(st.just("barrier")),
        st.tuples(st.just("completed")),
    ),
    max_size=40,
)


@pytest.mark.parametrize("create", STORES)
@given(operations=OPERATIONS)
def test_a_delta_on_its_base_is_the_state(create: Callable[[], Store], operations: list[tuple[Any, ...]]) -> None:
    """Whatever barriers were dropped in between: the last completed checkpoint plus the delta gives what is there."""
    table = create().table("t", "value")
    expected: dict[int, int] = {}
    base: dict[int, int] = {}
    at_barrier: dict[int, dict[int, int]] = {}
    for number, (kind, *args) in enumerate(operations):
        if kind == "put":
            table.put(*args)
            expected[args[0]] = args[1]
        elif kind == "delete":
            table.delete(args[0])
            expected.pop(args[0], None)
        elif kind == "scan":  # looking must not make the next delta forget anything
            assert dict(table.scan()) == expected
            assert len(table) == len(expected)
        elif kind == "barrier":
            puts, deleted = table.barrier(number)
            restored = {key: value for key, value in {**base, **dict(puts)}.items() if key not in deleted}
            assert restored == expected
            at_barrier[number] = dict(expected)
        elif at_barrier:
            last = max(at_barrier)
            table.completed(last)
            base = at_barrier[last]
            at_barrier = {}
    assert dict(table.scan()) == expected
    assert len(table) == len(expected)


@pytest.mark.parametrize("create", STORES)
def test_nothing_changed_means_an_empty_delta(create: Callable[[], Store]) -> None:
    table = create().table("t", "value")
    table.put(1, "a")
    table.barrier(1)
    table.completed(1)
    assert table.barrier(2) == ([], [])


@pytest.mark.parametrize("create", STORES)
def test_restored_entries_are_not_changes(create: Callable[[], Store]) -> None:
    table = create().table("t", "value")
    table.load([1, 2], ["a", "b"], [])
    table.load([2], ["c"], [1])
    assert dict(table.scan()) == {2: "c"}
    assert table.barrier(1) == ([], [])


@pytest.mark.parametrize("create", STORES)
def test_one_name_for_two_kinds_of_state_is_refused(create: Callable[[], Store]) -> None:
    store = create()
    store.table("t", "value")
    with pytest.raises(StateError, match="'t' is a value state already and cannot be a map state"):
        store.table("t", "map")


@pytest.mark.parametrize("create", STORES)
def test_a_scan_of_key_groups_gives_their_entries_and_no_others(create: Callable[[], Store]) -> None:
    store = create()
    table = store.table("t", "value")
    for number in range(500):
        table.put(f"key {number}", number)
    table.delete("key 7")
    low, high = dict(table.scan(range(40))), dict(table.scan(range(40, 128)))
    assert {**low, **high} == {f"key {number}": number for number in range(500) if number != 7}
    assert low and all(store.key_groups[key] < 40 for key in low)
