"""For every format: however files are cut, and wherever the job restarts, each record comes once."""

from __future__ import annotations

import codecs
import csv
import io
import json
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.common import Duration
from firesteel.connectors import file_csv, file_lines
from firesteel.connectors.base import EnumeratorContext
from firesteel.connectors.dataframe_rows import DataFrameFormat
from firesteel.connectors.file_enumerator import FileEnumerator
from firesteel.datastream.connectors.file_system import (
    CsvReaderFormat,
    FileReadError,
    FileSource,
    JsonLinesFormat,
    ParquetColumnarRowInputFormat,
    StreamFormat,
)
from firesteel.errors import ConfigurationError, RestoreError
from tests.connectors.connector_reading import ReadingJob, read_in_any_way

TEXT = StreamFormat.text_line_format()
awkward = st.text(st.sampled_from("ab ,\"'\r\x0b\x0c\x1c\x85\u2028\ufeffé日😀"), max_size=6)
fields = awkward.filter(lambda text: not text.startswith("\ufeff"))  # else a file may start with a mark
line_ends = st.sampled_from(["\n", "\r\n"])


def read_files(data: st.DataObject, form: Any, contents: list[bytes]) -> list[Any]:
    """Write the files, read them in some way, and give all records in the files' order."""
    size = max(map(len, contents), default=1)
    split_size = data.draw(st.integers(1, size + 1), "split size")
    with (
        tempfile.TemporaryDirectory() as directory,
        mock.patch.object(file_lines, "BLOCK", data.draw(st.integers(2, 40), "block")),
        mock.patch.object(file_lines, "CHUNK", data.draw(st.integers(1, 5), "chunk")),
        mock.patch.object(file_csv, "CHUNK", data.draw(st.integers(1, 5), "chunk")),
    ):
        for i, content in enumerate(contents):
            Path(directory, f"{i:03}").write_bytes(content)
        source = FileSource.for_record_stream_format(form, directory).set_split_size(split_size).build()
        job = read_in_any_way(source, data, 2 * size + 1)
    if split_size >= size:
        for path in {planned["path"] for planned, _ in job.reads}:
            starts = [planned["start"] for planned, _ in job.reads if planned["path"] == path]
            assert starts == sorted(starts)
    return job.by_position()


def lines_of(content: bytes) -> list[str]:
    """Slow and plain."""
    lines = content.removeprefix(codecs.BOM_UTF8).split(b"\n")
    ended = [line.removesuffix(b"\r") for line in lines[:-1]]
    return [line.decode() for line in ended + [last for last in lines[-1:] if last]]


@st.composite
def text_files(draw: st.DrawFn) -> bytes:
    text = "".join(draw(awkward) + draw(line_ends) for _ in range(draw(st.integers(0, 8))))
    mark = codecs.BOM_UTF8 if draw(st.booleans()) else b""
    return mark + (text + draw(awkward)).encode()


@given(st.lists(text_files(), max_size=3), st.data())
def test_every_line_comes_once(contents: list[bytes], data: st.DataObject) -> None:
    expected = [line for content in contents for line in lines_of(content)]
    assert read_files(data, TEXT, contents) == expected


json_records = st.dictionaries(awkward, st.none() | st.integers() | awkward | st.lists(awkward, max_size=2), max_size=3)


@given(st.lists(json_records | st.just(""), max_size=8), line_ends, st.booleans(), st.data())
def test_every_json_line_comes_once(records: list[Any], end: str, ended: bool, data: st.DataObject) -> None:
    # "" stands for a blank line
    text = end.join(json.dumps(record, ensure_ascii=False) if record != "" else " " for record in records)
    content = (text + end * ended).encode()
    expected = [record for record in records if record != ""]
    assert read_files(data, JsonLinesFormat(), [content]) == expected


def csv_bytes(rows: list[Any], end: str) -> bytes:
    # a lone carriage return outside of quotes is no CSV, but the writer does not quote it by itself
    lone = any("\r" in str(field) for row in rows for field in row)
    out = io.StringIO()
    csv.writer(out, lineterminator=end, quoting=csv.QUOTE_ALL if lone else csv.QUOTE_MINIMAL).writerows(rows)
    return out.getvalue().encode()


@given(
    st.lists(st.tuples(fields, st.integers(), fields), max_size=8),
    line_ends,
    st.booleans(),
    st.booleans(),
    st.data(),
)
def test_every_csv_record_comes_once(
    rows: list[tuple[str, int, str]],
    end: str,
    header: bool,
    multiline: bool,
    data: st.DataObject,
) -> None:
    form = CsvReaderFormat(["a", "b", "c"], [str, int, str], header=header, multiline=multiline)
    content = csv_bytes([("a", "b", "c")] * header + rows, end)
    assert read_files(data, form, [content, content]) == rows * 2


with_newlines = st.text(st.sampled_from('ab,"\r\n'), max_size=6)


@given(st.lists(st.tuples(with_newlines, with_newlines), max_size=8), line_ends, st.data())
def test_every_multiline_csv_record_comes_once(rows: list[tuple[str, str]], end: str, data: st.DataObject) -> None:
    form = CsvReaderFormat(multiline=True)
    assert read_files(data, form, [csv_bytes(rows, end)]) == rows


def parquet_bytes(table: pyarrow.Table, row_group_size: int) -> bytes:
    out = io.BytesIO()
    pyarrow.parquet.write_table(table, out, row_group_size=row_group_size)
    return out.getvalue()


@given(st.lists(st.integers(0, 12), max_size=3), st.integers(1, 5), st.integers(1, 6), st.data())
def test_every_parquet_row_comes_once(counts: list[int], group: int, batch: int, data: st.DataObject) -> None:
    rows = [[(i if i % 3 else None, f"{file}-{i}") for i in range(count)] for file, count in enumerate(counts)]
    contents = [
        parquet_bytes(
            pyarrow.table(
                {
                    "name": pyarrow.array([row[1] for row in file], pyarrow.string()),
                    "unused": pyarrow.array([0.5] * len(file), pyarrow.float64()),
                    "n": pyarrow.array([row[0] for row in file], pyarrow.int64()),
                }
            ),
            group,
        )
        for file in rows
    ]
    form = ParquetColumnarRowInputFormat(columns=["n", "name"], batch_size=batch)
    assert read_files(data, form, contents) == [row for file in rows for row in file]


def text_source(*paths: Path | str, split_size: int = 1 << 20) -> FileSource:
    builder = FileSource.for_record_stream_format(TEXT, *map(str, paths))
    return builder.process_static_file_set().set_split_size(split_size).build()


def test_a_large_file_is_shared_by_all_subtasks(tmp_path: Path) -> None:
    (tmp_path / "big").write_text("12345678\n" * 100)
    job = ReadingJob(text_source(tmp_path, split_size=300), parallelism=3)
    assert [len(ranges) for ranges in job.enumerator.plan(900).ranges] == [1, 1, 1]


def test_parquet_row_groups_are_shared_by_all_subtasks(tmp_path: Path) -> None:
    table = pyarrow.table({"n": list(range(100))})
    (tmp_path / "big").write_bytes(parquet_bytes(table, 10))
    form = ParquetColumnarRowInputFormat()
    source = FileSource.for_bulk_file_format(form, str(tmp_path)).set_split_size(1).build()
    job = ReadingJob(source, parallelism=4)
    assert [len(ranges) for ranges in job.enumerator.plan(40).ranges] == [1, 1, 1, 1]
    job = ReadingJob(source, parallelism=4)
    job.run(40)
    assert job.by_position() == [(n,) for n in range(100)]


def test_reading_a_range_again_gives_the_same_records(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("a\nbb\nccc\n")
    job = ReadingJob(text_source(tmp_path))
    ranges = [job.enumerator.plan(4).ranges[0][0] for _ in range(2)]
    twice = [[list(job.readers[0].read(one)) for one in ranges] for _ in range(2)]
    assert twice[0] == twice[1] == [[["a", "bb"]], [["ccc"]]]


def test_files_that_do_not_exist_are_refused_when_the_job_starts(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="nowhere"):
        ReadingJob(text_source(tmp_path / "nowhere"))


def test_empty_files_and_directories_have_no_records(tmp_path: Path) -> None:
    assert ReadingJob(text_source(tmp_path)).run() == []
    (tmp_path / "empty").touch()
    assert ReadingJob(text_source(tmp_path)).enumerator.finished()


def test_a_file_that_shrinks_under_the_reader_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("a\nb\nc\n")
    job = ReadingJob(text_source(tmp_path))
    job.epoch(2)
    (tmp_path / "f").write_text("a\n")
    with pytest.raises(FileReadError, match=r"f' had 6 bytes .* has 2 now"):
        job.epoch(2)


def test_a_file_that_vanishes_under_the_reader_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("a\n")
    job = ReadingJob(text_source(tmp_path))
    (tmp_path / "f").unlink()
    with pytest.raises(FileReadError, match="cannot open"):
        job.epoch(2)


def half_read(tmp_path: Path) -> ReadingJob:
    """One file finished, one begun, one waiting."""
    for name in "abc":
        (tmp_path / name).write_text(f"{name}1\n{name}2\n")
    job = ReadingJob(text_source(tmp_path))
    job.epoch(9)
    assert job.records() == ["a1", "a2", "b1"]
    return job


def test_a_snapshot_names_finished_files_only_by_size(tmp_path: Path) -> None:
    snapshot = half_read(tmp_path).enumerator.snapshot()
    assert snapshot == {
        "unit": "bytes",
        "finished": {str(tmp_path / "a"): 6},
        "reading": {str(tmp_path / "b"): {"size": 6, "length": 6, "left": [[3, 6]]}},
        "waiting": {str(tmp_path / "c"): 6},
        "subtasks": [f"{tmp_path / 'b'}:6"],
    }


def test_files_that_came_since_the_checkpoint_are_read(tmp_path: Path) -> None:
    job = half_read(tmp_path)
    (tmp_path / "aa").write_text("new\n")
    job.restart(1)
    assert job.run() == ["a1", "a2", "b1", "b2", "new", "c1", "c2"]  # what was begun comes first


def test_finished_files_may_be_deleted_and_stay_finished(tmp_path: Path) -> None:
    job = half_read(tmp_path)
    (tmp_path / "a").unlink()
    job.restart(1)
    (tmp_path / "a").write_text("a1\na2\n")
    job.restart(1)
    assert job.run() == ["a1", "a2", "b1", "b2", "c1", "c2"]


@pytest.mark.parametrize("name", ["a", "b"])
def test_a_file_that_changed_since_the_checkpoint_is_refused(tmp_path: Path, name: str) -> None:
    job = half_read(tmp_path)
    (tmp_path / name).write_text("x\n")
    with pytest.raises(RestoreError, match=f"/{name}' had 6 bytes and has 2 now"):
        job.restart(1)


@pytest.mark.parametrize("name", ["b", "c"])
def test_an_unread_file_that_is_gone_is_refused(tmp_path: Path, name: str) -> None:
    job = half_read(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(RestoreError, match=f"/{name}' has not been read to its end"):
        job.restart(1)


def test_positions_of_another_kind_of_format_are_refused(tmp_path: Path) -> None:
    job = half_read(tmp_path)
    job.source = FileSource.for_bulk_file_format(ParquetColumnarRowInputFormat(), str(tmp_path)).build()
    with pytest.raises(RestoreError, match="bytes"):
        job.restart(1)


def test_half_read_files_cannot_go_on_as_whole_ones(tmp_path: Path) -> None:
    job = half_read(tmp_path)
    form = CsvReaderFormat(multiline=True)
    job.source = FileSource.for_record_stream_format(form, str(tmp_path)).build()
    with pytest.raises(RestoreError, match="as a whole"):
        job.restart(1)


def test_progress_counts_what_is_planned(tmp_path: Path) -> None:
    job = half_read(tmp_path)
    assert job.enumerator.progress() == 0.5
    job.restart(2)
    assert job.enumerator.progress() == 0.5


def test_a_monitored_directory_never_finishes_and_new_files_are_found_at_the_interval(tmp_path: Path) -> None:
    now = [0.0]
    enumerator = FileEnumerator(
        [str(tmp_path / "later")],
        TEXT,
        EnumeratorContext("u", 1),
        100,
        discovery_interval=10,
        clock=lambda: now[0],
    )
    assert enumerator.plan(100).units == 0
    (tmp_path / "later").mkdir()
    (tmp_path / "later" / "f").write_text("a\n")
    now[0] = 9
    assert enumerator.plan(100).units == 0
    now[0] = 10
    assert enumerator.plan(100).units == 2
    now[0] = 30
    assert enumerator.plan(100).units == 0
    assert not enumerator.finished()
    assert enumerator.progress() is None


def test_the_monitoring_interval_is_a_duration() -> None:
    builder = FileSource.for_record_stream_format(TEXT, "/x")
    assert builder.monitor_continuously(Duration.of_millis(1500)).build().discovery_interval == 1.5
    assert builder.process_static_file_set().build().discovery_interval is None


def test_bad_settings_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="path"):
        FileSource.for_record_stream_format(TEXT)
    with pytest.raises(ConfigurationError, match="format"):
        FileSource.for_record_stream_format("text", "/x")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="split_size"):
        FileSource.for_record_stream_format(TEXT, "/x").set_split_size(0)


def test_a_dataframe_that_was_read_in_another_directory_is_not_read_again(tmp_path: Path) -> None:
    """Its rows are files of the job. A job elsewhere has its own, and the checkpoint says nothing about those."""
    table = pyarrow.table({"n": [1, 2, 3]})
    for directory in ("one", "two"):
        (tmp_path / directory).mkdir()
        pyarrow.parquet.write_table(table, tmp_path / directory / "part-0.parquet")
    context = EnumeratorContext("frame", 1)
    first = FileEnumerator([str(tmp_path / "one")], DataFrameFormat(), context, 1 << 20)
    while not first.finished():
        first.plan(10)
    again = FileEnumerator([str(tmp_path / "one")], DataFrameFormat(), context, 1 << 20)
    again.restore(first.snapshot())
    assert again.finished()
    elsewhere = FileEnumerator([str(tmp_path / "two")], DataFrameFormat(), context, 1 << 20)
    with pytest.raises(RestoreError, match=r"part-0\.parquet', which it has read, is not in the directory of this job"):
        elsewhere.restore(first.snapshot())
