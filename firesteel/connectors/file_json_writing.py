"""JSON lines: one JSON value per line, as `JsonLinesFormat` reads them."""

from __future__ import annotations

import base64
import dataclasses
import datetime
import decimal
import json
from collections.abc import Sequence
from typing import Any, BinaryIO

from firesteel.common.time import Instant
from firesteel.common.typeinfo import RowTypeInfo
from firesteel.common.types import Row
from firesteel.connectors.file_bulk import BulkWriter, BulkWriterFactory, fields_of
from firesteel.connectors.rows import check_row_type
from firesteel.errors import TypeMismatchError


class JsonLinesBulkWriters:
    """Files of JSON lines, in UTF-8."""

    @staticmethod
    def for_row_type(row_type: RowTypeInfo | None = None) -> BulkWriterFactory:
        """
        :param row_type: records become objects with these fields. None: a record becomes what it is: dicts, dataclasses
            and rows with names become objects; lists, tuples and rows without names become arrays.
        """
        if row_type is not None:
            check_row_type(row_type)
        return _JsonLinesFactory(tuple(row_type.get_field_names()) if row_type is not None else None)


@dataclasses.dataclass(frozen=True)
class _JsonLinesFactory(BulkWriterFactory):
    names: tuple[str, ...] | None

    def create(self, out: BinaryIO) -> BulkWriter:
        return _JsonLinesWriter(out, self.names)


class _JsonLinesWriter(BulkWriter):
    def __init__(self, out: BinaryIO, names: Sequence[str] | None) -> None:
        self._out, self._names = out, names
        self._encode = json.JSONEncoder(
            ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=plain
        ).encode

    def add_element(self, element: Any) -> None:
        self.add_elements([element])

    def add_elements(self, elements: Sequence[Any]) -> None:
        encode, names = self._encode, self._names
        lines = []
        element = None
        try:
            for element in elements:
                value = element if names is None else dict(zip(names, fields_of(element, names), strict=True))
                lines.append(encode(value))
            lines.append("")
            data = "\n".join(lines).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise TypeMismatchError(f"the record {element!r:.500} cannot be JSON: {error}", record=element) from error
        self._out.write(data)

    def finish(self) -> None:
        """There is nothing left."""


def plain(value: Any) -> Any:
    """What JSON has no type for, as Flink's JSON format writes it where it can."""
    if isinstance(value, Row):
        return value.as_dict() if value._fields is not None else list(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, (type, Instant)):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode()
    if isinstance(value, decimal.Decimal):
        return str(value)
    if type(value).__module__ == "numpy":
        return value.tolist()
    raise TypeError(f"{value!r:.200} is of type {type(value).__name__}")
