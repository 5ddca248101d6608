"""From Kafka messages to records."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from firesteel.common.serialization import DeserializationSchema
from firesteel.common.typeinfo import TypeInformation
from firesteel.connectors.bad_records import ERRORS, BadRecord, BadRecordPolicy
from firesteel.connectors.base import Aside, ReaderContext, Timestamped
from firesteel.connectors.kafka_client import confluent_kafka
from firesteel.errors import BadRecordError, ConfigurationError

log = logging.getLogger("firesteel")


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
        """The same of a confluent-kafka `Message`."""
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
        """One that looks at the bytes of a message's value alone."""
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
    """What becomes of messages: the schema, and what to do with those that it cannot read."""

    def __init__(self, schema: KafkaRecordDeserializationSchema, policy: BadRecordPolicy) -> None:
        self.schema, self.policy = schema, policy

    def converter(self, context: ReaderContext) -> Callable[[list[Any]], Iterator[Timestamped | Aside]]:
        """For one reader. What comes in one call is of one partition."""
        part_of, deserialize = _deserializing(self.schema)
        on_error = self._on_error(context)

        def convert(messages: list[Any]) -> Iterator[Timestamped | Aside]:
            values: list[Any] = []
            times: list[int | None] = []
            bad: list[BadRecord] = []
            for message in messages:
                part = part_of(message)
                if part is None:
                    continue
                try:
                    value = deserialize(part)
                except Exception as error:  # noqa: BLE001  a user's schema may raise anything; the policy decides
                    bad.append(on_error(message, error))
                    continue
                if value is not None:
                    kind, time = message.timestamp()
                    values.append(value)
                    times.append(time if kind else None)
            if values:
                yield Timestamped(values, times)
            if bad and self.policy.tag_id is not None:
                yield Aside(self.policy.tag_id, bad, [each.record.timestamp for each in bad])

        return convert

    def _on_error(self, context: ReaderContext) -> Callable[[Any, Exception], BadRecord]:
        policy, counter = self.policy, context.metrics.counter(ERRORS) if context.metrics is not None else None
        logged = policy.kind != "skip"

        def on_error(message: Any, error: Exception) -> BadRecord:
            nonlocal logged
            if policy.kind == "fail":
                raise _bad(context.uid, message, error) from error
            if counter is not None:
                counter.inc()
            if not logged:
                logged = True
                log.warning(
                    "%s. It is left out, and so are others like it, which the metric %s counts",
                    _bad(context.uid, message, error),
                    ERRORS,
                )
            return BadRecord(KafkaRecord.of(message), f"{type(error).__name__}: {error}")

        return on_error


def _deserializing(
    schema: KafkaRecordDeserializationSchema,
) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """What of a message is looked at, and what makes a record of it."""
    if isinstance(schema, ValueOnly):
        return confluent_kafka().Message.value, schema.schema.deserialize
    return KafkaRecord.of, schema.deserialize


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
