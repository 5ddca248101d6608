"""CSV messages, one row each."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from firesteel.common.serialization import DeserializationSchema, SerializationSchema
from firesteel.common.typeinfo import RowTypeInfo, TypeInformation
from firesteel.common.types import Row
from firesteel.connectors.file_bulk import fields_of
from firesteel.connectors.rows import check_row_type, converters
from firesteel.errors import TypeMismatchError


@dataclass(frozen=True)
class _Style:
    """How fields are put together."""

    delimiter: str = ","
    quote: str | None = '"'
    escape: str | None = None
    null: str | None = None
    line_end: str = "\n"
    comments: bool = False

    def dialect(self) -> dict[str, Any]:
        quoting = csv.QUOTE_MINIMAL if self.quote else csv.QUOTE_NONE
        return {"delimiter": self.delimiter, "quotechar": self.quote, "escapechar": self.escape, "quoting": quoting}


class CsvRowDeserializationSchema(DeserializationSchema):
    """A line becomes a row of the declared type. Made by `CsvRowDeserializationSchema.Builder(type_info)`."""

    def __init__(self, type_info: RowTypeInfo, style: _Style, lenient: bool) -> None:
        self._type, self._style, self._lenient = type_info, style, lenient
        self._make = Row(*type_info.get_field_names())
        self._converters = converters(type_info.get_field_types())
        self._dialect = style.dialect()

    def __reduce__(self) -> Any:
        return CsvRowDeserializationSchema, (self._type, self._style, self._lenient)

    def deserialize(self, message: bytes) -> Any:
        try:
            return self._row(message.decode())
        except (ValueError, csv.Error):
            if self._lenient:
                return None
            raise

    def _row(self, text: str) -> Any:
        if self._style.comments and text.startswith("#"):
            return None
        fields = next(csv.reader([text], strict=True, **self._dialect), [])
        if len(fields) != len(self._converters):
            raise ValueError(f"{len(self._converters)} fields are declared, and there are {len(fields)}")
        null, values = self._style.null, []
        for name, field, convert in zip(self._type.get_field_names(), fields, self._converters, strict=True):
            try:
                values.append(None if field == null else field if convert is None else convert(field))
            except ValueError as error:
                raise ValueError(f"field {name!r}: {error}") from error
        return self._make(*values)

    def get_produced_type(self) -> TypeInformation:
        return self._type

    class Builder:
        def __init__(self, type_info: TypeInformation) -> None:
            check_row_type(type_info)  # type: ignore[arg-type]
            self._type: RowTypeInfo = type_info  # type: ignore[assignment]
            self._style, self._lenient = _Style(), False

        def set_field_delimiter(self, delimiter: str) -> CsvRowDeserializationSchema.Builder:
            return self._with(delimiter=delimiter)

        def set_allow_comments(self, allow_comments: bool) -> CsvRowDeserializationSchema.Builder:
            """Leave out messages that start with "#"."""
            return self._with(comments=allow_comments)

        def set_quote_character(self, c: str) -> CsvRowDeserializationSchema.Builder:
            return self._with(quote=c)

        def set_escape_character(self, c: str) -> CsvRowDeserializationSchema.Builder:
            return self._with(escape=c)

        def set_null_literal(self, null_literal: str) -> CsvRowDeserializationSchema.Builder:
            """What stands for None."""
            return self._with(null=null_literal)

        def set_ignore_parse_errors(self, ignore_parse_errors: bool) -> CsvRowDeserializationSchema.Builder:
            """Leave out what cannot be read, without a word. A source's BadRecordPolicy at least counts it."""
            self._lenient = ignore_parse_errors
            return self

        def _with(self, **settings: Any) -> CsvRowDeserializationSchema.Builder:
            self._style = replace(self._style, **settings)
            return self

        def build(self) -> CsvRowDeserializationSchema:
            return CsvRowDeserializationSchema(self._type, self._style, self._lenient)


class CsvRowSerializationSchema(SerializationSchema):
    """A record with the declared fields becomes a line. Made by `CsvRowSerializationSchema.Builder(type_info)`."""

    def __init__(self, names: Sequence[str], style: _Style) -> None:
        self._names, self._style = tuple(names), style

    def serialize(self, value: Any) -> bytes:
        null = self._style.null or ""
        fields = [null if each is None else _text(each) for each in fields_of(value, self._names)]
        text = io.StringIO(newline="")
        try:
            csv.writer(text, lineterminator="\r\n", **self._style.dialect()).writerow(
                fields
            )  # what is quoted depends on it
        except csv.Error as error:
            raise TypeMismatchError(f"the record {value!r:.500} cannot be CSV: {error}", record=value) from error
        return (text.getvalue()[:-2] + self._style.line_end).encode()

    class Builder:
        def __init__(self, type_info: TypeInformation) -> None:
            check_row_type(type_info)  # type: ignore[arg-type]
            self._names = type_info.get_field_names()  # type: ignore[attr-defined]
            self._style = _Style(line_end="")

        def set_field_delimiter(self, c: str) -> CsvRowSerializationSchema.Builder:
            return self._with(delimiter=c)

        def set_line_delimiter(self, delimiter: str) -> CsvRowSerializationSchema.Builder:
            """What each message ends with: by default nothing."""
            return self._with(line_end=delimiter)

        def disable_quote_character(self) -> CsvRowSerializationSchema.Builder:
            return self._with(quote=None)

        def set_quote_character(self, c: str) -> CsvRowSerializationSchema.Builder:
            return self._with(quote=c)

        def set_escape_character(self, c: str) -> CsvRowSerializationSchema.Builder:
            return self._with(escape=c)

        def set_null_literal(self, s: str) -> CsvRowSerializationSchema.Builder:
            return self._with(null=s)

        def _with(self, **settings: Any) -> CsvRowSerializationSchema.Builder:
            self._style = replace(self._style, **settings)
            return self

        def build(self) -> CsvRowSerializationSchema:
            return CsvRowSerializationSchema(self._names, self._style)


def _text(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)
