"""Printing a stream."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from firesteel.common.display import to_display
from firesteel.common.typeinfo import PickledBytesTypeInfo, TypeInformation
from firesteel.connectors.base import Sink, SinkWriter, WriterContext


class PrintSink(Sink):
    """Writes records to standard output (or standard error), which slots pass on to the driver's.

    As in Flink a line is `identifier:subtask> record`, with the subtask (from 1) only when there are several, and the
    record looks as its declared type looks in Flink: `(a,1)` for a declared tuple, `('a', 1)` for an undeclared one.
    """

    def __init__(
        self, identifier: str | None = None, type_info: TypeInformation | None = None, to_err: bool = False
    ) -> None:
        self.identifier = identifier
        self.type_info = type_info
        self.to_err = to_err

    def create_writer(self, context: WriterContext) -> SinkWriter:
        parts = [self.identifier] if self.identifier else []
        if context.parallelism > 1:
            parts.append(str(context.subtask + 1))
        return PrintWriter(f"{':'.join(parts)}> " if parts else "", self.type_info, self.to_err)


class PrintWriter(SinkWriter):
    """Looks up the stream at every call, because a slot puts its own in the place of the process's."""

    def __init__(self, prefix: str, type_info: TypeInformation | None, to_err: bool) -> None:
        self._prefix = prefix
        self._type_info = type_info if not isinstance(type_info, PickledBytesTypeInfo) else None
        self._to_err = to_err

    def write(self, values: Sequence[Any]) -> None:
        prefix, type_info = self._prefix, self._type_info
        if type_info is None:
            lines = [f"{prefix}{value!s}\n" for value in values]
        else:
            lines = [f"{prefix}{to_display(value, type_info)}\n" for value in values]
        (sys.stderr if self._to_err else sys.stdout).write("".join(lines))

    def flush(self) -> None:
        (sys.stderr if self._to_err else sys.stdout).flush()
