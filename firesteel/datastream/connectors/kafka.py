"""PyFlink's home of the Kafka source and sink."""

from firesteel.connectors.kafka_messages import KafkaRecord, KafkaRecordDeserializationSchema
from firesteel.connectors.kafka_offsets import KafkaOffsetResetStrategy, KafkaOffsetsInitializer, KafkaTopicPartition
from firesteel.connectors.kafka_source import KafkaSource, KafkaSourceBuilder

__all__ = [
    "KafkaOffsetResetStrategy",
    "KafkaOffsetsInitializer",
    "KafkaRecord",
    "KafkaRecordDeserializationSchema",
    "KafkaSource",
    "KafkaSourceBuilder",
    "KafkaTopicPartition",
]
