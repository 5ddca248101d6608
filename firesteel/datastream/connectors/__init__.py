"""Sources and sinks, under PyFlink's names."""

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
