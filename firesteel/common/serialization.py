"""How records become bytes outside of a job, and back."""

from __future__ import annotations

import codecs
from abc import ABC, abstractmethod
from typing import Any

from firesteel.common.typeinfo import TypeInformation, Types

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
    def __init__(self, charset_name: str) -> None:
        self._charset = codecs.lookup(charset_name).name

    def encode(self, value: Any) -> bytes:
        return f"{value}\n".encode(self._charset, "replace")


def _as_bytes(value: Any, wanted: str) -> bytes:
    if not isinstance(value, bytes | bytearray):
        raise TypeError(f"{wanted}, not {value!r}")
    return bytes(value)
