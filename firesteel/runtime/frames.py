"""A slot's part in `transform_dataframe`: records into a file at one level, rows out of files at the next.

Between the two levels the driver runs the user's query. See engine/transforms.py.
"""

from __future__ import annotations

import os
from typing import Any

from firesteel.connectors.base import Json, ReaderContext
from firesteel.connectors.dataframe_rows import DataFrameFormat
from firesteel.connectors.dataframe_sink import ParquetWriter
from firesteel.connectors.dataframe_transform import FrameTransform
from firesteel.connectors.file_source import FileSourceReader
from firesteel.errors import ConfigurationError, TypeMismatchError
from firesteel.graph.plan import PlannedOperator
from firesteel.runtime.failures import on_record
from firesteel.runtime.flow import Receiver, Times, Values


class FrameInput:
    """Takes an epoch's records of one subtask."""

    def __init__(self, operator: PlannedOperator, transform: FrameTransform, context: ReaderContext) -> None:
        self.operator = operator
        self._columns, self._context = transform.columns, context
        self._writer: Any = None

    def begin(self, directory: str | None, ranges: list[Json]) -> None:
        """A new epoch, whose files go below this directory."""
        if directory is None or self._columns is None:
            raise ConfigurationError(f"{self.operator} runs queries, which takes Spark: run the program with execute()")
        self._writer = ParquetWriter(os.path.join(directory, str(self.operator.id)), self._columns, self._context)

    def push(self, values: Values, times: Times) -> None:
        try:
            self._writer.write(values)
        except TypeMismatchError as error:
            raise on_record(self.operator, error.record, error) from error

    def finish(self) -> str | None:
        """The epoch's file, if there were records."""
        written: list[Json] = self._writer.prepare_commit()
        return written[0]["file"] if written else None


class FrameOutput:
    """Gives out one subtask's share of the rows that the query made."""

    def __init__(self, operator: PlannedOperator, target: Receiver) -> None:
        self.operator, self._target = operator, target
        self._reader = FileSourceReader(DataFrameFormat())

    def begin(self, directory: str | None, ranges: list[Json]) -> None:
        try:
            for planned in ranges:
                for rows in self._reader.read(planned):
                    self._target.push(rows, None)
        finally:
            self._reader.close()  # the files go with the epoch

    def finish(self) -> str | None:
        return None
