"""Unless a comment says otherwise, the expected texts were printed by PyFlink 2.3 on Java 17."""

import datetime
import decimal
import random

import numpy as np
import pytest

from firesteel.common import Instant, Row, RowKind, Types
from firesteel.common.display import to_display

T = Types


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (("a", 1), "('a', 1)"),
        ("s", "s"),
        ("it's", "it's"),
        (7, "7"),
        (1e10, "10000000000.0"),
        (True, "True"),
        (None, "None"),
        (("a", None, (1, ("x", 2.5))), "('a', None, (1, ('x', 2.5)))"),
        ([1, "b", None], "[1, 'b', None]"),
        ({"k": 1, "l": ("a", None)}, "{'k': 1, 'l': ('a', None)}"),
        (Row("a", 1), "<Row('a', 1)>"),
        (Row(n="a", m=None), "Row(n='a', m=None)"),
        (("x", Row("a", 1)), "('x', <Row('a', 1)>)"),
        (Row.of_kind(RowKind.DELETE, 1, "b"), "<Row(1, 'b')>"),
        (decimal.Decimal("1.50"), "1.50"),
        (datetime.datetime(2020, 1, 2, 3, 4, 5), "2020-01-02 03:04:05"),
        (Instant(1, 5), "Instant<1, 5>"),
        (b"bytes", "b'bytes'"),  # PyFlink fails
    ],
    ids=repr,
)
def test_undeclared_values_look_as_in_python(value, text):
    assert to_display(value) == text
    assert to_display(value, T.PICKLED_BYTE_ARRAY()) == text


@pytest.mark.parametrize(
    ("declared", "value", "text"),
    [
        (T.STRING(), "x", "x"),
        (T.BOOLEAN(), True, "true"),
        (T.LONG(), 2**40, "1099511627776"),
        (T.TUPLE([T.STRING(), T.INT()]), ("a", 1), "(a,1)"),
        (T.TUPLE([T.STRING(), T.DOUBLE(), T.BOOLEAN()]), ("a", 1e10, True), "(a,1.0E10,true)"),
        (T.TUPLE([T.ROW([T.STRING(), T.INT()]), T.INT()]), (Row("a", 1), 3), "(+I[a, 1],3)"),
        (T.TUPLE([T.LIST(T.TUPLE([T.STRING(), T.INT()]))]), ([("a", 1)],), "([(a,1)])"),
        (T.TUPLE([T.PRIMITIVE_ARRAY(T.INT()), T.BASIC_ARRAY(T.STRING())]), ([1, 2], ["a"]), "([1, 2],[a])"),
        (T.LIST(T.STRING()), ["a", "b"], "[a, b]"),
        (T.MAP(T.STRING(), T.INT()), {"a": 1, "b": 2}, "{a=1, b=2}"),
        (T.BIG_DEC(), decimal.Decimal("1.50"), "1.50"),
        (T.SQL_DATE(), datetime.date(2020, 1, 2), "2020-01-02"),
        (T.SQL_TIME(), datetime.time(3, 4, 5), "03:04:05"),
        (T.SQL_TIME(), datetime.time(3, 4, 5, 678000), "03:04:05"),  # from Java's documentation, not run
        (T.SQL_TIMESTAMP(), datetime.datetime(2020, 1, 2, 3, 4, 5, 678000), "2020-01-02 03:04:05.678"),
        (T.SQL_TIMESTAMP(), datetime.datetime(2020, 1, 2, 3, 4, 5), "2020-01-02 03:04:05.0"),
        (T.INSTANT(), Instant(1, 5_000_000), "1970-01-01T00:00:01.005Z"),
    ],
    ids=repr,
)
def test_declared_values_look_as_in_java(declared, value, text):
    assert to_display(value, declared) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.5, "1.5"),
        (100.0, "100.0"),
        (0.002, "0.002"),
        (0.0001, "1.0E-4"),
        (9999999.0, "9999999.0"),
        (10000000.0, "1.0E7"),
        (12345678.9, "1.23456789E7"),
        (5e-324, "4.9E-324"),  # from Java's documentation, not run
        (-0.0, "-0.0"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
    ],
)
def test_declared_doubles_are_in_javas_notation(value, text):
    assert to_display(value, T.DOUBLE()) == text


@pytest.mark.parametrize(  # as Java 19 and later show them: by the fewest digits that say which float it is
    ("value", "text"),
    [
        (0.1, "0.1"),
        (0.10000000149011612, "0.1"),
        (1.5, "1.5"),
        (16777216.0, "1.6777216E7"),
        (3.4028234663852886e38, "3.4028235E38"),
        (1.401298464324817e-45, "1.4E-45"),
        (-0.3, "-0.3"),
        (2.0**-44, "5.684342E-14"),
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (float("nan"), "NaN"),
        (float("inf"), "Infinity"),
        (1e39, "Infinity"),
        (7, "7.0"),
    ],
)
def test_declared_floats_have_the_digits_of_32_bits(value, text):
    assert to_display(value, T.FLOAT()) == text
    assert to_display((value, [value]), T.TUPLE([T.FLOAT(), T.PRIMITIVE_ARRAY(T.FLOAT())])) == f"({text},[{text}])"


def test_every_float_is_told_from_its_neighbours_by_as_few_digits_as_possible():
    seed = 20240607
    bits = [*range(0, 0x7F800000, 1 << 23), *random.Random(seed).choices(range(0x7F800000), k=2000)]
    for value in np.array([*bits, *(each + 1 for each in bits), *(each - 1 for each in bits if each)], "u4").view("f4"):
        shown = to_display(float(value), T.FLOAT())
        exact = np.format_float_scientific(value, unique=True, min_digits=1)
        assert np.float32(shown) == value and float(shown) == float(exact), (seed, shown, exact)


def test_an_int_declared_as_a_double_is_shown_as_a_double():
    assert to_display(1, T.DOUBLE()) == "1.0"


@pytest.mark.parametrize(
    ("declared", "value", "text"),
    [
        (T.ROW([T.STRING(), T.INT()]), Row("a", 1), "+I[a,1]"),
        (T.ROW_NAMED(["n", "m"], [T.STRING(), T.DOUBLE()]), Row(n="a", m=1.5), "+I[a,1.5]"),
        (
            T.ROW([T.STRING(), T.ROW([T.INT(), T.STRING()]), T.BOOLEAN(), T.TUPLE([T.INT(), T.STRING()])]),
            Row("a", Row(1, None), True, (1, "q")),
            "+I[a,<Row(1, None)>,True,(1, 'q')]",
        ),
        (T.ROW([T.LIST(T.STRING())]), Row(["a"]), "+I[['a']]"),
        (T.ROW([T.INT()]), Row.of_kind(RowKind.DELETE, 1), "-D[1]"),  # from PyFlink's code, not run
        (T.ROW([T.STRING(), T.INT()]), ("a", None), "+I[a,None]"),  # PyFlink fails
    ],
    ids=repr,
)
def test_declared_rows_show_their_kind_and_their_fields_as_in_python(declared, value, text):
    assert to_display(value, declared) == text


@pytest.mark.parametrize(
    ("declared", "value", "text"),
    [
        (T.TUPLE([T.STRING(), T.TUPLE([T.INT(), T.STRING()])]), ("a", (1, None)), "(a,(1,null))"),
        (T.TUPLE([T.STRING(), T.PICKLED_BYTE_ARRAY()]), ("a", ("b", 1)), "(a,('b', 1))"),
        (T.PRIMITIVE_ARRAY(T.INT()), [1, 2], "[1, 2]"),
        (T.DOUBLE(), "not a double", "not a double"),
        (T.ROW([T.INT()]), 5, "5"),
    ],
    ids=repr,
)
def test_what_pyflink_cannot_show_is_shown_all_the_same(declared, value, text):
    assert to_display(value, declared) == text
