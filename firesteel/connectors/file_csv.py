"""CSV files, read by byte offset like other lines, or whole when their fields may contain newlines."""

from __future__ import annotations

import codecs
import csv
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, BinaryIO

from firesteel.common.typeinfo import RowTypeInfo
from firesteel.connectors.base import CHUNK
from firesteel.connectors.file_formats import (
    FileReader,
    FileReadError,
    check_unchanged,
    file_size,
    open_failed,
)
from firesteel.connectors.file_lines import BadLineError, LineFormat, LineReader, is_marked
from firesteel.connectors.rows import Convert, check_row_type, converters, record_maker
from firesteel.errors import ConfigurationError


class CsvReaderFormat(LineFormat):
    """Comma-separated values, as tuples of `str` unless `types` or a `row_type` say otherwise.

    - `columns`: with a `header` (the first line of every file), which columns to read, in this order; without
      one, the names of all fields of a line. Lines must have as many fields as there are names.
    - `types`: per column a type (`Types.INT()`) or a function from `str` (`int`); needs as many as there are
      columns.
    - `row_type`: a `Types.ROW_NAMED(...)` in the place of `columns` and `types`; the records are `Row`s.
    - `null_value`: the text that stands for None. Without it an empty field is "", and no number.

    A file is cut between lines, found without knowing whether a newline is inside quotes. So a quoted newline
    is an error, unless `multiline=True`: then each file is one range, read by one subtask in one epoch. Blank
    lines are skipped.
    """

    def __init__(
        self,
        columns: Sequence[str] | None = None,
        types: Sequence[Any] | None = None,
        *,
        row_type: RowTypeInfo | None = None,
        header: bool = False,
        delimiter: str = ",",
        quote: str = '"',
        null_value: str | None = None,
        multiline: bool = False,
        charset: str = "UTF-8",
    ) -> None:
        super().__init__(charset)
        if row_type is not None:
            if columns is not None or types is not None:
                raise ConfigurationError("give CsvReaderFormat either a row_type or columns and types, not both")
            check_row_type(row_type)
            columns, types = row_type.get_field_names(), row_type.get_field_types()
        if columns is not None and types is not None and len(columns) != len(types):
            raise ConfigurationError(f"CsvReaderFormat got {len(columns)} columns but {len(types)} types")
        if types is not None:
            converters(types)  # say now, not in a slot, that a type is not known
        self.columns = list(columns) if columns is not None else None
        self.types = list(types) if types is not None else None
        self.row_type = row_type
        self.header = header
        self.delimiter = delimiter
        self.quote = quote
        self.null_value = null_value
        self.splittable = not multiline

    def parser(self, path: str) -> Callable[[list[str]], list[Any]]:
        return self._rows(path).parse_lines

    def open(self, path: str, size: int) -> FileReader:
        # the default limit of 128 KiB is the csv module's, not the file's
        csv.field_size_limit(2**31 - 1)
        if not self.splittable:
            return WholeCsvReader(path, size, self, self._rows(path))
        return LineReader(path, size, self.charset, self.parser(path), skip_lines=int(self.header))

    def fields(self, lines: Iterable[str]) -> Iterator[list[str]]:
        return csv.reader(lines, delimiter=self.delimiter, quotechar=self.quote, strict=True)

    def _rows(self, path: str) -> CsvRows:
        """How this file's fields become records. Its header is read even if the range starts later."""
        width = len(self.columns or self.types or ()) or None
        chosen = None
        if self.header:
            names = self._read_header(path)
            missing = [name for name in self.columns or () if name not in names]
            if missing:
                raise FileReadError(f"file {path!r} has no column {', '.join(missing)}; its header is {names}")
            chosen = [names.index(name) for name in self.columns] if self.columns else None
            width = len(names)
            if self.types is not None and len(self.types) != len(chosen or names):
                raise FileReadError(f"file {path!r} has {width} columns for {len(self.types)} types; name the columns")
        return CsvRows(self, width, chosen)

    def _read_header(self, path: str) -> list[str]:
        try:
            with open(path, "rb") as file:
                for fields in self.fields(DecodedLines(file, self.charset)):
                    return fields
        except OSError as error:
            raise open_failed(path, error) from error
        except (csv.Error, UnicodeDecodeError) as error:
            raise FileReadError(f"the first line of {path!r} is no CSV header: {error}") from error
        return []


class CsvRows:
    """Turns fields of one file into records: `width` per line (None: any number), the `chosen` are kept."""

    def __init__(self, form: CsvReaderFormat, width: int | None, chosen: list[int] | None) -> None:
        self._form = form
        self._width = width
        self._chosen = chosen
        self._make = record_maker(form.row_type)
        self._convert = converters(form.types) if form.types is not None else None

    def parse_lines(self, lines: list[str]) -> list[Any]:
        try:
            fields = list(self._form.fields(lines))
            if len(fields) != len(lines):
                raise ValueError("a quoted newline")
            return self.records(fields)
        except (csv.Error, ValueError) as failure:
            # the quick way parses all lines at once and cannot say which was wrong
            for index, line in enumerate(lines):
                try:
                    self.records(list(self._form.fields([line])))
                except (csv.Error, ValueError) as error:
                    hint = ""
                    if "unexpected end" in str(error):
                        hint = " inside quotes; if fields may contain newlines, use multiline=True"
                    raise BadLineError(index, f"{error}{hint}") from error
            raise BadLineError(0, f"in one of {len(lines)} lines: {failure}") from failure

    def records(self, fields: list[list[str]]) -> list[Any]:
        """The records of these lines, without blank ones; ValueError if one has the wrong shape or type."""
        if [] in fields:
            fields = [line for line in fields if line]
        if not fields:
            return []
        if self._width is None:
            return list(map(tuple, fields))
        widths = set(map(len, fields))
        if widths != {self._width}:
            raise ValueError(f"{(widths - {self._width}).pop()} fields instead of {self._width}")
        columns: list[Sequence[Any]] = list(zip(*fields, strict=True))
        if self._chosen is not None:
            columns = [columns[i] for i in self._chosen]
        convert: Sequence[Convert | None] = self._convert or [None] * len(columns)
        return self._make(map(self._converted, columns, convert))

    def _converted(self, column: Sequence[Any], convert: Convert | None) -> Sequence[Any]:
        null = self._form.null_value
        if null is not None and null in column:
            return [None if text == null else convert(text) if convert else text for text in column]
        return list(map(convert, column)) if convert else column


class WholeCsvReader(FileReader):
    """Reads a file from start to end, since only its beginning is known to be outside of quotes."""

    def __init__(self, path: str, size: int, form: CsvReaderFormat, rows: CsvRows) -> None:
        self._path = path
        self._size = size
        self._form = form
        self._rows = rows

    def read(self, start: int, stop: int) -> Iterator[list[Any]]:
        check_unchanged(self._path, self._size, file_size(self._path))
        with open(self._path, "rb") as file:
            lines = DecodedLines(file, self._form.charset)
            fields = self._form.fields(lines)
            if self._form.header:
                self._take(1, lines, fields)
            while chunk := self._take(CHUNK, lines, fields):
                if records := self._records(chunk):
                    yield records

    def _take(self, count: int, lines: DecodedLines, fields: Iterator[list[str]]) -> list[tuple[int, list[str]]]:
        """Up to `count` records' fields, each with where in the file it starts."""
        taken: list[tuple[int, list[str]]] = []
        start = lines.position
        try:
            for one in itertools.islice(fields, count):
                taken.append((start, one))
                start = lines.position
        except (csv.Error, UnicodeDecodeError) as error:
            raise self._bad_record(start, error) from error
        return taken

    def _records(self, chunk: list[tuple[int, list[str]]]) -> list[Any]:
        try:
            return self._rows.records([fields for _, fields in chunk])
        except ValueError:
            for start, fields in chunk:
                try:
                    self._rows.records([fields])
                except ValueError as error:
                    raise self._bad_record(start, error) from error
            raise

    def _bad_record(self, start: int, error: Exception) -> FileReadError:
        with open(self._path, "rb") as file:
            file.seek(start)
            begins = file.read(60)
        return FileReadError(f"bad record in {self._path!r} at byte {start}: {error}. It begins {begins!r}")


class DecodedLines:
    """A file's lines with their ends, without a byte order mark; `position` is that of the next one."""

    def __init__(self, file: BinaryIO, charset: str) -> None:
        self._file = file
        self._charset = charset
        self.position = 0

    def __iter__(self) -> DecodedLines:
        return self

    def __next__(self) -> str:
        line = next(self._file)
        mark = len(codecs.BOM_UTF8) if not self.position and is_marked(line, self._charset) else 0
        self.position += len(line)
        return str(line[mark:], self._charset)
