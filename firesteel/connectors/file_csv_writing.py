"""CSV files, as `CsvReaderFormat` reads them, and PyFlink's schema for them."""

from __future__ import annotations

import csv
import dataclasses
import io
from collections.abc import Sequence
from typing import Any, BinaryIO, TypeVar

from firesteel.common.typeinfo import RowTypeInfo
from firesteel.connectors.file_bulk import BulkWriter, BulkWriterFactory, fields_of
from firesteel.connectors.rows import check_row_type
from firesteel.errors import ConfigurationError, TypeMismatchError

Self = TypeVar("Self", bound="CsvSchemaBuilder")


@dataclasses.dataclass(frozen=True)
class CsvSchema:
    """Columns and how they are written. Made by `CsvSchema.builder()`."""

    columns: tuple[str, ...]
    array_separators: tuple[str | None, ...] = ()  # of each column; None: the schema's
    column_separator: str = ","
    array_element_separator: str = ";"
    escape_char: str | None = None
    quote_char: str | None = '"'
    line_separator: str = "\n"
    null_value: str = ""
    use_header: bool = False

    @staticmethod
    def builder() -> CsvSchemaBuilder:
        return CsvSchemaBuilder()

    def size(self) -> int:
        return len(self.columns)

    def __len__(self) -> int:
        return len(self.columns)


class CsvSchemaBuilder:
    """Collects the columns and settings of a CsvSchema."""

    def __init__(self) -> None:
        self._columns: dict[str, str | None] = {}
        self._settings: dict[str, Any] = {}

    def add_string_column(self: Self, name: str) -> Self:
        return self._add(name)

    def add_number_column(self: Self, name: str, number_type: Any = None) -> Self:
        """The type of the number is the record's: it is written as it is."""
        return self._add(name)

    def add_boolean_column(self: Self, name: str) -> Self:
        return self._add(name)

    def add_array_column(self: Self, name: str, separator: str | None = None, element_type: Any = None) -> Self:
        """
        :param separator: between the elements; None: that of the schema, a semicolon.
        """
        return self._add(name, separator)

    def add_columns_from(self: Self, schema: CsvSchema) -> Self:
        separators = schema.array_separators or (None,) * len(schema)
        for name, separator in zip(schema.columns, separators, strict=True):
            self._add(name, separator)
        return self

    def clear_columns(self: Self) -> Self:
        self._columns = {}
        return self

    def set_column_separator(self: Self, char: str) -> Self:
        return self._set("column_separator", _character(char))

    def set_array_element_separator(self: Self, separator: str) -> Self:
        return self._set("array_element_separator", separator)

    def set_escape_char(self: Self, char: str) -> Self:
        return self._set("escape_char", _character(char))

    def disable_escape_char(self: Self) -> Self:
        return self._set("escape_char", None)

    def set_quote_char(self: Self, char: str) -> Self:
        return self._set("quote_char", _character(char))

    def disable_quote_char(self: Self) -> Self:
        return self._set("quote_char", None)

    def set_line_separator(self: Self, separator: str) -> Self:
        return self._set("line_separator", separator)

    def set_null_value(self: Self, null_value: str) -> Self:
        return self._set("null_value", null_value)

    def set_use_header(self: Self, use: bool = True) -> Self:
        """Write the columns' names as the first line of every file."""
        return self._set("use_header", use)

    def size(self) -> int:
        return len(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def build(self) -> CsvSchema:
        if not self._columns:
            raise ConfigurationError("a CsvSchema needs at least one column")
        return CsvSchema(tuple(self._columns), tuple(self._columns.values()), **self._settings)

    def _add(self: Self, name: str, separator: str | None = None) -> Self:
        if name in self._columns:
            raise ConfigurationError(f"a CsvSchema cannot have the column {name!r} twice")
        self._columns[name] = separator
        return self

    def _set(self: Self, setting: str, value: Any) -> Self:
        self._settings[setting] = value
        return self


class CsvBulkWriters:
    """Files of comma-separated values, in UTF-8."""

    @staticmethod
    def for_schema(schema: CsvSchema | RowTypeInfo) -> BulkWriterFactory:
        """
        :param schema: a CsvSchema, or a `Types.ROW_NAMED(...)` for its columns with the usual settings.
        """
        if isinstance(schema, RowTypeInfo):
            check_row_type(schema)
            schema = CsvSchema(tuple(schema.get_field_names()))
        if not isinstance(schema, CsvSchema):
            raise ConfigurationError(f"CsvBulkWriters takes a CsvSchema or a Types.ROW_NAMED(...), not {schema!r:.200}")
        return _CsvFactory(schema)


@dataclasses.dataclass(frozen=True)
class _CsvFactory(BulkWriterFactory):
    schema: CsvSchema

    def create(self, out: BinaryIO) -> BulkWriter:
        return _CsvWriter(out, self.schema)


class _CsvWriter(BulkWriter):
    def __init__(self, out: BinaryIO, schema: CsvSchema) -> None:
        self._out, self._schema = out, schema
        separators = schema.array_separators or (None,) * len(schema)
        self._separators = [separator or schema.array_element_separator for separator in separators]
        if schema.use_header:
            self._write([schema.columns])

    def add_element(self, element: Any) -> None:
        self.add_elements([element])

    def add_elements(self, elements: Sequence[Any]) -> None:
        columns, separators = self._schema.columns, self._separators
        rows = [list(map(self._text, fields_of(element, columns), separators)) for element in elements]
        try:
            self._write(rows)
        except (csv.Error, ValueError):
            for element, row in zip(elements, rows, strict=True):
                self._check(element, row)
            raise

    def _write(self, rows: Sequence[Sequence[str]]) -> None:
        self._out.write(self._lines(rows).encode())

    def _lines(self, rows: Sequence[Sequence[str]]) -> str:
        schema = self._schema
        text = io.StringIO(newline="")
        writer = csv.writer(
            text,
            delimiter=schema.column_separator,
            quotechar=schema.quote_char,
            escapechar=schema.escape_char,
            lineterminator=schema.line_separator,
            quoting=csv.QUOTE_MINIMAL if schema.quote_char else csv.QUOTE_NONE,
        )
        writer.writerows(rows)
        return text.getvalue()

    def _check(self, element: Any, row: Sequence[str]) -> None:
        try:
            self._lines([row]).encode()
        except (csv.Error, ValueError) as error:
            raise TypeMismatchError(f"the record {element!r:.500} cannot be CSV: {error}", record=element) from error

    def _text(self, value: Any, separator: str) -> str:
        if value is None:
            return self._schema.null_value
        if value is True or value is False:
            return "true" if value else "false"
        if isinstance(value, (list, tuple)):
            return separator.join(self._text(each, separator) for each in value)
        return str(value)

    def finish(self) -> None:
        """There is nothing left."""


def _character(char: str) -> str:
    if not isinstance(char, str) or len(char) != 1:
        raise ConfigurationError(f"one character is needed, not {char!r}")
    return char
