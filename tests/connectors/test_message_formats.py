"""JSON, CSV and Avro messages: what goes in comes out, and what does not fit says where."""

from __future__ import annotations

import datetime
import decimal
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.common import Row, Types
from firesteel.datastream.formats.avro import AvroRowDeserializationSchema, AvroRowSerializationSchema
from firesteel.datastream.formats.csv import CsvRowDeserializationSchema, CsvRowSerializationSchema
from firesteel.datastream.formats.json import JsonRowDeserializationSchema, JsonRowSerializationSchema
from firesteel.errors import ConfigurationError, TypeMismatchError

READING = Types.ROW_NAMED(
    ["sensor", "value", "n", "ok"], [Types.STRING(), Types.DOUBLE(), Types.LONG(), Types.BOOLEAN()]
)
SCHEMA = """{"type": "record", "name": "Reading", "fields": [
    {"name": "sensor", "type": "string"}, {"name": "value", "type": "double"}, {"name": "n", "type": "long"},
    {"name": "ok", "type": ["null", "boolean"]}]}"""

rows = st.builds(
    lambda *values: Row(sensor=values[0], value=values[1], n=values[2], ok=values[3]),
    st.text(st.characters(exclude_categories=("Cs",))).filter(lambda text: "\x00" not in text),
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-(2**63), 2**63 - 1),
    st.booleans(),
)


def json_schema(**flags: bool) -> JsonRowDeserializationSchema:
    builder = JsonRowDeserializationSchema.builder().type_info(READING)
    for flag in flags:
        getattr(builder, flag)()
    return shipped(builder.build())


def shipped(schema: Any) -> Any:
    return pickle.loads(pickle.dumps(schema))


PAIRS = {
    "json": (JsonRowSerializationSchema.builder().with_type_info(READING).build(), json_schema()),
    "csv": (
        CsvRowSerializationSchema.Builder(READING).build(),
        CsvRowDeserializationSchema.Builder(READING).build(),
    ),
    "avro": (
        AvroRowSerializationSchema(avro_schema_string=SCHEMA),
        AvroRowDeserializationSchema(avro_schema_string=SCHEMA),
    ),
}


@pytest.mark.parametrize("form", PAIRS)
@given(row=rows)
def test_what_is_written_is_read(form: str, row: Row) -> None:
    writing, reading = PAIRS[form]
    assert shipped(reading).deserialize(shipped(writing).serialize(row)).as_dict() == row.as_dict()


def test_json_has_every_type_that_rows_have() -> None:
    kind = Types.ROW_NAMED(
        ["day", "at", "price", "tags", "inner", "counts", "raw", "missing"],
        [
            Types.SQL_DATE(), Types.SQL_TIMESTAMP(), Types.BIG_DEC(), Types.LIST(Types.STRING()),
            Types.ROW_NAMED(["a"], [Types.INT()]), Types.MAP(Types.STRING(), Types.LONG()),
            Types.PRIMITIVE_ARRAY(Types.BYTE()), Types.STRING(),
        ],
    )  # fmt: skip
    row = Row(
        day=datetime.date(2024, 2, 29), at=datetime.datetime(2024, 2, 29, 12, 30), price=decimal.Decimal("1.50"),
        tags=["x", "y"], inner=Row(a=1), counts={"k": 2}, raw=b"\x00\xff", missing=None,
    )  # fmt: skip
    message = JsonRowSerializationSchema.builder().with_type_info(kind).build().serialize(row)
    read = JsonRowDeserializationSchema.builder().type_info(kind).build().deserialize(message)
    assert read == row


def test_json_without_a_type_is_what_it_is() -> None:
    assert JsonRowDeserializationSchema.builder().build().deserialize(b'{"a": [1, null]}') == {"a": [1, None]}
    assert JsonRowSerializationSchema.builder().build().serialize({"a": (1, None)}) == b'{"a":[1,null]}'


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        (b"{", "Expecting property name"),
        (b"[1]", "a object is declared, and not"),
        (b'{"sensor": 5}', "field 'sensor': a string is declared, and not 5"),
        (b'{"n": "5"}', "field 'n': an integer is declared, and not '5'"),
        (b'{"n": true}', "field 'n': an integer is declared, and not True"),
        (b'{"ok": 1}', "field 'ok': a boolean is declared, and not 1"),
        (b"\xff\xfe\x00", "codec can't decode"),
    ],
)
def test_json_that_does_not_fit_says_where(message: bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        json_schema().deserialize(message)
    assert json_schema(ignore_parse_errors=True).deserialize(message) is None


def test_json_fields_may_be_missing_unless_they_must_not() -> None:
    assert json_schema().deserialize(b'{"n": 1, "more": 2}') == Row(sensor=None, value=None, n=1, ok=None)
    with pytest.raises(ValueError, match="there is no field 'sensor'"):
        json_schema(fail_on_missing_field=True).deserialize(b'{"n": 1}')


def test_csv_settings() -> None:
    reading = CsvRowDeserializationSchema.Builder(READING).set_field_delimiter(";").set_quote_character("'")
    schema = shipped(reading.set_null_literal("NULL").set_allow_comments(True).build())
    assert schema.deserialize(b"'a;b';1.5;NULL;true") == Row(sensor="a;b", value=1.5, n=None, ok=True)
    assert schema.deserialize(b"# a comment") is None
    writing = CsvRowSerializationSchema.Builder(READING).set_field_delimiter(";").set_null_literal("NULL")
    assert writing.set_line_delimiter("\n").build().serialize(("a", 1.5, None, True)) == b"a;1.5;NULL;true\n"


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        (b"a,1.5", "4 fields are declared, and there are 2"),
        (b"", "4 fields are declared, and there are 0"),
        (b"a,x,1,true", "field 'value': could not convert string to float: 'x'"),
        (b"\xff", "codec can't decode"),
    ],
)
def test_csv_that_does_not_fit_says_where(message: bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        CsvRowDeserializationSchema.Builder(READING).build().deserialize(message)
    lenient = CsvRowDeserializationSchema.Builder(READING).set_ignore_parse_errors(True).build()
    assert lenient.deserialize(message) is None


def test_avro_of_another_schema_is_noticed() -> None:
    _, reading = PAIRS["avro"]
    with pytest.raises(ValueError, match="the message ends within the record"):
        reading.deserialize(b"\x02a")
    whole = PAIRS["avro"][0].serialize(("a", 1.0, 2, None))
    with pytest.raises(ValueError, match="1 bytes are left over: the message is of another schema"):
        reading.deserialize(whole + b"\x00")


def test_records_that_do_not_fit_a_schema_are_named() -> None:
    with pytest.raises(TypeMismatchError, match=r"the record .* is not of the Avro schema Reading"):
        PAIRS["avro"][0].serialize(("a", "not a number", 2, None))
    with pytest.raises(TypeMismatchError, match="has 1 fields, not 4"):
        PAIRS["json"][0].serialize(("a",))
    with pytest.raises(TypeMismatchError, match="cannot be JSON"):
        JsonRowSerializationSchema.builder().build().serialize({"a": object()})


def test_mistakes_in_schemas() -> None:
    with pytest.raises(ConfigurationError, match="this is no Avro schema"):
        AvroRowSerializationSchema(avro_schema_string='{"type": "nothing"}')
    with pytest.raises(ConfigurationError, match="has to be of a record"):
        AvroRowSerializationSchema(avro_schema_string='"string"')
    with pytest.raises(ConfigurationError, match="contradict"):
        JsonRowDeserializationSchema.builder().fail_on_missing_field().ignore_parse_errors().build()
