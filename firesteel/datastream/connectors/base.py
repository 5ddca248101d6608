"""What users derive their own sources and sinks from."""

from firesteel.connectors.base import (
    CHUNK,
    Aside,
    Assignment,
    Committer,
    CommitterContext,
    EnumeratorContext,
    Json,
    NumberedCommitter,
    ReaderContext,
    Sink,
    SinkWriter,
    Source,
    SourceReader,
    SplitEnumerator,
    Timestamped,
    WriterContext,
)
from firesteel.connectors.guarantee import DeliveryGuarantee

__all__ = [
    "CHUNK",
    "Aside",
    "Assignment",
    "Committer",
    "CommitterContext",
    "DeliveryGuarantee",
    "EnumeratorContext",
    "Json",
    "NumberedCommitter",
    "ReaderContext",
    "Sink",
    "SinkWriter",
    "Source",
    "SourceReader",
    "SplitEnumerator",
    "Timestamped",
    "WriterContext",
]
