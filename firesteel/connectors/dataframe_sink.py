"""DataFrames out of a job: records become Parquet files, and a checkpoint's files a DataFrame.

The life of a file of `foreach_dataframe`, and where it can stop:

1. `prepare_commit` ends the file and describes it. The checkpoint fails: the next one carries the committable.
2. The checkpoint is complete; `commit_checkpoint` calls the user's function with a DataFrame over its files. The driver
   dies before the checkpoint is confirmed, or the function raises: recovery calls it again, with the same files and number.
3. The checkpoint is confirmed: `sweep` deletes the file, and whatever dead incarnations left behind.
"""

from __future__ import annotations

import contextlib
import copy
import os
import re
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow
import pyarrow.parquet

from firesteel.common.durable import sync_directory
from firesteel.connectors.base import (
    Committer,
    CommitterContext,
    Json,
    NumberedCommitter,
    PrepareContext,
    Sink,
    SinkWriter,
    WriterContext,
)
from firesteel.connectors.dataframe import DataFrame, Schema, SparkFrames, directory_name, local_directory
from firesteel.connectors.dataframe_columns import RecordColumns
from firesteel.connectors.user_code import user_error
from firesteel.errors import CheckpointError, ConfigurationError, RestoreError

ROW_GROUP = 64 * 1024
"""Records in memory before they are written."""

_PART = re.compile(r"part-(\d+)-\d+-\d+\.parquet")


class DataFrameSink(Sink):
    """Base of the sinks whose output is read by Spark: a directory of Parquet files with a given schema."""

    kind: str

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.directory: str | None = None
        self.columns: pyarrow.Schema | None = None
        self.spark: SparkFrames | None = None

    def __getstate__(self) -> dict[str, Any]:
        """For the slots: where to write, and what."""
        return {"schema": None, "directory": self.directory, "columns": self.columns, "spark": None}

    def prepare(self, context: PrepareContext) -> Sink:
        prepared = copy.copy(self)
        prepared.__dict__ |= vars(self)  # also what slots do not get
        prepared.spark = context.spark
        prepared.columns = context.spark.arrow_schema(self.schema)
        prepared.directory = self._place(context)
        os.makedirs(prepared.directory, exist_ok=True)
        _check_columns(prepared.directory, prepared.columns, context.uid)
        return prepared

    def _place(self, context: PrepareContext) -> str:
        return os.path.join(local_directory(context), self.kind, directory_name(context.uid))

    def create_writer(self, context: WriterContext) -> SinkWriter:
        if self.directory is None or self.columns is None:
            raise ConfigurationError(
                f"sink {context.uid!r} makes DataFrames, which takes Spark: run the program with execute()"
            )
        return ParquetWriter(self.directory, self.columns, context)


class ResultSink(DataFrameSink):
    """What `to_dataframe` reads when the job has ended.

    In the job's directory if that lasts, because a job that is started again adds to what it has committed before.
    """

    kind = "results"

    def __init__(self, schema: Schema, temporary: str) -> None:
        super().__init__(schema)
        self._temporary = temporary

    def _place(self, context: PrepareContext) -> str:
        self.directory = super()._place(context) if context.lasting else self._temporary
        return self.directory

    def create_committer(self, context: CommitterContext) -> Committer:
        assert self.directory is not None
        return ResultCommitter(self.directory, context)

    def files(self) -> list[str]:
        """What the job has committed."""
        assert self.directory is not None
        names = sorted(os.listdir(self.directory))
        return [os.path.join(self.directory, name) for name in names if name.endswith(_COMMITTED)]


class ForeachSink(DataFrameSink):
    """Calls a function on the driver with the records of every checkpoint, as a DataFrame."""

    kind = "epochs"

    def __init__(self, function: Callable[[DataFrame, int], Any], schema: Schema) -> None:
        super().__init__(schema)
        self.function = function

    def create_committer(self, context: CommitterContext) -> NumberedCommitter:
        assert self.directory is not None and self.spark is not None
        return ForeachCommitter(self.directory, context, self.function, self.schema, self.spark)


class ParquetWriter(SinkWriter):
    """Writes one file from barrier to barrier, and none when there are no records."""

    def __init__(self, directory: str, columns: pyarrow.Schema, context: WriterContext) -> None:
        self._directory, self._context = directory, context
        self._columns = RecordColumns(columns)
        self._waiting: list[pyarrow.Table] = []
        self._rows = 0
        self._sequence = 0
        self._path = ""
        self._file: Any = None

    def write(self, values: Sequence[Any]) -> None:
        if not values:
            return
        self._waiting.append(self._columns.table(values))
        self._rows += len(values)
        if self._rows >= ROW_GROUP:
            self._drain()

    def _drain(self) -> None:
        if self._waiting:
            if self._file is None:
                self._open()
            self._file.write_table(pyarrow.concat_tables(self._waiting), row_group_size=2 * ROW_GROUP)
            self._waiting, self._rows = [], 0

    def _open(self) -> None:
        context = self._context
        while True:
            name = f"part-{context.incarnation}-{context.subtask}-{self._sequence}.parquet"
            self._path = os.path.join(self._directory, name)
            self._sequence += 1
            # taken only if this incarnation's writer was made twice, and then not ours to overwrite
            if not os.path.exists(self._path):
                break
        self._file = pyarrow.parquet.ParquetWriter(self._path, self._columns.schema, store_schema=False)

    def prepare_commit(self) -> list[Json]:
        self._drain()
        if self._file is None:
            return []
        self._file.close()
        self._file = None
        return [{"file": os.path.basename(self._path), "size": os.path.getsize(self._path)}]

    def persist(self, committables: Sequence[Json]) -> None:
        for committable in committables:
            with open(os.path.join(self._directory, committable["file"]), "rb") as file:
                os.fsync(file.fileno())
        if committables:
            sync_directory(self._directory)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
            _unlink(self._path)


class PartsCommitter(NumberedCommitter):
    """The files of one directory: which of them nobody needs any more."""

    def __init__(self, directory: str, context: CommitterContext) -> None:
        self._directory, self._context = directory, context
        self._done: set[str] = set()

    def _path(self, committable: Json) -> str:
        return os.path.join(self._directory, committable["file"])

    def _check(self, committable: Json) -> str:
        path = self._path(committable)
        try:
            size = os.path.getsize(path)
        except FileNotFoundError:
            raise CheckpointError(
                f"sink {self._context.uid!r} cannot commit: {path!r} is gone; did another program delete it?"
            ) from None
        if size != committable["size"]:
            raise CheckpointError(
                f"sink {self._context.uid!r} cannot commit: {path!r} should have {committable['size']} bytes and has {size}"
            )
        return path

    def abort(self, committables: Sequence[Json]) -> None:
        for committable in committables:
            _unlink(self._path(committable))

    def sweep(self, keep: Sequence[Json]) -> None:
        kept = {committable["file"] for committable in keep}
        for name in os.listdir(self._directory):
            part = _PART.fullmatch(name)
            if part and name not in kept and (name in self._done or int(part[1]) < self._context.incarnation):
                _unlink(os.path.join(self._directory, name))
        self._done.clear()


_COMMITTED = ".committed.parquet"


class ResultCommitter(PartsCommitter, Committer):
    """Renames, so that a file is either one of the results or swept."""

    def commit(self, committables: Sequence[Json]) -> None:
        for committable in committables:
            final = self._path(committable).removesuffix(".parquet") + _COMMITTED
            if not os.path.exists(final):
                os.rename(self._check(committable), final)
        sync_directory(self._directory)


class ForeachCommitter(PartsCommitter):
    """Committing is calling the user's function."""

    retried = False  # an error in the user's code is the job's failure, as in any other function

    def __init__(
        self,
        directory: str,
        context: CommitterContext,
        function: Callable[[DataFrame, int], Any],
        schema: Schema,
        spark: SparkFrames,
    ) -> None:
        super().__init__(directory, context)
        self._function, self._schema, self._spark = function, schema, spark

    def commit_checkpoint(self, checkpoint: int, committables: Sequence[Json]) -> None:
        files = [self._check(committable) for committable in committables]

        def call() -> None:
            frame = self._spark.read(files, self._schema)
            try:
                self._function(frame, checkpoint)
            except Exception as error:
                where = f"in foreach_dataframe (uid {self._context.uid}) with checkpoint {checkpoint}, on the driver"
                raise user_error(error, where) from error

        self._spark.run(f"foreach_dataframe {self._context.uid}, checkpoint {checkpoint}", call)
        self._done.update(committable["file"] for committable in committables)


def _check_columns(directory: str, columns: pyarrow.Schema, uid: str) -> None:
    """What an earlier start of the job has written will be read with this schema too."""
    for name in os.listdir(directory):
        with contextlib.suppress(pyarrow.ArrowInvalid, FileNotFoundError):  # cut short by a crash: it will be swept
            before = pyarrow.parquet.read_schema(os.path.join(directory, name)).names
            if before != columns.names:
                raise RestoreError(
                    f"sink {uid!r} had the columns {', '.join(before)} when the job was started before (its output is in "
                    f"{directory}), and has {', '.join(columns.names)} now. Give it another uid(...), or the job another name"
                )


def _unlink(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
