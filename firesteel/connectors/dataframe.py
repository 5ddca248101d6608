"""DataFrames into a job. What needs Spark itself is in `engine/dataframes.py`, behind `SparkFrames`."""

from __future__ import annotations

import json
import os
import re
import shutil
import uuid
from collections.abc import Callable, Sequence
from typing import Any, Protocol
from urllib.parse import urlsplit

import pyarrow

from firesteel.common.durable import sync_directory, write_durable
from firesteel.connectors.base import (
    EnumeratorContext,
    PrepareContext,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
)
from firesteel.connectors.dataframe_rows import DataFrameFormat
from firesteel.connectors.file_source import FileSource
from firesteel.connectors.part_names import short_hash
from firesteel.errors import ConfigurationError, RestoreError

DataFrame = Any
"""A pyspark.sql.DataFrame."""
Schema = Any
"""A DDL string ("id BIGINT, name STRING") or a pyspark.sql.types.StructType."""

SPLIT_SIZE = 8 * 1024 * 1024
"""Snapshots are cut finer than other files: how many a DataFrame has is the chance of its query plan."""

_SNAPSHOT = "_snapshot"


class SparkFrames(Protocol):
    """What the job's Spark does for connectors, on the driver."""

    def dataframe(self, given: DataFrame | Callable[[Any], DataFrame]) -> DataFrame:
        """The DataFrame, made by the function if it is one, after a check that a job can read it."""

    def columns_of(self, frame: DataFrame) -> str:
        """Its schema as text, for comparison."""

    def write(self, frame: DataFrame, directory: str, description: str) -> None:
        """Write it as Parquet files that `DataFrameFormat` reads."""

    def arrow_schema(self, schema: Schema) -> pyarrow.Schema:
        """The Arrow columns that `read` will read as this schema."""

    def read(self, files: Sequence[str], schema: Schema) -> DataFrame:
        """A DataFrame over Parquet files that were written with `arrow_schema`."""

    def run(self, description: str, action: Callable[[], Any]) -> Any:
        """Call a function whose Spark jobs are to carry this description, and be cancelled with the job."""


class DataFrameSource(Source):
    """The rows of a DataFrame, as they were when the job was started first.

    A query need not give the same rows in the same order twice, and a checkpoint's positions must. So the DataFrame is
    written to Parquet files in the job's directory before the job starts, and those are what is read: in parallel, from
    any position again, and without passing through the driver. A job that is started again reads the files it has.
    """

    def __init__(self, frame: DataFrame | Callable[[Any], DataFrame]) -> None:
        self.frame = frame

    def __getstate__(self) -> dict[str, Any]:
        return {"frame": None}  # slots have no use for it, and it cannot be pickled

    def prepare(self, context: PrepareContext) -> Source:
        path = os.path.join(local_directory(context), "inputs", directory_name(context.uid))
        if os.path.exists(os.path.join(path, _SNAPSHOT)):
            self._check_snapshot(context, path)
        else:
            self._take_snapshot(context, path)
        return FileSource(DataFrameFormat(), (path,), SPLIT_SIZE)

    def _check_snapshot(self, context: PrepareContext, path: str) -> None:
        if _is_recipe(self.frame):
            return  # not called: what it would read may have changed or be gone
        with open(os.path.join(path, _SNAPSHOT)) as file:
            before = json.load(file)["columns"]
        now = context.spark.columns_of(context.spark.dataframe(self.frame))
        if now != before:
            raise RestoreError(
                f"source {context.uid!r} was a DataFrame with the columns {before} when the job was started first, and has "
                f"{now} now. The job reads what it had then (in {path}); to read the new one, give the source another "
                f"uid(...) or the job another name"
            )

    def _take_snapshot(self, context: PrepareContext, path: str) -> None:
        frame = context.spark.dataframe(self.frame)
        inputs, name = os.path.split(path)
        os.makedirs(inputs, exist_ok=True)
        draft = os.path.join(inputs, f".{name}-{uuid.uuid4().hex}")
        try:
            context.spark.write(frame, draft, f"reading {context.uid}")
            write_durable(
                os.path.join(draft, _SNAPSHOT),
                json.dumps({"uid": context.uid, "columns": context.spark.columns_of(frame)}).encode(),
            )
            sync_files(draft)
            try:
                os.rename(draft, path)
            except OSError:
                if not os.path.exists(os.path.join(path, _SNAPSHOT)):
                    raise
                # another driver of this job was faster, and its files are what the job reads
            sync_directory(inputs)
        finally:
            for left in os.listdir(inputs):  # of drivers that were killed while they wrote, and ours if it failed
                if left.startswith(f".{name}-"):
                    shutil.rmtree(os.path.join(inputs, left), ignore_errors=True)

    def create_enumerator(self, context: EnumeratorContext) -> SplitEnumerator:
        raise self._unprepared(context.uid)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        raise self._unprepared(context.uid)

    def _unprepared(self, uid: str) -> ConfigurationError:
        return ConfigurationError(
            f"source {uid!r} reads a DataFrame, which takes Spark: run the program with execute()"
        )


def _is_recipe(frame: Any) -> bool:
    """Whether it is a function that makes the DataFrame."""
    return callable(frame) and not hasattr(frame, "schema")


def local_directory(context: PrepareContext) -> str:
    """The job's directory, for Parquet files that Spark writes and slots read.

    :raises ConfigurationError: it is in an object store.
    """
    if "://" in context.directory:
        raise ConfigurationError(
            f"{context.uid!r} keeps Parquet files in the directory of its job, which has to be a directory of this machine "
            f"then: set execution.checkpointing.dir to a path instead of {urlsplit(context.directory).scheme}://..."
        )
    return context.directory


def directory_name(uid: str) -> str:
    """A directory for an operator, whatever characters its uid has."""
    slug = re.sub(r"[^A-Za-z0-9_-]+", "-", uid).strip("-_")[:40] or "operator"
    return f"{slug}-{short_hash(uid)[:8]}"


def sync_files(directory: str) -> None:
    """Make all files of a directory durable, and their names."""
    for name in os.listdir(directory):
        with open(os.path.join(directory, name), "rb") as file:
            os.fsync(file.fileno())
    sync_directory(directory)
