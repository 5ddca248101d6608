"""Kafka under the names of Flink 1.x. Today: `KafkaSource` and `KafkaSink`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any

from firesteel.common.serialization import DeserializationSchema, SerializationSchema
from firesteel.connectors.guarantee import DeliveryGuarantee
from firesteel.connectors.kafka_offsets import KafkaOffsetResetStrategy, KafkaOffsetsInitializer
from firesteel.connectors.kafka_records import KafkaRecordSerializationSchema
from firesteel.connectors.kafka_sink import KafkaSink
from firesteel.connectors.kafka_source import KafkaSource
from firesteel.errors import ConfigurationError


class FlinkKafkaConsumer(KafkaSource):
    """Reads topics from what the group has committed, unless told otherwise. Give it to `env.add_source(...)`."""

    def __init__(
        self,
        topics: str | Sequence[str],
        deserialization_schema: DeserializationSchema,
        properties: Mapping[str, Any],
    ) -> None:
        _renamed("FlinkKafkaConsumer", "KafkaSource")
        made = KafkaSource.builder().set_value_only_deserializer(deserialization_schema).set_properties(properties)
        built = made.set_topics(*([topics] if isinstance(topics, str) else topics)).build()
        super().__init__(built.plan, built.messages, bounded=False)
        if self.plan.group is not None:
            self.set_start_from_group_offsets()

    def set_commit_offsets_on_checkpoints(self, commit_on_checkpoints: bool) -> FlinkKafkaConsumer:
        return self._with(commits_offsets=commit_on_checkpoints)

    def set_start_from_earliest(self) -> FlinkKafkaConsumer:
        return self._with(start=KafkaOffsetsInitializer.earliest())

    def set_start_from_latest(self) -> FlinkKafkaConsumer:
        return self._with(start=KafkaOffsetsInitializer.latest())

    def set_start_from_timestamp(self, startup_offsets_timestamp: int) -> FlinkKafkaConsumer:
        return self._with(start=KafkaOffsetsInitializer.timestamp(startup_offsets_timestamp))

    def set_start_from_group_offsets(self) -> FlinkKafkaConsumer:
        """Partitions without a committed offset start as the property `auto.offset.reset` says: at the latest by default."""
        if self.plan.group is None:
            raise ConfigurationError("group offsets are those of a consumer group: set the property group.id")
        reset = KafkaOffsetResetStrategy[self.plan.properties.get("auto.offset.reset", "latest").upper()]
        return self._with(start=KafkaOffsetsInitializer.committed_offsets(reset))

    def disable_filter_restored_partitions_with_subscribed_topics(self) -> FlinkKafkaConsumer:
        raise ConfigurationError("partitions of a checkpoint whose topics are not read any more are always left out")

    def _with(self, **changes: Any) -> FlinkKafkaConsumer:
        self.plan = replace(self.plan, **changes)
        return self


class Semantic(Enum):
    """Today: `DeliveryGuarantee`."""

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1
    NONE = 2


class FlinkKafkaProducer(KafkaSink):
    """Writes to one topic. Give it to `stream.add_sink(...)`."""

    def __init__(
        self,
        topic: str,
        serialization_schema: SerializationSchema,
        producer_config: Mapping[str, Any],
        kafka_producer_pool_size: int = 5,
        semantic: Semantic = Semantic.AT_LEAST_ONCE,
    ) -> None:
        """
        :param kafka_producer_pool_size: not needed: there are as many producers as there are checkpoints on their way.
        """
        _renamed("FlinkKafkaProducer", "KafkaSink")
        schema = KafkaRecordSerializationSchema.builder().set_topic(topic)
        schema.set_value_serialization_schema(serialization_schema)
        made = KafkaSink.builder().set_record_serializer(schema.build())
        for key, value in producer_config.items():
            made.set_property(key, value)
        built = made.build()
        guarantee = DeliveryGuarantee[semantic.name]
        super().__init__(built.properties, built.schema, guarantee, built.transactional_id_prefix)

    def set_log_failures_only(self, log_failures_only: bool) -> FlinkKafkaProducer:
        if log_failures_only:
            raise ConfigurationError("a record that could not be written always fails the job; or choose Semantic.NONE")
        return self

    def set_flush_on_checkpoint(self, flush_on_checkpoint: bool) -> FlinkKafkaProducer:
        if not flush_on_checkpoint:
            self._guarantee = DeliveryGuarantee.NONE
        return self

    def set_write_timestamp_to_kafka(self, write_timestamp_to_kafka: bool) -> FlinkKafkaProducer:
        if write_timestamp_to_kafka:
            raise ConfigurationError(
                "a sink does not see the timestamps of records: use KafkaSink, and "
                "KafkaRecordSerializationSchema.builder().set_timestamp_selector(...) to take them from the records"
            )
        return self


def _renamed(old: str, new: str) -> None:
    warnings.warn(f"{old} is {new} today", DeprecationWarning, stacklevel=3)
