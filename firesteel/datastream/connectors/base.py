"""What users derive their own sources and sinks from."""

from firesteel.connectors.base import (
    CHUNK,
    Assignment,
    Committer,
    CommitterContext,
    EnumeratorContext,
    Json,
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
    "Assignment",
    "Committer",
    "CommitterContext",
    "DeliveryGuarantee",
    "EnumeratorContext",
    "Json",
    "ReaderContext",
    "Sink",
    "SinkWriter",
    "Source",
    "SourceReader",
    "SplitEnumerator",
    "Timestamped",
    "WriterContext",
]
