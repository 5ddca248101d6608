"""What each format says about bad data, and what its options do."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow
import pyarrow.parquet
import pytest

from firesteel.common.typeinfo import Types
from firesteel.common.types import Row
from firesteel.datastream.connectors.file_system import (
    CsvReaderFormat,
    FileFormat,
    FileReadError,
    FileSource,
    JsonLinesFormat,
    ParquetColumnarRowInputFormat,
    StreamFormat,
)
from firesteel.errors import ConfigurationError
from tests.connectors.connector_reading import ReadingJob


def read(path: Path, form: Any, budget: int = 1 << 20) -> list[Any]:
    return ReadingJob(FileSource.for_record_stream_format(form, str(path)).build()).run(budget)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "input"


class TestTextLines:
    def test_other_charsets_are_decoded(self, file: Path) -> None:
        file.write_bytes("né\nçà".encode("latin-1"))
        assert read(file, StreamFormat.text_line_format("ISO-8859-1")) == ["né", "çà"]

    def test_a_byte_order_mark_is_data_in_other_charsets(self, file: Path) -> None:
        file.write_bytes(b"\xef\xbb\xbfa")
        assert read(file, StreamFormat.text_line_format("latin-1")) == ["ï»¿a"]

    def test_bad_bytes_are_named_with_their_place(self, file: Path) -> None:
        file.write_bytes(b"fine\nbad \xff here\n")
        with pytest.raises(
            FileReadError, match=r"input' at byte 5: byte 4 of it is not utf-8.*begins b'bad \\xff here'"
        ):
            read(file, StreamFormat.text_line_format())

    @pytest.mark.parametrize("charset", ["utf-16", "utf-32-le", "cp037", "no-such-charset", "hex"])
    def test_charsets_without_one_byte_newlines_are_refused(self, charset: str) -> None:
        with pytest.raises(ConfigurationError, match=charset):
            StreamFormat.text_line_format(charset)

    @pytest.mark.parametrize("name", ["a.gz", "a.csv.bz2", "a.zst"])
    def test_compressed_files_are_refused_when_the_job_starts(self, tmp_path: Path, name: str) -> None:
        (tmp_path / name).touch()
        with pytest.raises(ConfigurationError, match="compressed"):
            read(tmp_path, StreamFormat.text_line_format())


class TestJsonLines:
    @pytest.mark.parametrize("bad", ['{"a": ', "nonsense", '{"a": 1} {}', "[" * 100_000])
    def test_bad_lines_are_named_with_their_place(self, file: Path, bad: str) -> None:
        file.write_text(f'{{"a": 1}}\r\n\n{bad}\n')
        with pytest.raises(FileReadError, match=r"input' at byte 11: .*JSON.* begins b'"):
            read(file, JsonLinesFormat())

    def test_any_json_value_is_a_record(self, file: Path) -> None:
        file.write_text('{"a": [1, {"b": null}]}\n[1]\n 2 \n"x"')
        assert read(file, JsonLinesFormat()) == [{"a": [1, {"b": None}]}, [1], 2, "x"]


class TestCsv:
    def test_records_are_tuples_of_text_by_default(self, file: Path) -> None:
        file.write_text('a,"b,""c"\n\n1,2,3\n')
        assert read(file, CsvReaderFormat()) == [("a", 'b,"c'), ("1", "2", "3")]

    def test_a_header_names_the_columns_that_are_chosen(self, file: Path) -> None:
        file.write_text("\ufeffid,at,temp\r\nx,1,2.5\r\ny,2,3.5\r\n")
        form = CsvReaderFormat(["temp", "id"], [float, str], header=True)
        assert read(file, form, budget=10) == [(2.5, "x"), (3.5, "y")]

    def test_a_header_without_columns_gives_all_of_them(self, file: Path) -> None:
        file.write_text("id,temp\nx,2.5\n")
        assert read(file, CsvReaderFormat(header=True)) == [("x", "2.5")]

    @pytest.mark.parametrize("multiline", [False, True])
    def test_a_row_type_makes_rows_with_typed_fields(self, file: Path, multiline: bool) -> None:
        file.write_text("x,1,true,1.50,2024-02-29\n")
        types = [Types.STRING(), Types.LONG(), Types.BOOLEAN(), Types.BIG_DEC(), Types.SQL_DATE()]
        row_type = Types.ROW_NAMED(["id", "n", "ok", "price", "day"], types)
        rows = read(file, CsvReaderFormat(row_type=row_type, multiline=multiline))
        assert rows == [Row(id="x", n=1, ok=True, price=Decimal("1.50"), day=datetime.date(2024, 2, 29))]
        assert rows[0].day.year == 2024

    def test_the_null_value_becomes_none(self, file: Path) -> None:
        file.write_text("1,a\n\\N,\\N\n")
        assert read(file, CsvReaderFormat(types=[int, str], null_value="\\N")) == [(1, "a"), (None, None)]

    def test_delimiter_and_quote_can_be_chosen(self, file: Path) -> None:
        file.write_text("1;'a;b'\n")
        assert read(file, CsvReaderFormat(delimiter=";", quote="'")) == [("1", "a;b")]

    @pytest.mark.parametrize("multiline", [False, True])
    @pytest.mark.parametrize(
        ("bad", "reason"),
        [("x,2", "invalid literal"), ("1", "1 fields instead of 2"), ('1,"a"b', "expected after")],
    )
    def test_bad_records_are_named_with_their_place(self, file: Path, multiline: bool, bad: str, reason: str) -> None:
        file.write_text(f"a,b\n1,2\n\n{bad}\n3,4\n")
        with pytest.raises(FileReadError, match=f"input' at byte 9: .*{reason}.* begins"):
            read(file, CsvReaderFormat(["a", "b"], [int, str], header=True, multiline=multiline))

    def test_a_quoted_newline_says_how_to_read_it(self, file: Path) -> None:
        file.write_text('1,2\n"a\nb",2\n')
        with pytest.raises(FileReadError, match=r"at byte 4: .*multiline=True.* begins b'\"a'"):
            read(file, CsvReaderFormat())
        assert read(file, CsvReaderFormat(multiline=True)) == [("1", "2"), ("a\nb", "2")]

    def test_bad_bytes_in_a_multiline_file_are_named_with_their_place(self, file: Path) -> None:
        file.write_bytes(b"1,2\n\xff,2\n")
        with pytest.raises(FileReadError, match="at byte 4: "):
            read(file, CsvReaderFormat(multiline=True))

    def test_long_fields_are_read(self, file: Path) -> None:
        file.write_text("x" * 1_000_000 + "\n")
        assert len(read(file, CsvReaderFormat())[0][0]) == 1_000_000

    def test_a_header_without_the_column_is_named(self, file: Path) -> None:
        file.write_text("id,temp\nx,2.5\n")
        with pytest.raises(FileReadError, match=r"no column time.*\['id', 'temp'\]"):
            read(file, CsvReaderFormat(["time"], header=True))
        with pytest.raises(FileReadError, match="2 columns for 1 types"):
            read(file, CsvReaderFormat(types=[int], header=True))

    def test_bad_settings_are_refused(self) -> None:
        row_type = Types.ROW_NAMED(["a"], [Types.INT()])
        with pytest.raises(ConfigurationError, match="either"):
            CsvReaderFormat(["a"], row_type=row_type)
        with pytest.raises(ConfigurationError, match="2 columns but 1 types"):
            CsvReaderFormat(["a", "b"], [int])
        with pytest.raises(ConfigurationError, match="cannot be read as"):
            CsvReaderFormat(types=[Types.LIST(Types.INT())])
        with pytest.raises(ConfigurationError, match="row_type"):
            CsvReaderFormat(row_type=Types.INT())  # type: ignore[arg-type]


class TestParquet:
    def write(self, file: Path, rows: int = 10, group: int = 5) -> None:
        table = pyarrow.table({"id": [f"s{i}" for i in range(rows)], "n": range(rows), "temp": [0.5] * rows})
        pyarrow.parquet.write_table(table, file, row_group_size=group)

    def test_all_columns_come_in_the_files_order_by_default(self, file: Path) -> None:
        self.write(file, 2)
        assert read(file, ParquetColumnarRowInputFormat()) == [("s0", 0, 0.5), ("s1", 1, 0.5)]

    def test_a_column_may_be_asked_for_twice(self, file: Path) -> None:
        self.write(file, 1)
        assert read(file, ParquetColumnarRowInputFormat(columns=["n", "id", "n"])) == [(0, "s0", 0)]

    def test_a_row_type_makes_rows(self, file: Path) -> None:
        self.write(file, 1)
        row_type = Types.ROW_NAMED(["temp", "id"], [Types.DOUBLE(), Types.STRING()])
        assert read(file, ParquetColumnarRowInputFormat(row_type)) == [Row(temp=0.5, id="s0")]

    def test_nested_values_become_lists_and_dicts(self, file: Path) -> None:
        pyarrow.parquet.write_table(pyarrow.table({"a": [{"b": [1, 2]}], "c": [None]}), file)
        assert read(file, ParquetColumnarRowInputFormat(columns=["c", "a"])) == [(None, {"b": [1, 2]})]

    def test_no_row_group_is_decoded_twice_when_epochs_end_within_it(self, file: Path) -> None:
        self.write(file, rows=20, group=10)
        job = ReadingJob(FileSource.for_bulk_file_format(ParquetColumnarRowInputFormat(), str(file)).build())
        decoded = pyarrow.parquet.ParquetFile.read_row_group
        with mock.patch.object(
            pyarrow.parquet.ParquetFile, "read_row_group", autospec=True, side_effect=decoded
        ) as decode:
            assert len(job.run(budget=3)) == 20
        assert [call.args[1] for call in decode.call_args_list] == [0, 1]

    def test_batches_have_the_size_asked_for(self, file: Path) -> None:
        self.write(file)
        reader = ParquetColumnarRowInputFormat(batch_size=2).open(str(file), file.stat().st_size)
        assert [len(chunk) for chunk in reader.read(1, 9)] == [2, 2, 2, 2]

    def test_a_truncated_file_is_named(self, file: Path) -> None:
        self.write(file)
        file.write_bytes(file.read_bytes()[:-10])
        with pytest.raises(FileReadError, match=r"input' is not a complete Parquet file: .*begins b'PAR1"):
            read(file, ParquetColumnarRowInputFormat())

    def test_damaged_rows_are_named(self, file: Path) -> None:
        self.write(file, rows=1000, group=500)
        job = ReadingJob(FileSource.for_bulk_file_format(ParquetColumnarRowInputFormat(), str(file)).build())
        job.epoch(500)
        content = bytearray(file.read_bytes())
        middle = pyarrow.parquet.read_metadata(file).row_group(1).column(0).dictionary_page_offset
        content[middle : middle + 200] = b"\xff" * 200
        file.write_bytes(content)
        with pytest.raises(FileReadError, match=r"cannot read rows 500 to 999 of .*input"):
            job.epoch(500)

    def test_a_missing_column_is_named_with_those_there_are(self, file: Path) -> None:
        self.write(file)
        with pytest.raises(FileReadError, match=r"no column time; its columns are id, n, temp"):
            read(file, ParquetColumnarRowInputFormat(columns=["id", "time"]))

    def test_bad_settings_are_refused(self) -> None:
        with pytest.raises(ConfigurationError, match="either"):
            ParquetColumnarRowInputFormat(Types.ROW_NAMED(["a"], [Types.INT()]), ["a"])
        with pytest.raises(ConfigurationError, match="columns"):
            ParquetColumnarRowInputFormat(columns=[])
        with pytest.raises(ConfigurationError, match="columns"):
            ParquetColumnarRowInputFormat(columns="id")
        with pytest.raises(ConfigurationError, match="batch_size"):
            ParquetColumnarRowInputFormat(batch_size=0)


def test_formats_are_open_to_users() -> None:
    assert issubclass(StreamFormat, FileFormat)
