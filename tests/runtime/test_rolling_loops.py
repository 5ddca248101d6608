"""Loops that are written out for tuples of one length give what the function itself gives."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.common import Row
from firesteel.datastream.rolling import rolling_max, rolling_min, rolling_sum
from firesteel.graph.keys import KeyGroups
from firesteel.runtime.rolling import TupleLength, rolls
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


def checked(function: Any, batches: list[list[Any]], loaded: dict[Any, Any], deleted: list[Any]) -> int:
    """Compare with a plain dict; in how many batches there was a loop."""
    table, expected = HashMapValueTable(KeyGroups(128)), dict(loaded)
    table.load(list(loaded), list(loaded.values()), [])
    for key in deleted:
        table.delete(key)
        expected.pop(key, None)
    step, roll_of = table.fold(SimpleNamespace(key=None), first, function.reduce), rolls(function, table, first)
    loops = 0
    for number, batch in enumerate(batches, 1):
        roll = roll_of(batch)
        loops += roll is not None
        results = []
        for record in batch:
            before = expected.get(record[0])
            expected[record[0]] = record if before is None else function.reduce(before, record)
            results.append(expected[record[0]])
        made = [step(record) for record in batch] if roll is None else roll(iter(batch))
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
    assert rolls(rolling_sum(1), table, first)([(3, 3)]) is None


def test_no_loop_for_other_functions_or_fields() -> None:
    table = HashMapValueTable(KeyGroups(128))
    assert rolls(lambda a, b: a, table, first)([(1, 2)]) is None
    assert rolls(rolling_sum(2), table, first)([(1, 2)]) is None
    assert rolls(rolling_sum("f1"), table, first)([(1, 2)]) is None


def test_one_length_as_long_as_there_is_no_other() -> None:
    length = TupleLength()
    assert length.of([]) is None
    assert length.of([(1, 2), (3, 4)]) == 2
    assert length.of([]) == 2
    assert length.of([(5, 6)]) == 2
    assert length.of([(5, 6), (7,)]) is None
    assert length.of([(5, 6)]) is None
