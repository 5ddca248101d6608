"""Sources and sinks, under PyFlink's names."""

from firesteel.datastream.connectors.base import DeliveryGuarantee, Sink, Source
from firesteel.datastream.connectors.file_system import (
    FileSink,
    FileSource,
    FileSourceBuilder,
    OutputFileConfig,
    RollingPolicy,
    StreamFormat,
)
from firesteel.datastream.connectors.number_seq import NumberSequenceSource

__all__ = [
    "DeliveryGuarantee",
    "FileSink",
    "FileSource",
    "FileSourceBuilder",
    "NumberSequenceSource",
    "OutputFileConfig",
    "RollingPolicy",
    "Sink",
    "Source",
    "StreamFormat",
]
