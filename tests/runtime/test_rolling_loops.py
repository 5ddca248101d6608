"""Loops that are written out for tuples of one length give what the function itself gives."""

from __future__ import annotations

from operator import itemgetter
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.common import Row
from firesteel.datastream.rolling import rolling_max, rolling_min, rolling_sum
from firesteel.graph.keys import KeyGroups
from firesteel.runtime.rolling import Rolling, TupleLength
from firesteel.state.hashmap import HashMapValueTable

FUNCTIONS = st.sampled_from([rolling_sum(1), rolling_min(1), rolling_max(1)])
RECORDS = st.builds(
    lambda kind, key, number: kind(key, number),
    st.sampled_from([lambda *pair: pair, lambda *pair: (*pair, pair[1]), lambda *pair: list(pair), Row]),
    st.integers(0, 3),
    st.integers(-9, 9),
)
PAIRS = st.tuples(st.integers(0, 3), st.integers(-9, 9))


def first(record: Any) -> Any:
    return record[0]


def rolling_of(function: Any, table: HashMapValueTable, key_of: Any) -> Rolling:
    return Rolling(function, table, key_of, table.fold(SimpleNamespace(key=None), key_of, function.reduce))


def has_loop(function: Any, table: HashMapValueTable, batch: list[Any]) -> bool:
    rolling = rolling_of(function, table, first)
    rolling.roll(batch, iter(batch))
    return rolling._loop is not None


def checked(function: Any, batches: list[list[Any]], loaded: dict[Any, Any], deleted: list[Any]) -> int:
    """Compare with a plain dict; in how many batches there was a loop."""
    table, expected = HashMapValueTable(KeyGroups(128)), dict(loaded)
    table.load(list(loaded), list(loaded.values()), [])
    for key in deleted:
        table.delete(key)
        expected.pop(key, None)
    rolling = rolling_of(function, table, first)
    loops = 0
    for number, batch in enumerate(batches, 1):
        results = []
        for record in batch:
            before = expected.get(record[0])
            expected[record[0]] = record if before is None else function.reduce(before, record)
            results.append(expected[record[0]])
        made = rolling.roll(batch, iter(batch))
        loops += rolling._loop is not None
        assert list(map(repr, made)) == list(map(repr, results))
        table.barrier(number)
        assert {key: repr(value) for key, value in table.scan()} == {
            key: repr(value) for key, value in expected.items()
        }
    return loops


@given(FUNCTIONS, st.lists(st.lists(RECORDS, min_size=1, max_size=5), max_size=5), st.lists(RECORDS))
def test_records_of_all_kinds(function: Any, batches: list[list[Any]], before: list[Any]) -> None:
    checked(function, batches, {record[0]: record for record in before}, [])


@given(FUNCTIONS, st.lists(st.lists(PAIRS, min_size=1), max_size=5), st.lists(PAIRS), st.lists(st.integers(0, 3)))
def test_pairs_have_a_loop(function: Any, batches: list[list[Any]], before: list[Any], deleted: list[Any]) -> None:
    assert checked(function, batches, {pair[0]: pair for pair in before}, deleted) == len(batches)


@pytest.mark.parametrize("other", [(1, 2, 3), [1, 2], Row(1, 2), None])
def test_what_a_checkpoint_had_counts(other: Any) -> None:
    table = HashMapValueTable(KeyGroups(128))
    table.load([1, 2], [(1, 2), other], [])
    assert not has_loop(rolling_sum(1), table, [(3, 3)])


def test_no_loop_for_fields_that_tuples_do_not_have() -> None:
    table = HashMapValueTable(KeyGroups(128))
    assert has_loop(rolling_sum(1), table, [(1, 2)])
    assert not has_loop(rolling_sum(2), table, [(2, 2)])
    assert not has_loop(rolling_sum("f1"), table, [(3, 2)])


@pytest.mark.parametrize("other", [(1, 2, 3), (1,), [1, 2], Row(1, 2)])
def test_the_loop_ends_for_good_at_the_first_record_of_another_kind(other: Any) -> None:
    table = HashMapValueTable(KeyGroups(128))
    rolling = rolling_of(rolling_sum(0), table, first)
    pairs = [(7, 2), (8, 3)]
    assert rolling.roll(pairs, iter(pairs)) == pairs
    mixed = [(7, 4), other, (8, 5)]
    assert rolling.roll(mixed, iter(mixed)) == [(14, 2), other, (16, 3)]
    assert rolling._loop is None
    assert rolling.roll([other], iter([other]))[0][0] == 2


@pytest.mark.parametrize(
    "key_of", [itemgetter(0), itemgetter(-2), itemgetter(0, 1), itemgetter(slice(1)), lambda pair: pair[0]]
)
def test_keys_of_all_kinds(key_of: Any) -> None:
    table, pairs = HashMapValueTable(KeyGroups(128)), [(7, 2), (8, 3), (7, 2)]
    assert rolling_of(rolling_sum(1), table, key_of).roll(pairs, iter(pairs)) == [(7, 2), (8, 3), (7, 4)]
    assert [key for key, _ in table.scan()] == [key_of(pair) for pair in pairs[:2]]


def test_one_length_as_long_as_there_is_no_other() -> None:
    length = TupleLength()
    assert length.of([]) is None
    assert length.of([(1, 2), (3, 4)]) == 2
    assert length.of([]) == 2
    assert length.of([(5, 6)]) == 2
    assert length.of([(5, 6), (7,)]) is None
    assert length.of([(5, 6)]) is None
