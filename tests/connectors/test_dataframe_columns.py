"""Records that become columns, and those that cannot."""

from __future__ import annotations

import datetime
from typing import Any

import numpy
import pyarrow
import pytest

from firesteel.common import Row
from firesteel.connectors.dataframe_columns import RecordColumns
from firesteel.errors import TypeMismatchError

SCHEMA = pyarrow.schema(
    [
        pyarrow.field("id", pyarrow.int64(), nullable=False),
        ("st", pyarrow.struct([("f", pyarrow.string())])),
        ("l", pyarrow.list_(pyarrow.int32())),
    ]
)


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ((1, "x", [1]), r"record \(1, 'x', \[1\]\) does not fit the schema: column st is struct<f: string>, .*is 'x'"),
        ((1.5, {"f": "x"}, [1]), r"column id is int64, but its value is 1.5"),
        ((True, {"f": "x"}, [1]), r"column id is int64, but its value is True"),
        ((2**70, {"f": "x"}, [1]), r"column id is int64"),
        ((None, {"f": "x"}, [1]), r"column id is int64, but its value is None \(it must not be null\)"),
        ((1, {"f": 3}, [1]), r"column st.f is string, but its value is 3 \(it is of type int\)"),
        ((1, {"f": "x"}, [1, "2"]), r"column l\[1\] is int32, but its value is '2'"),
        ((1, {"g": "x"}, []), r"column st is .*it has g, and the schema only f"),
        ((1, {"f": "x"}), r"has 2 fields, and the schema 3: id, st, l"),
        ({"id": 1, "nome": None}, r"has nome, and the schema only id, st, l"),
        (Row(id=1, l=[]), r"has no st, which the schema has"),
        (5, r"the record 5 is neither a Row, tuple, list, dict nor dataclass"),
    ],
)
def test_a_value_that_does_not_fit_names_the_record_and_the_column(record: Any, problem: str) -> None:
    with pytest.raises(TypeMismatchError, match=problem) as caught:
        RecordColumns(SCHEMA).table([(1, {"f": "x"}, [1]), record])
    assert caught.value.record == record


def test_a_column_that_a_dict_leaves_out_is_null_unless_it_must_not_be() -> None:
    columns = RecordColumns(SCHEMA)
    assert columns.table([{"id": 1}]).to_pylist() == [{"id": 1, "st": None, "l": None}]
    with pytest.raises(TypeMismatchError, match=r"column id is int64, but its value is None \(it must not be null\)"):
        columns.table([{"l": [1]}])
    with pytest.raises(TypeMismatchError, match="has no st, l, which the schema has"):
        columns.table([Row(id=1)])


def test_where_there_is_one_column_records_may_be_bare_values() -> None:
    columns = RecordColumns(pyarrow.schema([("n", pyarrow.int64())]))
    assert columns.table([1, (2,), {"n": 3}, Row(4), None, numpy.int64(6)]).to_pydict() == {"n": [1, 2, 3, 4, None, 6]}


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pyarrow.date32(), datetime.datetime(2024, 1, 1)),
        (pyarrow.timestamp("us"), datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc)),
        (pyarrow.string(), b"x"),
        (pyarrow.binary(), "x"),
        (pyarrow.list_(pyarrow.string()), "ab"),
        (pyarrow.decimal128(10, 2), 1.5),
        (pyarrow.float64(), True),
    ],
)
def test_nothing_is_silently_converted_into_something_else(kind: pyarrow.DataType, value: Any) -> None:
    with pytest.raises(TypeMismatchError, match="column c is"):
        RecordColumns(pyarrow.schema([("c", kind)])).table([(value,)])
