"""JSON messages, one value each."""

from __future__ import annotations

import base64
import datetime
import decimal
import json
from collections.abc import Callable
from typing import Any

from firesteel.common.serialization import DeserializationSchema, SerializationSchema
from firesteel.common.typeinfo import (
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
    TypeInformation,
    Types,
)
from firesteel.common.types import Row
from firesteel.connectors.file_bulk import fields_of
from firesteel.connectors.file_json_writing import plain
from firesteel.connectors.rows import check_row_type
from firesteel.errors import ConfigurationError, TypeMismatchError

Convert = Callable[[Any], Any]
"""From what JSON has to a value; ValueError, with what is wrong and where, if it is none."""


class JsonRowDeserializationSchema(DeserializationSchema):
    """Objects become rows of a declared type; without a type a record is what the JSON is. Made by `builder()`.

    Fields that the type does not have are ignored; those that the message does not have are None.
    """

    def __init__(self, type_info: RowTypeInfo | None, strict: bool, lenient: bool) -> None:
        self._type, self._lenient = type_info, lenient
        self._strict = strict
        self._convert = _row(type_info, strict) if type_info is not None else None

    def __reduce__(self) -> Any:
        return JsonRowDeserializationSchema, (self._type, self._strict, self._lenient)

    @staticmethod
    def builder() -> JsonRowDeserializationSchema.Builder:
        return JsonRowDeserializationSchema.Builder()

    def deserialize(self, message: bytes) -> Any:
        try:
            value = json.loads(message)
            return value if self._convert is None else self._convert(value)
        except ValueError:
            if self._lenient:
                return None
            raise

    def get_produced_type(self) -> TypeInformation:
        return self._type if self._type is not None else super().get_produced_type()

    class Builder:
        def __init__(self) -> None:
            self._type: RowTypeInfo | None = None
            self._strict = self._lenient = False

        def type_info(self, type_info: TypeInformation) -> JsonRowDeserializationSchema.Builder:
            check_row_type(type_info)  # type: ignore[arg-type]
            self._type = type_info  # type: ignore[assignment]
            return self

        def json_schema(self, json_schema: str) -> JsonRowDeserializationSchema.Builder:
            raise ConfigurationError(
                "a JSON schema is not understood: declare the row with type_info(Types.ROW_NAMED(...))"
            )

        def fail_on_missing_field(self) -> JsonRowDeserializationSchema.Builder:
            """A field that a message does not have is an error, and not None."""
            self._strict = True
            return self

        def ignore_parse_errors(self) -> JsonRowDeserializationSchema.Builder:
            """Leave out what cannot be read, without a word. A source's BadRecordPolicy at least counts it."""
            self._lenient = True
            return self

        def build(self) -> JsonRowDeserializationSchema:
            if self._strict and self._lenient:
                raise ConfigurationError("fail_on_missing_field() and ignore_parse_errors() contradict each other")
            return JsonRowDeserializationSchema(self._type, self._strict, self._lenient)


class JsonRowSerializationSchema(SerializationSchema):
    """Records become objects with the fields of a declared row; without a type they become what they are."""

    def __init__(self, names: tuple[str, ...] | None) -> None:
        self._names = names
        self._encode = json.JSONEncoder(
            ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=plain
        ).encode

    @staticmethod
    def builder() -> JsonRowSerializationSchema.Builder:
        return JsonRowSerializationSchema.Builder()

    def serialize(self, value: Any) -> bytes:
        names = self._names
        try:
            return self._encode(
                value if names is None else dict(zip(names, fields_of(value, names), strict=True))
            ).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise TypeMismatchError(f"the record {value!r:.500} cannot be JSON: {error}", record=value) from error

    class Builder:
        def __init__(self) -> None:
            self._type: RowTypeInfo | None = None

        def with_type_info(self, type_info: TypeInformation) -> JsonRowSerializationSchema.Builder:
            check_row_type(type_info)  # type: ignore[arg-type]
            self._type = type_info  # type: ignore[assignment]
            return self

        def build(self) -> JsonRowSerializationSchema:
            return JsonRowSerializationSchema(tuple(self._type.get_field_names()) if self._type is not None else None)


def converter(wanted: TypeInformation, strict: bool) -> Convert:
    """From JSON to a value of this type; null is None in every type."""
    convert = _converter(wanted, strict)
    return lambda value: None if value is None else convert(value)


def _converter(wanted: TypeInformation, strict: bool) -> Convert:
    if isinstance(wanted, RowTypeInfo):
        return _row(wanted, strict)
    if wanted == Types.PRIMITIVE_ARRAY(Types.BYTE()):
        return lambda value: base64.b64decode(_is(str, value), validate=True)
    if isinstance(wanted, (ListTypeInfo, ObjectArrayTypeInfo, PrimitiveArrayTypeInfo)):
        element = converter(wanted.element_type, strict)
        return lambda value: [element(each) for each in _is(list, value)]
    if isinstance(wanted, MapTypeInfo):
        item = converter(wanted.value_type, strict)
        return lambda value: {key: item(each) for key, each in _is(dict, value).items()}
    if isinstance(wanted, TupleTypeInfo):
        elements = [converter(each, strict) for each in wanted.get_field_types()]
        return lambda value: tuple(convert(each) for convert, each in zip(elements, _is(list, value), strict=True))
    if wanted in _TEXTS:
        parse = _TEXTS[wanted]
        return lambda value: parse(_is(str, value))
    if wanted in _NUMBERS:
        return _NUMBERS[wanted]
    return lambda value: value


def _row(wanted: RowTypeInfo, strict: bool) -> Convert:
    names = wanted.get_field_names()
    make = Row(*names)
    fields = [(name, converter(each, strict)) for name, each in zip(names, wanted.get_field_types(), strict=True)]

    def convert(value: Any) -> Any:
        given = _is(dict, value)
        values = []
        for name, field in fields:
            if strict and name not in given:
                raise ValueError(f"there is no field {name!r}")
            try:
                values.append(field(given.get(name)))
            except ValueError as error:
                raise ValueError(f"field {name!r}: {error}") from error
        return make(*values)

    return convert


def _is(kind: type, value: Any) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"a {_JSON[kind]} is declared, and not {value!r:.100}")
    return value


def _integer(value: Any) -> int:
    if type(value) is not int:
        raise ValueError(f"an integer is declared, and not {value!r:.100}")
    return value


def _float(value: Any) -> float:
    if type(value) not in (int, float):
        raise ValueError(f"a number is declared, and not {value!r:.100}")
    return float(value)


def _decimal(value: Any) -> decimal.Decimal:
    try:
        return decimal.Decimal(str(value))
    except decimal.InvalidOperation as error:
        raise ValueError(f"a decimal number is declared, and not {value!r:.100}") from error


def _boolean(value: Any) -> bool:
    return bool(_is(bool, value))


_JSON = {str: "string", list: "list", dict: "object", bool: "boolean"}
_TEXTS: dict[TypeInformation, Callable[[str], Any]] = {
    Types.STRING(): str,
    Types.CHAR(): str,
    Types.SQL_DATE(): datetime.date.fromisoformat,
    Types.SQL_TIME(): datetime.time.fromisoformat,
    Types.SQL_TIMESTAMP(): datetime.datetime.fromisoformat,
}
_NUMBERS: dict[TypeInformation, Convert] = {
    **dict.fromkeys((Types.BYTE(), Types.SHORT(), Types.INT(), Types.LONG(), Types.BIG_INT()), _integer),
    Types.FLOAT(): _float,
    Types.DOUBLE(): _float,
    Types.BIG_DEC(): _decimal,
    Types.BOOLEAN(): _boolean,
}
