"""From records to Kafka messages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any, NamedTuple

from firesteel.common.serialization import SerializationSchema
from firesteel.errors import ConfigurationError

Headers = Mapping[str, bytes] | Sequence[tuple[str, bytes]]


class KafkaProducerRecord(NamedTuple):
    """A message as it goes to Kafka. Without a partition the key decides; without a timestamp it is the time of writing."""

    topic: str
    value: bytes | None
    key: bytes | None = None
    headers: Headers | None = None
    timestamp: int | None = None
    partition: int | None = None


class KafkaRecordSerializationSchema(ABC):
    """Turns a record into a message. Made on the driver and used in slots, so picklable."""

    @abstractmethod
    def serialize(self, value: Any) -> KafkaProducerRecord:
        """The message for this record."""

    def topic(self) -> str | None:
        """The topic of all messages, if it is known beforehand."""
        return None

    def _plain_messages(self, values: Sequence[Any]) -> Iterator[tuple[Any, ...]] | None:
        """Tuples of topic, value and perhaps key, if no message has more to it: that spares an object for each."""
        return None

    @staticmethod
    def builder() -> KafkaRecordSerializationSchemaBuilder:
        """Put one together from a topic and schemas."""
        return KafkaRecordSerializationSchemaBuilder()


class KafkaTopicSelector(ABC):
    """Says to which topic a record goes."""

    @abstractmethod
    def apply(self, data: Any) -> str:
        """The topic of this record."""


class KafkaRecordSerializationSchemaBuilder:
    """Collects how the parts of a message are made: a topic and a value at least."""

    def __init__(self) -> None:
        self._topic: str | None = None
        self._select_topic: Callable[[Any], str] | None = None
        self._key: SerializationSchema | None = None
        self._value: SerializationSchema | None = None
        self._headers: Callable[[Any], Headers | None] | None = None
        self._timestamp: Callable[[Any], int | None] | None = None
        self._partition: Callable[[Any], int | None] | None = None

    def set_topic(self, topic: str) -> KafkaRecordSerializationSchemaBuilder:
        if not isinstance(topic, str) or not topic:
            raise ConfigurationError(f"set_topic() takes the name of a topic, not {topic!r:.200}")
        self._topic, self._select_topic = topic, None
        return self

    def set_topic_selector(
        self, topic_selector: Callable[[Any], str] | KafkaTopicSelector
    ) -> KafkaRecordSerializationSchemaBuilder:
        """The topic of each record."""
        if isinstance(topic_selector, KafkaTopicSelector):
            topic_selector = topic_selector.apply
        self._topic, self._select_topic = None, _function(topic_selector, "set_topic_selector")
        return self

    def set_key_serialization_schema(
        self, key_serialization_schema: SerializationSchema
    ) -> KafkaRecordSerializationSchemaBuilder:
        """The key of each record's message, made from the whole record; without it there is none."""
        self._key = _schema(key_serialization_schema)
        return self

    def set_value_serialization_schema(
        self, value_serialization_schema: SerializationSchema
    ) -> KafkaRecordSerializationSchemaBuilder:
        self._value = _schema(value_serialization_schema)
        return self

    def set_header_provider(
        self, header_provider: Callable[[Any], Headers | None]
    ) -> KafkaRecordSerializationSchemaBuilder:
        """The headers of each record's message: a dict, or pairs, of bytes by name."""
        self._headers = _function(header_provider, "set_header_provider")
        return self

    def set_timestamp_selector(
        self, timestamp_selector: Callable[[Any], int | None]
    ) -> KafkaRecordSerializationSchemaBuilder:
        """The timestamp of each record's message, in milliseconds since 1970."""
        self._timestamp = _function(timestamp_selector, "set_timestamp_selector")
        return self

    def set_partitioner(self, partitioner: Callable[[Any], int | None]) -> KafkaRecordSerializationSchemaBuilder:
        """The partition of each record's message; None leaves it to the key."""
        self._partition = _function(partitioner, "set_partitioner")
        return self

    def build(self) -> KafkaRecordSerializationSchema:
        """
        :raises ConfigurationError: there is no topic or no value.
        """
        if self._topic is None and self._select_topic is None:
            raise ConfigurationError("a Kafka message needs a topic: set_topic(...) or set_topic_selector(...)")
        if self._value is None:
            raise ConfigurationError("a Kafka message needs a value: set_value_serialization_schema(...)")
        return _Composed(
            self._topic, self._select_topic, self._key, self._value, self._headers, self._timestamp, self._partition
        )


class _Composed(KafkaRecordSerializationSchema):
    def __init__(
        self,
        topic: str | None,
        select_topic: Callable[[Any], str] | None,
        key: SerializationSchema | None,
        value: SerializationSchema,
        headers: Callable[[Any], Headers | None] | None,
        timestamp: Callable[[Any], int | None] | None,
        partition: Callable[[Any], int | None] | None,
    ) -> None:
        self._topic, self._select_topic, self._key, self._value = topic, select_topic, key, value
        self._headers, self._timestamp, self._partition = headers, timestamp, partition

    def topic(self) -> str | None:
        return self._topic

    def _plain_messages(self, values: Sequence[Any]) -> Iterator[tuple[Any, ...]] | None:
        extras = (self._select_topic, self._headers, self._timestamp, self._partition)
        if any(each is not None for each in extras):
            return None
        bodies = map(self._value.serialize, values)
        if self._key is None:
            return zip(repeat(self._topic), bodies)
        return zip(repeat(self._topic), bodies, map(self._key.serialize, values))

    def serialize(self, value: Any) -> KafkaProducerRecord:
        return KafkaProducerRecord(
            self._topic if self._select_topic is None else self._select_topic(value),  # type: ignore[arg-type]
            self._value.serialize(value),
            None if self._key is None else self._key.serialize(value),
            None if self._headers is None else self._headers(value),
            None if self._timestamp is None else self._timestamp(value),
            None if self._partition is None else self._partition(value),
        )


def _schema(value: Any) -> SerializationSchema:
    if not isinstance(value, SerializationSchema):
        raise ConfigurationError(f"a SerializationSchema such as SimpleStringSchema() is needed, not {value!r:.200}")
    return value


def _function(value: Any, method: str) -> Any:
    if not callable(value):
        raise ConfigurationError(f"{method}() takes a function of a record, not {value!r:.200}")
    return value
