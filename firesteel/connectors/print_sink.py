"""Printing a stream."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from firesteel.common.display import to_display
from firesteel.connectors.base import Sink, SinkWriter, WriterContext


class PrintSink(Sink):
    """Writes records to standard output, which slots pass on to the driver's.

    As in Flink a line is `identifier:subtask> record`, with the subtask (from 1) only when there are several.
    """

    def __init__(self, identifier: str | None = None) -> None:
        self.identifier = identifier

    def create_writer(self, context: WriterContext) -> SinkWriter:
        parts = [self.identifier] if self.identifier else []
        if context.parallelism > 1:
            parts.append(str(context.subtask + 1))
        return PrintWriter(f"{':'.join(parts)}> " if parts else "")


class PrintWriter(SinkWriter):
    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def write(self, values: Sequence[Any]) -> None:
        prefix = self._prefix
        sys.stdout.write("".join([f"{prefix}{to_display(value)}\n" for value in values]))

    def flush(self) -> None:
        sys.stdout.flush()
