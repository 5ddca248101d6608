import copy
import pickle
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import pytest

from firesteel.common import Row, RowKind
from firesteel.datastream.fields import FieldSelector
from firesteel.datastream.rolling import rolling_max, rolling_max_by, rolling_min, rolling_min_by, rolling_sum


class Reading(NamedTuple):
    key: str
    n: int
    note: str


@dataclass(frozen=True)
class Frozen:
    key: str
    n: int
    note: str


@dataclass
class Plain:
    key: str
    n: int
    note: str


RECORDS = [("a", 3, "x"), ("a", 1, "y"), ("a", 2, "z"), ("a", 1, "w")]
EXPECTED = {  # as PyFlink 2.3 gives for RECORDS
    rolling_sum: [("a", 3, "x"), ("a", 4, "x"), ("a", 6, "x"), ("a", 7, "x")],
    rolling_min: [("a", 3, "x"), ("a", 1, "x"), ("a", 1, "x"), ("a", 1, "x")],
    rolling_max: [("a", 3, "x"), ("a", 3, "x"), ("a", 3, "x"), ("a", 3, "x")],
    rolling_min_by: [("a", 3, "x"), ("a", 1, "y"), ("a", 1, "y"), ("a", 1, "y")],
    rolling_max_by: [("a", 3, "x"), ("a", 3, "x"), ("a", 3, "x"), ("a", 3, "x")],
}


def updates(function, records):
    results = [records[0]]
    for record in records[1:]:
        results.append(function.reduce(results[-1], record))
    return results


def row(key, n, note):
    return Row(key=key, n=n, note=note)


@pytest.mark.parametrize("aggregate", EXPECTED)
@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda *fields: fields, 1),
        (lambda *fields: fields, -2),
        (lambda *fields: list(fields), 1),
        (lambda *fields: Row(*fields), 1),
        (row, 1),
        (row, "n"),
        (Reading, 1),
        (Reading, "n"),
        (lambda key, n, note: {"key": key, "n": n, "note": note}, "n"),
        (Frozen, "n"),
        (Plain, "n"),
    ],
)
def test_aggregates_are_those_of_pyflink_for_every_kind_of_record(aggregate, make, field):
    records = [make(*fields) for fields in RECORDS]
    before = copy.deepcopy(records)
    results = updates(pickle.loads(pickle.dumps(aggregate(field))), records)
    assert results == [make(*fields) for fields in EXPECTED[aggregate]]
    assert {type(result) for result in results} == {type(records[0])}
    assert records == before  # inputs and earlier results are left as they were


@pytest.mark.parametrize(
    ("aggregate", "expected"), [(rolling_sum, 6), (rolling_min, 1), (rolling_max, 3), (rolling_min_by, 1)]
)
def test_plain_values_are_their_own_field_0(aggregate, expected):
    assert reduce(aggregate(0).reduce, [2, 1, 3]) == expected
    with pytest.raises(TypeError, match="no field 1 in"):
        aggregate(1).reduce(2, 3)


def test_a_row_keeps_its_kind():
    total = rolling_sum(0).reduce(Row.of_kind(RowKind.UPDATE_AFTER, 1), Row(2))
    assert (total.get_row_kind(), total[0]) == (RowKind.UPDATE_AFTER, 3)


def test_a_name_that_is_not_there_is_named():
    with pytest.raises(TypeError, match=r"no field 'm' in Plain\(.* of type Plain"):
        rolling_sum("m").reduce(Plain("a", 1, "x"), Plain("a", 1, "x"))


@pytest.mark.parametrize(
    ("record", "field", "message"),
    [
        (("a", 1), 5, r"no field 5 in \('a', 1\), which has 2 fields, the first of them 0"),
        (["a"], -2, r"no field -2 in \['a'\], which has 1 field, the first of them 0"),
        (Row("a", 1), 2, "no field 2 in .*, which has 2 fields"),
        (Row(word="a", n=1), "m", "no field 'm' in .*, which has the fields 'word', 'n'"),
        (Row("a"), "m", "no field 'm' in .*, which has 1 field"),
        ({"word": "a", "n": 1}, "m", "no field 'm' in .*, which has the fields 'word', 'n'"),
    ],
)
@pytest.mark.parametrize("aggregate", [rolling_sum, rolling_max_by])
def test_a_field_that_a_record_does_not_have_is_named_with_those_it_has(aggregate, record, field, message):
    with pytest.raises(TypeError, match=message):
        aggregate(field).reduce(record, record)


def test_the_first_of_equals_stays():
    first, second = (1, "first"), (1, "second")
    assert rolling_max_by(0).reduce(first, second) is rolling_min_by(0).reduce(first, second) is first


def test_a_selector_gives_the_field():
    assert FieldSelector("n")(Plain("a", 5, "x")) == FieldSelector("n")(row("a", 5, "x")) == 5


@pytest.mark.parametrize("field", [1, -2])
@pytest.mark.parametrize("rolling", [rolling_sum, rolling_min, rolling_max])
def test_a_loop_over_tuples_gives_what_reducing_them_one_by_one_does(rolling, field):
    function = rolling(field)
    records = [("a", 3, "x"), ("b", 1, "y"), ("a", 5, "z"), ("a", 2, "w"), ("b", 4, "v")]
    keys, reduced = [key for key, _, _ in records], {}
    assert function.fold_of_tuples(3)(reduced, keys, iter(records)) == 5
    assert reduced == {key: reduce(function.reduce, [each for each in records if each[0] == key]) for key in "ab"}


@pytest.mark.parametrize("field", [3, -4, "n"])
def test_there_is_no_such_loop_for_fields_that_tuples_do_not_have(field):
    assert rolling_sum(field).fold_of_tuples(3) is None
