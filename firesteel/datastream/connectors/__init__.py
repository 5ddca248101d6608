"""Sources and sinks, under PyFlink's names."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from firesteel.datastream.connectors.base import DeliveryGuarantee, Sink, Source
from firesteel.datastream.connectors.datagen import DataGeneratorSource, GeneratorFunction, RateLimiterStrategy
from firesteel.datastream.connectors.file_system import (
    BucketAssigner,
    FileSink,
    FileSource,
    FileSourceBuilder,
    OutputFileConfig,
    RollingPolicy,
    StreamFormat,
    StreamingFileSink,
)
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.datastream.connectors.socket import SocketSource

if TYPE_CHECKING:
    from firesteel.datastream.connectors.jdbc import JdbcConnectionOptions as JdbcConnectionOptions
    from firesteel.datastream.connectors.jdbc import JdbcExecutionOptions as JdbcExecutionOptions
    from firesteel.datastream.connectors.jdbc import JdbcSink as JdbcSink
    from firesteel.datastream.connectors.kafka import FlinkKafkaConsumer as FlinkKafkaConsumer
    from firesteel.datastream.connectors.kafka import FlinkKafkaProducer as FlinkKafkaProducer
    from firesteel.datastream.connectors.kafka import KafkaSource as KafkaSource
    from firesteel.datastream.connectors.kafka import Semantic as Semantic

__all__ = [
    "BucketAssigner",
    "DataGeneratorSource",
    "DeliveryGuarantee",
    "FileSink",
    "FileSource",
    "FileSourceBuilder",
    "GeneratorFunction",
    "NumberSequenceSource",
    "OutputFileConfig",
    "RateLimiterStrategy",
    "RollingPolicy",
    "Sink",
    "SocketSource",
    "Source",
    "StreamFormat",
    "StreamingFileSink",
]

_FLINK1 = {
    "FlinkKafkaConsumer": "kafka",
    "FlinkKafkaProducer": "kafka",
    "JdbcConnectionOptions": "jdbc",
    "JdbcExecutionOptions": "jdbc",
    "JdbcSink": "jdbc",
    "KafkaRecordDeserializationSchema": "kafka",
    "KafkaSource": "kafka",
    "Semantic": "kafka",
}
"""What programs of Flink 1.x import from here -> its module today, which is not imported before somebody asks for it."""


def __getattr__(name: str) -> Any:
    if name not in _FLINK1:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_FLINK1[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_FLINK1})
