"""How records become bytes outside of a job, and back."""

from __future__ import annotations

import codecs
from abc import ABC, abstractmethod
from typing import Any

from firesteel.common.display import java_text
from firesteel.common.typeinfo import PickledBytesTypeInfo, TypeInformation, Types

__all__ = [
    "ByteArraySchema",
    "DeserializationSchema",
    "Encoder",
    "RowFieldExtractorSchema",
    "SerializationSchema",
    "SimpleStringSchema",
]


class SerializationSchema(ABC):
    """Turns a record into the bytes of one message. Made on the driver and used in slots, so picklable."""

    @abstractmethod
    def serialize(self, value: Any) -> bytes: ...


class DeserializationSchema(ABC):
    """Turns the bytes of one message into a record. Made on the driver and used in slots, so picklable."""

    @abstractmethod
    def deserialize(self, message: bytes) -> Any:
        """The record, or None to leave this message out."""

    def is_end_of_stream(self, value: Any) -> bool:
        """Whether this record says that no more will come."""
        return False

    def get_produced_type(self) -> TypeInformation:
        return Types.PICKLED_BYTE_ARRAY()


class SimpleStringSchema(SerializationSchema, DeserializationSchema):
    """Strings. Bytes that are not of the charset become the replacement character, as in Flink."""

    def __init__(self, charset: str = "UTF-8") -> None:
        self._charset = codecs.lookup(charset).name

    def serialize(self, value: Any) -> bytes:
        if not isinstance(value, str):
            raise TypeError(f"SimpleStringSchema writes strings, not {value!r}; map them with str first")
        return value.encode(self._charset, "replace")

    def deserialize(self, message: bytes) -> str:
        return message.decode(self._charset, "replace")

    def get_produced_type(self) -> TypeInformation:
        return Types.STRING()


class ByteArraySchema(SerializationSchema, DeserializationSchema):
    """Bytes, as they are."""

    def serialize(self, value: Any) -> bytes:
        return _as_bytes(value, "ByteArraySchema writes bytes")

    def deserialize(self, message: bytes) -> bytes:
        return message

    def get_produced_type(self) -> TypeInformation:
        return Types.PRIMITIVE_ARRAY(Types.BYTE())


class RowFieldExtractorSchema(SerializationSchema):
    """One field of a row, which must be bytes: to use as the key of a message, for example."""

    def __init__(self, field_index: int) -> None:
        if field_index < 0:
            raise ValueError(f"field_index must not be negative: {field_index}")
        self._field_index = field_index

    def serialize(self, value: Any) -> bytes:
        field = value[self._field_index]
        return _as_bytes(field, f"RowFieldExtractorSchema needs bytes in field {self._field_index}")


class Encoder(ABC):
    """Turns records into what stands in a file, each with whatever separates it from the next."""

    @abstractmethod
    def encode(self, value: Any) -> bytes: ...

    @staticmethod
    def simple_string_encoder(charset_name: str = "UTF-8") -> Encoder:
        """`str(value)` and a newline."""
        return _SimpleStringEncoder(charset_name)


class _SimpleStringEncoder(Encoder):
    def __init__(self, charset_name: str, type_info: TypeInformation | None = None) -> None:
        self._charset = codecs.lookup(charset_name).name
        self._type_info = type_info

    def encode(self, value: Any) -> bytes:
        text = value if self._type_info is None else java_text(value, self._type_info)
        return f"{text}\n".encode(self._charset, "replace")


def encoder_for(encoder: Encoder, type_info: TypeInformation | None) -> Encoder:
    """The encoder for a stream of that declared type, None if nothing was declared.

    Declared records have crossed into Java when PyFlink's file sink gets them, and it writes `(a,1)` for `("a", 1)`.
    """
    if isinstance(encoder, _SimpleStringEncoder) and not isinstance(type_info, PickledBytesTypeInfo):
        return _SimpleStringEncoder(encoder._charset, type_info)
    return encoder


def _as_bytes(value: Any, wanted: str) -> bytes:
    if not isinstance(value, bytes | bytearray):
        raise TypeError(f"{wanted}, not {value!r}")
    return bytes(value)
