"""PyFlink's home of the Kafka source and sink."""

from firesteel.connectors.bad_records import BadRecord, BadRecordPolicy
from firesteel.connectors.kafka_flink1 import FlinkKafkaConsumer, FlinkKafkaProducer, Semantic
from firesteel.connectors.kafka_messages import KafkaRecord, KafkaRecordDeserializationSchema
from firesteel.connectors.kafka_offsets import KafkaOffsetResetStrategy, KafkaOffsetsInitializer, KafkaTopicPartition
from firesteel.connectors.kafka_records import (
    KafkaProducerRecord,
    KafkaRecordSerializationSchema,
    KafkaRecordSerializationSchemaBuilder,
    KafkaTopicSelector,
)
from firesteel.connectors.kafka_sink import KafkaSink, KafkaSinkBuilder
from firesteel.connectors.kafka_source import KafkaSource, KafkaSourceBuilder

__all__ = [
    "BadRecord",
    "BadRecordPolicy",
    "FlinkKafkaConsumer",
    "FlinkKafkaProducer",
    "KafkaOffsetResetStrategy",
    "KafkaOffsetsInitializer",
    "KafkaProducerRecord",
    "KafkaRecord",
    "KafkaRecordDeserializationSchema",
    "KafkaRecordSerializationSchema",
    "KafkaRecordSerializationSchemaBuilder",
    "KafkaSink",
    "KafkaSinkBuilder",
    "KafkaSource",
    "KafkaSourceBuilder",
    "KafkaTopicPartition",
    "KafkaTopicSelector",
    "Semantic",
]
