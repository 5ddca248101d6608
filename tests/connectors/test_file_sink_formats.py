"""Bulk formats: Parquet, CSV, JSON lines, and one's own; each as its reader reads it."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import json
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.common import Row, Types
from firesteel.connectors.base import CommitterContext, WriterContext
from firesteel.connectors.file_formats import FileFormat
from firesteel.datastream.connectors.file_system import (
    BulkWriter,
    BulkWriterFactory,
    CsvBulkWriters,
    CsvReaderFormat,
    CsvSchema,
    FileSink,
    JsonLinesBulkWriters,
    JsonLinesFormat,
    ParquetBulkWriters,
    ParquetColumnarRowInputFormat,
    RollingPolicy,
)
from firesteel.errors import ConfigurationError, TypeMismatchError

ROW = Types.ROW_NAMED(["city", "n"], [Types.STRING(), Types.LONG()])


@dataclasses.dataclass
class City:
    city: str
    n: int


def written(factory: BulkWriterFactory, directory: Path, *batches: Sequence[Any]) -> list[Path]:
    """What is visible after one checkpoint."""
    sink: FileSink = pickle.loads(pickle.dumps(FileSink.for_bulk_format(str(directory), factory).build()))
    writer = sink.create_writer(WriterContext("job", "sink", 1, 0, 1))
    try:
        for batch in batches:
            writer.write(batch)
        committables = json.loads(json.dumps(writer.prepare_commit()))
        writer.persist(committables)
    finally:
        writer.close()
    sink.create_committer(CommitterContext("job", "sink", 1)).commit(committables)
    return sorted(path for path in directory.iterdir() if not path.name.startswith("."))


def read(form: FileFormat, path: Path) -> list[Any]:
    size = path.stat().st_size
    reader = form.open(str(path), size)
    try:
        ranges = form.splits(str(path), size, 1 << 30)
        return [record for start, stop in ranges for chunk in reader.read(start, stop) for record in chunk]
    finally:
        reader.close()


FORMATS = {
    "parquet": (ParquetBulkWriters.for_row_type(ROW), ParquetColumnarRowInputFormat(ROW)),
    "csv": (CsvBulkWriters.for_schema(ROW), CsvReaderFormat(row_type=ROW, multiline=True)),
}


@pytest.mark.parametrize("name", FORMATS)
def test_records_of_any_shape_are_read_back_as_rows(tmp_path: Path, name: str) -> None:
    factory, form = FORMATS[name]
    row = Row(n=5, city="Lima")
    (path,) = written(factory, tmp_path, [("Oslo", 1), ["Rome", 2]], [Row("Bonn", 3)], [{"n": 4, "city": "Kyiv"}, row],
                      [City("Riga", 6)])  # fmt: skip
    cities = ["Oslo", "Rome", "Bonn", "Kyiv", "Lima", "Riga"]
    assert read(form, path) == [Row(city=city, n=n) for n, city in enumerate(cities, 1)]


@pytest.mark.parametrize("name", FORMATS)
@given(
    rows=st.lists(
        st.tuples(
            st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), min_size=1),
            st.integers(-(2**63), 2**63 - 1),
        ),
        min_size=1,
    )
)
def test_any_text_and_number_comes_back(
    tmp_path_factory: pytest.TempPathFactory, name: str, rows: list[tuple[str, int]]
) -> None:
    factory, form = FORMATS[name]
    (path,) = written(factory, tmp_path_factory.mktemp("out"), rows)
    assert [(row.city, row.n) for row in read(form, path)] == rows


@pytest.mark.parametrize("name", [*FORMATS, "json"])
@pytest.mark.parametrize("record", [("Oslo",), {"city": "Oslo", "m": 1}, 5, ("Oslo", 1, 2)])
def test_a_record_that_does_not_fit_is_an_error_that_shows_it_and_leaves_no_file(
    tmp_path: Path, name: str, record: Any
) -> None:
    factory = JsonLinesBulkWriters.for_row_type(ROW) if name == "json" else FORMATS[name][0]
    with pytest.raises(TypeMismatchError, match="the record") as raised:
        written(factory, tmp_path, [("Bonn", 1)], [record])
    assert raised.value.record == record
    assert list(tmp_path.iterdir()) == []


# ---- Parquet


def test_every_declared_type_becomes_a_column(tmp_path: Path) -> None:
    types = {
        "s": (Types.STRING(), "x"), "b": (Types.BOOLEAN(), True), "i": (Types.INT(), 7), "f": (Types.FLOAT(), 1.5),
        "d": (Types.DOUBLE(), 0.1), "big": (Types.BIG_INT(), 10**30), "dec": (Types.BIG_DEC(), decimal.Decimal("1.25")),
        "date": (Types.SQL_DATE(), datetime.date(2024, 1, 2)),
        "ts": (Types.SQL_TIMESTAMP(), datetime.datetime(2024, 1, 2, 3, 4, 5, 6)),
        "bytes": (Types.PRIMITIVE_ARRAY(Types.BYTE()), b"\x00\xff"), "list": (Types.LIST(Types.LONG()), [1, None]),
        "map": (Types.MAP(Types.STRING(), Types.INT()), {"a": 1}),
        "row": (Types.ROW_NAMED(["p", "q"], [Types.INT(), Types.STRING()]), Row(1, "y")), "none": (Types.LONG(), None),
        "tuple": (Types.TUPLE([Types.INT(), Types.STRING()]), (2, "z")),
    }  # fmt: skip
    row_type = Types.ROW_NAMED(list(types), [kind for kind, _ in types.values()])
    record = tuple(value for _, value in types.values())
    (path,) = written(ParquetBulkWriters.for_row_type(row_type, None, True), tmp_path, [record, record])
    expected = dict(zip(types, record, strict=True))
    expected |= {"map": [("a", 1)], "row": {"p": 1, "q": "y"}, "tuple": {"f0": 2, "f1": "z"}}
    assert pyarrow.parquet.read_table(path).to_pylist() == [expected, expected]


def test_a_pyarrow_schema_says_what_types_cannot(tmp_path: Path) -> None:
    schema = pyarrow.schema([pyarrow.field("n", pyarrow.int16(), nullable=False, metadata={"unit": "m"})])
    (path,) = written(ParquetBulkWriters.for_row_type(schema, compression="zstd"), tmp_path, [(1,), (2,)])
    file = pyarrow.parquet.ParquetFile(path)
    assert file.metadata.row_group(0).column(0).compression == "ZSTD"
    assert file.read().to_pylist() == [{"n": 1}, {"n": 2}]
    with pytest.raises(TypeMismatchError, match="must not be null"):
        written(ParquetBulkWriters.for_row_type(schema), tmp_path / "b", [(None,)])


def test_many_records_become_row_groups_and_parts_of_a_size(tmp_path: Path) -> None:
    factory = ParquetBulkWriters.for_row_type(Types.ROW_NAMED(["n"], [Types.LONG()]))
    policy = RollingPolicy.default_rolling_policy(part_size=100_000)
    sink = FileSink.for_bulk_format(str(tmp_path), factory).with_rolling_policy(policy).build()
    writer = sink.create_writer(WriterContext("job", "sink", 1, 0, 1))
    for start in range(0, 200_000, 4000):
        writer.write(range(start, start + 4000))
    committables = writer.prepare_commit()
    assert len(committables) > 1
    sink.create_committer(CommitterContext("job", "sink", 1)).commit(committables)
    tables = [pyarrow.parquet.read_table(committable["final"]) for committable in committables]
    assert pyarrow.concat_tables(tables).column("n").to_pylist() == list(range(200_000))


@pytest.mark.parametrize(
    ("schema", "match"),
    [
        (Types.ROW_NAMED(["x"], [Types.PICKLED_BYTE_ARRAY()]), "Pickled.*: x"),
        (Types.ROW_NAMED(["x"], [Types.LIST(Types.SQL_TIME())]), r"TimeTypeInfo: x\[\]"),
        (pyarrow.schema([("x", pyarrow.duration("s"))]), "column x cannot be written"),
        ({"x": int}, "pyarrow schema"),
    ],
)
def test_columns_that_cannot_be_written_are_refused_when_the_sink_is_made(schema: Any, match: str) -> None:
    with pytest.raises(ConfigurationError, match=match):
        ParquetBulkWriters.for_row_type(schema)


def test_an_unknown_compression_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="compression 'rar'"):
        ParquetBulkWriters.for_row_type(ROW, compression="rar")


# ---- CSV


def test_a_csv_schema_says_how_values_are_written(tmp_path: Path) -> None:
    schema = (
        CsvSchema.builder().add_number_column("id").add_array_column("list", "#").add_array_column("more")
        .add_boolean_column("flag").add_string_column("text").set_column_separator("|").set_quote_char("'")
        .set_null_value("null").set_use_header().set_line_separator("\r\n").build()
    )  # fmt: skip
    assert len(schema) == schema.size() == 5
    (path,) = written(CsvBulkWriters.for_schema(schema), tmp_path, [(1, [1, 2], ("a", None), True, "it's a|b")], [
        (None, [], [], False, "")])  # fmt: skip
    assert path.read_bytes() == b"id|list|more|flag|text\r\n1|1#2|a;null|true|'it''s a|b'\r\nnull|||false|\r\n"


def test_a_value_that_cannot_be_written_without_quotes_is_an_error(tmp_path: Path) -> None:
    schema = CsvSchema.builder().add_string_column("a").add_string_column("b").disable_quote_char().build()
    with pytest.raises(TypeMismatchError, match=r"the record \('x,y', 'z'\) cannot be CSV"):
        written(CsvBulkWriters.for_schema(schema), tmp_path, [("x", "y"), ("x,y", "z")])
    escaped = CsvSchema.builder().add_columns_from(schema).disable_quote_char().set_escape_char("\\").build()
    (path,) = written(CsvBulkWriters.for_schema(escaped), tmp_path, [("x,y", "z")])
    assert path.read_text() == "x\\,y,z\n"


def test_bad_csv_schemas_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="at least one column"):
        CsvSchema.builder().add_string_column("a").clear_columns().build()
    with pytest.raises(ConfigurationError, match="twice"):
        CsvSchema.builder().add_string_column("a").add_number_column("a")
    with pytest.raises(ConfigurationError, match="one character"):
        CsvSchema.builder().set_column_separator("||")
    with pytest.raises(ConfigurationError, match="CsvSchema"):
        CsvBulkWriters.for_schema("a,b")  # type: ignore[arg-type]


# ---- JSON lines


def test_json_lines_are_objects_with_the_fields_of_the_row_type(tmp_path: Path) -> None:
    (path,) = written(JsonLinesBulkWriters.for_row_type(ROW), tmp_path, [("Malmö", 1), City("Bonn", 2)])
    assert path.read_text() == '{"city":"Malmö","n":1}\n{"city":"Bonn","n":2}\n'


def test_without_a_row_type_json_lines_are_what_records_are(tmp_path: Path) -> None:
    records = [
        {"a": [1, None, True]}, ("x", 1.5), Row(p=Row(1, 2), q=datetime.date(2024, 1, 2)), City("Bonn", 2), "text", b"\x00",
        decimal.Decimal("1.10"), datetime.datetime(2024, 1, 2, 3, 4),
    ]  # fmt: skip
    (path,) = written(JsonLinesBulkWriters.for_row_type(), tmp_path, records)
    assert read(JsonLinesFormat(), path) == [
        {"a": [1, None, True]}, ["x", 1.5], {"p": [1, 2], "q": "2024-01-02"}, {"city": "Bonn", "n": 2}, "text", "AA==",
        "1.10", "2024-01-02T03:04:00",
    ]  # fmt: skip


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, {(1, 2): 3}, "\ud800"])
def test_what_json_cannot_say_is_an_error(tmp_path: Path, value: Any) -> None:
    with pytest.raises(TypeMismatchError, match="cannot be JSON"):
        written(JsonLinesBulkWriters.for_row_type(), tmp_path, [[value]])


# ---- one's own


class Counting(BulkWriter):
    """A file that says how many records there were."""

    def __init__(self, out: BinaryIO) -> None:
        self.out, self.count = out, 0

    def add_element(self, element: Any) -> None:
        self.count += 1

    def finish(self) -> None:
        self.out.write(str(self.count).encode())


class CountingFactory(BulkWriterFactory):
    def create(self, out: BinaryIO) -> BulkWriter:
        return Counting(out)


def test_a_format_of_ones_own_writes_what_it_likes_when_the_file_ends(tmp_path: Path) -> None:
    (path,) = written(CountingFactory(), tmp_path, "abc", "de")
    assert path.read_text() == "5"
