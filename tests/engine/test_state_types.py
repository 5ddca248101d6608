"""Which types of Spark Python's objects have, and how they become objects again. Needs no running Spark."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

import pytest

from firesteel.common import Row
from firesteel.common.typeinfo import Types
from firesteel.connectors.dataframe_columns import RecordColumns
from firesteel.datastream.window import TimeWindow
from firesteel.engine.dataframes import arrow_schema
from firesteel.engine.state_objects import maker
from firesteel.engine.state_types import declared_type, shape_of, unite
from firesteel.errors import ConfigurationError, StateError

UTC = datetime.timezone.utc


@dataclass(frozen=True)
class Point:
    x: int
    y: int


@dataclass(frozen=True)
class Other:
    x: int
    y: int


class Named(NamedTuple):
    a: int
    b: str


@dataclass
class Line:
    name: str
    ends: list[Point]
    by: dict[str, Point]


FITTING = [
    ([1, 2, None], "bigint"),
    ([2**63], "decimal(38,0)"),
    ([1.5, 2.0], "double"),
    ([True, False], "boolean"),
    (["a"], "string"),
    ([b"a"], "binary"),
    ([datetime.date(2020, 1, 2)], "date"),
    ([datetime.datetime(2020, 1, 2, 3, 4, 5, 6)], "timestamp_ntz"),
    ([datetime.datetime(2020, 1, 2, tzinfo=UTC)], "timestamp"),
    ([Decimal("1.50"), Decimal("100")], "decimal(5,2)"),
    ([(1, "a"), (2, None)], "struct<_1:bigint,_2:string>"),
    ([Row(city="Oslo", n=3)], "struct<city:string,n:bigint>"),
    ([Row("Oslo", 3)], "struct<_1:string,_2:bigint>"),
    ([Point(1, 2)], "struct<x:bigint,y:bigint>"),
    ([Named(1, "x")], "struct<a:bigint,b:string>"),
    ([TimeWindow(1, 2)], "struct<start:bigint,end:bigint>"),
    ([[1], []], "array<bigint>"),
    ([[]], "array<string>"),
    ([{"a": 1}, {}], "map<string,bigint>"),
    ([(1, (2.0, ["x"]))], "struct<_1:bigint,_2:struct<_1:double,_2:array<string>>>"),
    ([Line("l", [Point(1, 2)], {"a": Point(3, 4)})],
     "struct<name:string,ends:array<struct<x:bigint,y:bigint>>,by:map<string,struct<x:bigint,y:bigint>>>"),
    ([None], "void"),
]  # fmt: skip


@pytest.mark.parametrize(("values", "expected"), FITTING, ids=[case[1] for case in FITTING])
def test_objects_of_one_type_have_one_and_come_back_from_it_as_they_were(values: list[Any], expected: str) -> None:
    shape = shape_of(values)
    assert shape.misfit is None
    kind = shape.spark_type()
    assert kind.simpleString() == expected
    from pyspark.sql.types import IntegerType, StructField, StructType

    schema = StructType([StructField("value", kind), StructField("n", IntegerType())])
    table = RecordColumns(arrow_schema(schema)).table([(value, index) for index, value in enumerate(values)])
    pattern = next((value for value in values if value), values[0])
    make = maker(kind, pattern, pattern is not None, "value", "state 's'", "value")
    again = [make(value) for value in table.column("value").to_pylist()]
    assert again == values and [type(value) for value in again] == [type(value) for value in values]


MISFITS = [
    [1, "a"],
    [1, True],
    [1, 1.0],
    [(1, 2), (1, 2, 3)],
    [(1, "a"), ("a", 1)],
    [Point(1, 2), Other(1, 2)],
    [Row(a=1), (1,)],
    [object()],
    [{1}],
    [10**40],
    [Decimal("NaN")],
    [datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 1, tzinfo=UTC)],
    [()],
    [[1, "a"]],
]


@pytest.mark.parametrize("values", MISFITS, ids=[repr(values)[:40] for values in MISFITS])
def test_objects_of_several_types_have_none_however_they_are_split_among_processes(values: list[Any]) -> None:
    assert shape_of(values).misfit is not None
    shape = shape_of([])
    for value in values:
        shape = unite(shape, shape_of([value]))
    assert shape.misfit is not None


def test_shapes_of_parts_make_the_shape_of_the_whole() -> None:
    values = [(1, Decimal("1.5")), (2**70, None), (3, Decimal("1000.25"))]
    united = shape_of([])
    for value in values:
        united = unite(united, shape_of([value]))
    assert united.spark_type() == shape_of(values).spark_type()
    assert united.spark_type().simpleString() == "struct<_1:decimal(38,0),_2:decimal(6,2)>"


def test_a_struct_becomes_no_other_class_than_there_was() -> None:
    kind = shape_of([Point(1, 2)]).spark_type()
    assert maker(kind, None, False, "value", "state 's'", "value")({"x": 1, "y": 2}) == Row(x=1, y=2)
    with pytest.raises(StateError, match="cannot be told from that one"):
        maker(kind, None, True, "value", "state 's'", "value")
    with pytest.raises(StateError, match="it has the fields x, y and not a, b"):
        maker(kind, Named(1, "b"), True, "value", "state 's'", "value")


def test_types_of_firesteel_are_types_of_spark() -> None:
    declared = Types.ROW_NAMED(
        ["a", "b"], [Types.LIST(Types.STRING()), Types.MAP(Types.INT(), Types.TUPLE([Types.LONG()]))]
    )
    kind: Any = declared_type(declared, "value_type")
    assert kind.simpleString() == "struct<a:array<string>,b:map<int,struct<_1:bigint>>>"
    assert declared_type(Types.PICKLED_BYTE_ARRAY(), "value_type") is None
    assert declared_type(" Repr ", "value_type") == "repr"
    with pytest.raises(ConfigurationError, match="Spark has no type for it"):
        declared_type(Types.SQL_TIME(), "value_type")
