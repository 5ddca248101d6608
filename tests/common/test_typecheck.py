"""What passes was found out with PyFlink 2.3's coders; comments name the differences that are meant."""

from __future__ import annotations

import datetime
import decimal
from collections import OrderedDict, namedtuple

import numpy as np
import pytest

from firesteel.common import Instant, Row, Types
from firesteel.common.typecheck import checker
from firesteel.errors import TypeMismatchError

T = Types
Pair = namedtuple("Pair", "a b")


class MyStr(str):
    pass


DATE, TIME, MOMENT = datetime.date(2020, 1, 1), datetime.time(1), datetime.datetime(2020, 1, 1)
TUPLE = T.TUPLE([T.STRING(), T.INT()])
ROW = T.ROW([T.STRING(), T.INT()])
NAMED = T.ROW_NAMED(["word", "n"], [T.STRING(), T.INT()])


def accepts(type_info, value):
    check = checker(type_info)
    assert check is not None
    try:
        check([value])
    except TypeMismatchError:
        return False
    return True


@pytest.mark.parametrize(
    ("type_info", "values"),
    [
        (T.STRING(), ["a", MyStr("q"), np.str_("z")]),
        (T.CHAR(), ["a", "ab"]),
        (T.INT(), [1, True, np.int64(4), np.int8(4), 2**40]),  # PyFlink: 2**40 does not fit
        (T.BYTE(), [1, 300]),  # PyFlink: 300 does not fit
        (T.BIG_INT(), [1, 2**70]),
        (T.BOOLEAN(), [True, np.bool_(True), 0, 1]),
        (T.DOUBLE(), [1.5, 1, True, np.float32(1), np.float64(1), np.int64(1), decimal.Decimal("1.5")]),
        (T.FLOAT(), [1.5, 1]),
        (T.BIG_DEC(), [decimal.Decimal("1.5"), 1, np.int64(1)]),
        (T.INSTANT(), [Instant(1, 2), None]),
        (T.SQL_DATE(), [DATE, MOMENT]),
        (T.SQL_TIME(), [TIME]),
        (T.SQL_TIMESTAMP(), [MOMENT]),
        (TUPLE, [("a", 1), Pair("a", 1), ["a", 1], Row("a", 1)]),  # PyFlink: plain tuples only
        (ROW, [Row("a", 1), Row("a", None), Row(f0="a", f1=1), ("a", 1), ["a", 1]]),  # PyFlink: Rows only
        (NAMED, [Row("a", 1), Row(word="a", n=1), Row(n=1, word="a"), ("a", None)]),
        (T.LIST(T.INT()), [[], [1, 2], [1, None], (1, 2)]),  # PyFlink: no tuples
        (T.PRIMITIVE_ARRAY(T.INT()), [[1, 2]]),
        (T.PRIMITIVE_ARRAY(T.BYTE()), [b"ab", bytearray(b"ab"), [1, 2]]),  # PyFlink: bytes only
        (T.BASIC_ARRAY(T.STRING()), [["a", None]]),
        (T.OBJECT_ARRAY(ROW), [[Row("a", 1), None]]),
        (T.MAP(T.STRING(), T.INT()), [{}, {"a": 1}, {"a": None}, OrderedDict(a=1)]),
        (T.TUPLE([T.PICKLED_BYTE_ARRAY(), T.INT()]), [(object(), 1)]),
    ],
    ids=repr,
)
def test_values_of_the_declared_type_pass(type_info, values):
    assert [value for value in values if not accepts(type_info, value)] == []
    if len({type(value) for value in values}) > 1:
        checker(type_info)(values)  # also side by side in one batch


@pytest.mark.parametrize(
    ("type_info", "values"),
    [
        (T.STRING(), [None, 1, b"x"]),
        (T.INT(), [None, "1", 1.5, 2.0, decimal.Decimal(1), np.float64(2)]),  # PyFlink cuts numbers off
        (T.BOOLEAN(), [None, 2, 1.0, "true"]),  # PyFlink takes any small number
        (T.DOUBLE(), [None, "1.5"]),
        (T.BIG_DEC(), [None, "1.5", 1.5]),
        (T.SQL_DATE(), [None, "2020-01-01", TIME]),
        (T.SQL_TIME(), [None, DATE, MOMENT]),
        (T.SQL_TIMESTAMP(), [None, DATE]),
        (T.INSTANT(), [1]),
        (TUPLE, [None, ("a", None), ("a",), ("a", 1, 2), "ab", {"a": 1}]),  # PyFlink drops the third field
        (ROW, [None, Row("a"), Row("a", 1, 2), Row(x="a", y=1), {"f0": "a", "f1": 1}]),
        (NAMED, [Row(n=1, other="a"), Row("a", "b")]),
        (T.LIST(T.INT()), [None, "12", {1}, ["a"], np.array([1, 2])]),
        (T.PRIMITIVE_ARRAY(T.INT()), [[1, None]]),
        (T.MAP(T.STRING(), T.INT()), [None, {None: 1}, {"a": "b"}, [("a", 1)]]),
    ],
    ids=repr,
)
def test_values_of_another_type_do_not_pass(type_info, values):
    assert [value for value in values if accepts(type_info, value)] == []


@pytest.mark.parametrize("type_info", [None, T.PICKLED_BYTE_ARRAY()])
def test_there_is_nothing_to_check_without_a_declaration(type_info):
    assert checker(type_info) is None


@pytest.mark.parametrize("type_info", [Types.BYTE(), Types.SHORT(), Types.INT(), Types.LONG()])
def test_integers_of_any_size_pass_as_the_guide_says(type_info):
    checker(type_info)([1, -(2**31) - 1, 2**70])


def test_the_error_names_record_field_value_and_types():
    with pytest.raises(TypeMismatchError) as caught:
        checker(TUPLE)([("a", 1), ("b", "two"), ("c", None)])
    error = caught.value
    assert (error.record, error.index, error.path, error.value, error.declared) == (
        ("b", "two"), 1, "[1]", "two", T.INT(),
    )  # fmt: skip
    assert str(error).startswith(
        "field [1] of the record ('b', 'two') should be Integer, but is 'two' of Python type str"
    )
    assert "output_type" in str(error)


@pytest.mark.parametrize(
    ("type_info", "record", "path"),
    [
        (NAMED, Row("a", 1.5), ".n"),
        (T.LIST(T.INT()), [1, 2, "x"], "[2]"),
        (T.MAP(T.STRING(), T.INT()), {"a": 1, "b": "x"}, "['b']"),
        (T.MAP(T.STRING(), T.INT()), {1: 1}, "(key 1)"),
        (T.TUPLE([T.INT(), T.LIST(NAMED)]), (1, [Row("a", 1), Row("b", "x")]), "[1][1].n"),
        (T.TUPLE([T.INT(), TUPLE]), (1, ("a", 1, 2)), "[1]"),
    ],
)
def test_the_path_leads_to_the_wrong_value(type_info, record, path):
    with pytest.raises(TypeMismatchError) as caught:
        checker(type_info)([record])
    assert caught.value.path == path


def test_a_wrong_length_is_said():
    with pytest.raises(TypeMismatchError, match="with 3 fields instead of 2"):
        checker(TUPLE)([("a", 1), ("a", 1, 2)])
    with pytest.raises(TypeMismatchError, match=r"with the fields \['x', 'y'\]"):
        checker(NAMED)([Row(x="a", y=1)])


def test_a_wrong_record_is_found_behind_many_right_ones_of_mixed_types():
    records = [("a", 1), Row("b", 2), ["c", np.int64(3)]] * 1000
    checker(NAMED)(records)
    with pytest.raises(TypeMismatchError) as caught:
        checker(NAMED)([*records, ("d", "4")])
    assert caught.value.index == 3000


def test_an_empty_batch_passes():
    checker(TUPLE)([])


def test_a_type_that_was_refused_is_refused_again():
    check = checker(T.INT())
    for _ in range(2):
        with pytest.raises(TypeMismatchError):
            check([1.5])
    check([np.int32(1)])
    with pytest.raises(TypeMismatchError):
        check([np.int32(1), 1.5])
