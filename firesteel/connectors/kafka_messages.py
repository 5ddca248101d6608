"""From Kafka messages to records."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from firesteel.common.serialization import DeserializationSchema
from firesteel.common.typeinfo import TypeInformation
from firesteel.connectors.base import ReaderContext, Timestamped
from firesteel.errors import BadRecordError, ConfigurationError


@dataclass(frozen=True)
class KafkaRecord:
    """A message as it is in Kafka. The timestamp is in milliseconds since 1970, or None."""

    topic: str
    partition: int
    offset: int
    timestamp: int | None
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]

    @staticmethod
    def of(message: Any) -> KafkaRecord:
        return KafkaRecord(
            message.topic(),
            message.partition(),
            message.offset(),
            _time(message),
            message.key(),
            message.value(),
            tuple(message.headers() or ()),
        )


class KafkaRecordDeserializationSchema(ABC):
    """Turns a whole message into a record. Made on the driver and used in slots, so picklable."""

    @abstractmethod
    def deserialize(self, record: KafkaRecord) -> Any:
        """The record, or None to leave this message out."""

    def get_produced_type(self) -> TypeInformation | None:
        return None

    @staticmethod
    def value_only(value_deserialization_schema: DeserializationSchema) -> KafkaRecordDeserializationSchema:
        return ValueOnly(value_deserialization_schema)


class ValueOnly(KafkaRecordDeserializationSchema):
    """Looks at a message's value alone, which is what most do and spares making a `KafkaRecord`."""

    def __init__(self, schema: DeserializationSchema) -> None:
        if not isinstance(schema, DeserializationSchema):
            raise ConfigurationError(
                f"set_value_only_deserializer() takes a DeserializationSchema such as SimpleStringSchema(), not {schema!r:.200}"
            )
        self.schema = schema

    def deserialize(self, record: KafkaRecord) -> Any:
        return None if record.value is None else self.schema.deserialize(record.value)

    def get_produced_type(self) -> TypeInformation | None:
        return self.schema.get_produced_type()


class Messages:
    """What becomes of messages: the schema."""

    def __init__(self, schema: KafkaRecordDeserializationSchema) -> None:
        self.schema = schema

    def converter(self, context: ReaderContext) -> Callable[[list[Any]], Timestamped]:
        """For one reader. What comes in one call is of one partition."""
        uid, deserialize = context.uid, _deserializing(self.schema)

        def convert(messages: list[Any]) -> Timestamped:
            values: list[Any] = []
            times: list[int | None] = []
            for message in messages:
                try:
                    value = deserialize(message)
                except Exception as error:
                    raise _bad(uid, message, error) from error
                if value is not None:
                    values.append(value)
                    times.append(_time(message))
            return Timestamped(values, times)

        return convert


def _deserializing(schema: KafkaRecordDeserializationSchema) -> Callable[[Any], Any]:
    if not isinstance(schema, ValueOnly):
        return lambda message: schema.deserialize(KafkaRecord.of(message))
    from_bytes = schema.schema.deserialize

    def deserialize(message: Any) -> Any:
        value = message.value()
        return None if value is None else from_bytes(value)

    return deserialize


def _time(message: Any) -> int | None:
    kind, time = message.timestamp()
    return time if kind else None


def _bad(uid: str, message: Any, error: Exception) -> BadRecordError:
    value = message.value()
    shown = "no value" if value is None else f"{len(value)} bytes that start with {value[:64]!r}"
    return BadRecordError(
        f"source {uid!r} cannot read the message of {message.topic()} partition {message.partition()} at offset "
        f"{message.offset()} ({shown}): {type(error).__name__}: {error}"
    )
