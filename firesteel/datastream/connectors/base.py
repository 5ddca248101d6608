"""What users derive their own sources and sinks from."""

from firesteel.connectors.base import (
    Assignment,
    Committer,
    CommitterContext,
    EnumeratorContext,
    ReaderContext,
    Sink,
    SinkWriter,
    Source,
    SourceReader,
    SplitEnumerator,
    WriterContext,
)
from firesteel.connectors.guarantee import DeliveryGuarantee

__all__ = [
    "Assignment",
    "Committer",
    "CommitterContext",
    "DeliveryGuarantee",
    "EnumeratorContext",
    "ReaderContext",
    "Sink",
    "SinkWriter",
    "Source",
    "SourceReader",
    "SplitEnumerator",
    "WriterContext",
]
