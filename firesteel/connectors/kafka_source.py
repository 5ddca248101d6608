"""Reading from Kafka, exactly once: offsets live in the checkpoint, and are put back on recovery."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from firesteel.common.durations import parse_duration_ms
from firesteel.common.serialization import DeserializationSchema
from firesteel.common.typeinfo import TypeInformation
from firesteel.connectors.bad_records import BadRecordPolicy
from firesteel.connectors.base import (
    EnumeratorContext,
    PrepareContext,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
)
from firesteel.connectors.kafka_cluster import first_look
from firesteel.connectors.kafka_enumerator import KafkaEnumerator, ReadingPlan, Subscription
from firesteel.connectors.kafka_messages import KafkaRecordDeserializationSchema, Messages, ValueOnly
from firesteel.connectors.kafka_offsets import KafkaOffsetsInitializer, KafkaTopicPartition
from firesteel.connectors.kafka_reader import KafkaReader
from firesteel.errors import ConfigurationError

_DISCOVERY_MS = 5 * 60 * 1000


class KafkaSource(Source):
    """Records of Kafka topics, in order within each partition. Made by `KafkaSource.builder()`.

    Every record has its Kafka timestamp, which a timestamp assigner is given.
    """

    def __init__(self, plan: ReadingPlan, messages: Messages, *, bounded: bool) -> None:
        self.plan = plan
        self.messages = messages
        self.bounded = bounded

    @staticmethod
    def builder() -> KafkaSourceBuilder:
        """Collect the settings of one."""
        return KafkaSourceBuilder()

    def prepare(self, context: PrepareContext) -> Source:
        """Say what is wrong before anything has started: no such topic or property, brokers that refuse. Brokers that do
        not answer may still come: the job starts, and fails and restarts as its restart strategy says."""
        there = first_look(self.plan.properties, f"source {context.uid!r}")
        if there is not None:
            self.plan.subscription.find(there)
        return self

    def create_enumerator(self, context: EnumeratorContext) -> SplitEnumerator:
        return KafkaEnumerator(self.plan, context)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return KafkaReader(
            self.plan.properties,
            self.messages.converter(context),
            context,
            fails_on_data_loss=self.plan.fails_on_data_loss,
        )

    def get_produced_type(self) -> TypeInformation | None:
        return self.messages.schema.get_produced_type()


class KafkaSourceBuilder:
    """Collects the settings of a KafkaSource: brokers, topics and a deserializer at least."""

    def __init__(self) -> None:
        self._properties: dict[str, str] = {}
        self._subscription: Subscription | None = None
        self._start = KafkaOffsetsInitializer.earliest()
        self._stop: KafkaOffsetsInitializer | None = None
        self._bounded = False
        self._schema: KafkaRecordDeserializationSchema | None = None
        self._policy = BadRecordPolicy.fail()
        self._most_per_epoch: int | None = None
        self._fails_on_data_loss = True

    def set_bootstrap_servers(self, bootstrap_servers: str) -> KafkaSourceBuilder:
        return self.set_property("bootstrap.servers", bootstrap_servers)

    def set_group_id(self, group_id: str) -> KafkaSourceBuilder:
        """Whose offsets are committed when a checkpoint is complete. It decides nothing about who reads what."""
        return self.set_property("group.id", group_id)

    def set_topics(self, *topics: str) -> KafkaSourceBuilder:
        if not topics or not all(isinstance(topic, str) and topic for topic in topics):
            raise ConfigurationError(f"set_topics() takes names of topics, not {topics!r:.200}")
        return self._subscribe(Subscription(topics=tuple(dict.fromkeys(topics))))

    def set_topic_pattern(self, topic_pattern: str) -> KafkaSourceBuilder:
        """All topics whose whole name matches this regular expression, those that come later too."""
        try:
            re.compile(topic_pattern)
        except re.error as error:
            raise ConfigurationError(
                f"the topic pattern {topic_pattern!r} is no regular expression: {error}"
            ) from error
        return self._subscribe(Subscription(pattern=topic_pattern))

    def set_partitions(self, partitions: set[KafkaTopicPartition]) -> KafkaSourceBuilder:
        return self._subscribe(Subscription(partitions=tuple(sorted(partitions))))

    def _subscribe(self, subscription: Subscription) -> KafkaSourceBuilder:
        if self._subscription is not None:
            raise ConfigurationError(
                "a KafkaSource reads topics, a pattern of them, or partitions: only one can be set"
            )
        self._subscription = subscription
        return self

    def set_starting_offsets(self, starting_offsets_initializer: KafkaOffsetsInitializer) -> KafkaSourceBuilder:
        """Where to start without a checkpoint; by default at the earliest record there is."""
        self._start = _initializer(starting_offsets_initializer)
        return self

    def set_unbounded(self, stopping_offsets_initializer: KafkaOffsetsInitializer) -> KafkaSourceBuilder:
        """Stop there, but run as a stream until then."""
        self._stop, self._bounded = _initializer(stopping_offsets_initializer), False
        return self

    def set_bounded(self, stopping_offsets_initializer: KafkaOffsetsInitializer) -> KafkaSourceBuilder:
        """Read up to there, and finish. Where that is, is found out once, when the job first looks."""
        self._stop, self._bounded = _initializer(stopping_offsets_initializer), True
        return self

    def set_value_only_deserializer(self, deserialization_schema: DeserializationSchema) -> KafkaSourceBuilder:
        """From the bytes of a message's value to a record. Messages without a value are left out."""
        return self.set_deserializer(ValueOnly(deserialization_schema))

    def set_deserializer(self, record_deserializer: KafkaRecordDeserializationSchema) -> KafkaSourceBuilder:
        """From a whole message, with key, headers and place, to a record."""
        if not isinstance(record_deserializer, KafkaRecordDeserializationSchema):
            raise ConfigurationError(
                f"set_deserializer() takes a KafkaRecordDeserializationSchema, not {record_deserializer!r:.200}"
            )
        self._schema = record_deserializer
        return self

    def set_bad_record_policy(self, policy: BadRecordPolicy) -> KafkaSourceBuilder:
        """What becomes of messages that the deserializer cannot read: by default they fail the job."""
        if not isinstance(policy, BadRecordPolicy):
            raise ConfigurationError(
                f"a BadRecordPolicy is needed, such as BadRecordPolicy.skip(), not {policy!r:.200}"
            )
        self._policy = policy
        return self

    def set_client_id_prefix(self, prefix: str) -> KafkaSourceBuilder:
        return self.set_property("client.id", prefix)

    def set_max_records_per_epoch(self, records: int) -> KafkaSourceBuilder:
        """A limit on what is read at once, on top of the one that adapts to how long epochs take."""
        if records < 1:
            raise ConfigurationError(f"an epoch has to read at least one record, not {records}")
        self._most_per_epoch = records
        return self

    def set_fail_on_data_loss(self, fail: bool) -> KafkaSourceBuilder:
        """Whether records that the broker deleted before they were read fail the job (the default) or are passed over."""
        self._fails_on_data_loss = fail
        return self

    def set_property(self, key: str, value: str) -> KafkaSourceBuilder:
        """A property of Kafka's consumer, or Flink's `partition.discovery.interval.ms` and `commit.offsets.on.checkpoint`."""
        self._properties[key] = str(value)
        return self

    def set_properties(self, props: Mapping[str, Any]) -> KafkaSourceBuilder:
        for key, value in props.items():
            self.set_property(key, value)
        return self

    def build(self) -> KafkaSource:
        """
        :raises ConfigurationError: there are no brokers, no topics or no deserializer.
        """
        if "bootstrap.servers" not in self._properties:
            raise ConfigurationError("a KafkaSource needs brokers: set_bootstrap_servers(...)")
        if self._subscription is None:
            raise ConfigurationError(
                "a KafkaSource needs topics: set_topics(...), set_topic_pattern(...) or set_partitions(...)"
            )
        if self._schema is None:
            raise ConfigurationError("a KafkaSource needs a deserializer: set_value_only_deserializer(...)")
        group = self._properties.get("group.id")
        if self._start.kind == "committed" and group is None:
            raise ConfigurationError("committed offsets are those of a consumer group: set_group_id(...)")
        interval = parse_duration_ms(self._properties.get("partition.discovery.interval.ms", _DISCOVERY_MS))
        plan = ReadingPlan(
            dict(self._properties),
            self._subscription,
            self._start,
            self._stop,
            group,
            self._properties.get("commit.offsets.on.checkpoint", "true").lower() != "false",
            None if self._bounded or interval <= 0 else interval / 1000,
            self._most_per_epoch,
            self._fails_on_data_loss,
        )
        return KafkaSource(plan, Messages(self._schema, self._policy), bounded=self._bounded)


def _initializer(value: Any) -> KafkaOffsetsInitializer:
    if not isinstance(value, KafkaOffsetsInitializer):
        raise ConfigurationError(f"offsets come from KafkaOffsetsInitializer, not {value!r:.200}")
    return value
