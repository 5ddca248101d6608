"""Avro messages: one record each, without a header, in a schema that both sides know."""

from __future__ import annotations

import io
import json
from typing import Any

from firesteel.common.serialization import DeserializationSchema, SerializationSchema
from firesteel.common.types import Row
from firesteel.connectors.file_bulk import fields_of
from firesteel.errors import ConfigurationError, TypeMismatchError


class AvroRowDeserializationSchema(DeserializationSchema):
    """A message becomes a row with the schema's fields.

    Avro has no marks of its own in the bytes, so a message of another schema may look like one of this: what is left over or
    missing is noticed, not more.
    """

    def __init__(self, record_class: str | None = None, avro_schema_string: str | None = None) -> None:
        self._text = _text(record_class, avro_schema_string)
        self._avro, self._schema = _parse(self._text)
        self._names = [field["name"] for field in self._schema["fields"]]
        self._make = Row(*self._names)

    def __reduce__(self) -> Any:
        return type(self), (None, self._text)

    def deserialize(self, message: bytes) -> Any:
        stream = io.BytesIO(message)
        try:
            record = self._avro.schemaless_reader(stream, self._schema)
        except (EOFError, IndexError, StopIteration, OverflowError) as error:
            raise ValueError(f"the message ends within the record, or is of another schema ({error!r})") from error
        if left := len(message) - stream.tell():
            raise ValueError(f"{left} bytes are left over: the message is of another schema")
        return self._make(*(record[name] for name in self._names))


class AvroRowSerializationSchema(SerializationSchema):
    """A record with the schema's fields becomes a message."""

    def __init__(self, record_class: str | None = None, avro_schema_string: str | None = None) -> None:
        self._text = _text(record_class, avro_schema_string)
        self._avro, self._schema = _parse(self._text)
        self._names = [field["name"] for field in self._schema["fields"]]

    def __reduce__(self) -> Any:
        return type(self), (None, self._text)

    def serialize(self, value: Any) -> bytes:
        record = dict(zip(self._names, fields_of(value, self._names), strict=True))
        stream = io.BytesIO()
        try:
            self._avro.schemaless_writer(stream, self._schema, record, strict=True)
        except Exception as error:  # fastavro raises what comes up
            raise TypeMismatchError(
                f"the record {value!r:.500} is not of the Avro schema {self._schema['name']}: {error}", record=value
            ) from error
        return stream.getvalue()


def _text(record_class: str | None, avro_schema_string: str | None) -> str:
    if record_class is not None:
        raise ConfigurationError("a record_class is of Java: give the schema's text as avro_schema_string")
    if avro_schema_string is None:
        raise TypeError("avro_schema_string has to be given")
    return avro_schema_string


def _parse(text: str) -> tuple[Any, Any]:
    try:
        import fastavro
    except ImportError as error:
        raise ConfigurationError(
            f"Avro needs fastavro, which cannot be imported ({error}): pip install 'firesteel[kafka]'"
        ) from error
    try:
        schema = fastavro.parse_schema(json.loads(text))
    except Exception as error:
        raise ConfigurationError(f"this is no Avro schema: {error}: {text:.300}") from error
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise ConfigurationError(f"the Avro schema has to be of a record: {text:.300}")
    return fastavro, schema
