"""What `transform_dataframe` is made of, apart from Spark: the user's function, and the rows it makes cut into ranges."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow
import pyarrow.parquet

from firesteel.connectors.base import Json
from firesteel.connectors.dataframe import DataFrame, Schema, SparkFrames


class FrameTransform:
    """A function of DataFrames, for the driver, and the columns of its input, for the slots."""

    def __init__(self, function: Callable[[DataFrame], DataFrame], schema: Schema) -> None:
        self.function, self.schema = function, schema
        self.columns: pyarrow.Schema | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"function": None, "schema": None, "columns": self.columns}

    def prepare(self, spark: SparkFrames) -> FrameTransform:
        prepared = copy.copy(self)
        prepared.function, prepared.schema = self.function, self.schema
        prepared.columns = spark.arrow_schema(self.schema)
        return prepared


def even_ranges(directory: str, parallelism: int) -> list[list[Json]]:
    """For each subtask its share of the rows in a directory of Parquet files, as ranges of a file source."""
    files = []
    for name in sorted(os.listdir(directory)):
        if name.endswith(".parquet") and not name.startswith((".", "_")):
            path = os.path.join(directory, name)
            files.append((path, os.path.getsize(path), pyarrow.parquet.read_metadata(path).num_rows))
    return _shares(files, parallelism)


def _shares(files: Sequence[tuple[str, int, int]], parallelism: int) -> list[list[Json]]:
    total = sum(rows for _, _, rows in files)
    shares: list[list[Json]] = []
    for subtask in range(parallelism):
        first, last = subtask * total // parallelism, (subtask + 1) * total // parallelism
        share: list[Json] = []
        before = 0
        for path, size, rows in files:
            start, stop = max(first - before, 0), min(last - before, rows)
            if start < stop:
                share.append({"path": path, "size": size, "start": start, "stop": stop})
            before += rows
        shares.append(share)
    return shares
