"""DataFrames on their way into a job and out of it: everything about that which needs Spark."""

from __future__ import annotations

import atexit
import contextlib
import re
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow
from pyspark import SparkContext
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark

from firesteel.connectors.dataframe_columns import SPARK_TYPE
from firesteel.engine import session, spark_private
from firesteel.engine.scratch import ScratchDir
from firesteel.errors import ConfigurationError, GraphError

_WRITING = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",  # INT96, the default, has no time zone and no year 3000
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",  # Python's calendar
    "spark.sql.parquet.writeLegacyFormat": "false",
}
"""How snapshots are written. There are no options of one write for these, only settings of its session."""

_ROW_GROUP = 8 * 1024 * 1024
"""Bytes. Row groups are what subtasks share, and one is in memory at a time."""

_settings_lock = threading.Lock()


class JobFrames:
    """The `SparkFrames` of one job.

    :param session: gives the job's session; raises when its JVM is gone.
    """

    def __init__(self, session: Callable[[], SparkSession], group: str) -> None:
        self._session, self._group = session, group

    # ---- in

    def dataframe(self, given: Any) -> DataFrame:
        session = self._session()
        check_frame(given)
        if isinstance(given, DataFrame):
            return self.checked(given, "from_dataframe()")
        return self.checked(given(session), "the function given to from_dataframe()")

    def checked(self, frame: Any, whence: str) -> DataFrame:
        """A DataFrame that `write` can write.

        :raises ConfigurationError: it is none.
        """
        session = self._session()
        if not isinstance(frame, DataFrame):
            raise ConfigurationError(f"{whence} must return a DataFrame of the job's session, not {frame!r:.200}")
        check_frame(frame)
        if frame.sparkSession.sparkContext is not session.sparkContext:
            raise ConfigurationError(
                f"the DataFrame of {whence} belongs to a Spark session that was stopped, and the job runs in another. Make it "
                f"anew, or give from_dataframe() a function of the session that makes it"
            )
        for field in frame.schema.fields:
            _check_readable(field.name, field.dataType)
        return frame

    def columns_of(self, frame: DataFrame) -> str:
        return ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in frame.schema.fields)

    def write(self, frame: DataFrame, directory: str, description: str) -> None:
        writer = frame.write.option("compression", "snappy").option("parquet.block.size", str(_ROW_GROUP))
        with _settings(frame.sparkSession):
            try:
                self.run(description, lambda: writer.parquet(f"file://{directory}"))
            except AnalysisException as error:
                raise ConfigurationError(f"the DataFrame cannot be read by a job: {error}") from error

    # ---- out

    def arrow_schema(self, schema: Any) -> pyarrow.Schema:
        return arrow_schema(struct_type(schema))

    def read(self, files: Sequence[str], schema: Any) -> DataFrame:
        return read_files(self._session(), files, struct_type(schema))

    def run(self, description: str, action: Callable[[], Any]) -> Any:
        with job_group(self._session().sparkContext, self._group, description):
            try:
                return action()
            except Exception:
                self._session()  # raises when the JVM is gone, which explains it better
                raise


def check_frame(frame: Any) -> None:
    """Refuse what cannot become a source, as early as it is given.

    :raises GraphError: it is neither a DataFrame nor a function, or a DataFrame that cannot be read to its end.
    """
    if isinstance(frame, DataFrame) and not spark_private.is_classic(frame):
        raise GraphError(
            "from_dataframe() cannot read a Spark Connect DataFrame: jobs run on a classic session, and this one lives in "
            "another process. Save it as a table or as files, and read those in the job's session: "
            "from_dataframe(lambda spark: spark.read.table(...))"
        )
    if isinstance(frame, DataFrame):
        if frame.isStreaming:
            raise GraphError(
                "from_dataframe() cannot read a streaming DataFrame: Spark would keep its positions in a checkpoint of its "
                "own, and exactly-once needs them in the job's. Read the same files, table or topic with a source of "
                "firesteel, or with spark.read in place of spark.readStream"
            )
    elif not callable(frame):
        raise GraphError(
            f"from_dataframe() takes a DataFrame, or a function from SparkSession to DataFrame, not {frame!r:.200}"
        )


def check_schema(schema: Any) -> None:
    """Refuse what is no schema. Whether a DDL string is one is known once Spark runs."""
    if isinstance(schema, spark.StructType):
        arrow_schema(schema)
    elif not isinstance(schema, str) or not schema.strip():
        raise GraphError(
            f"a schema is a DDL string such as 'id BIGINT, name STRING' or a pyspark StructType, not {schema!r:.200}"
        )


def struct_type(schema: Any) -> spark.StructType:
    """A schema as the user gave it. A DDL string is parsed by the running Spark."""
    if isinstance(schema, spark.StructType):
        return schema
    try:
        parsed = spark.StructType.fromDDL(schema)
    except Exception as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ConfigurationError(
            f"{schema!r} is not a schema that Spark understands ({first}). Write it like 'id BIGINT, name STRING'"
        ) from error
    if not isinstance(parsed, spark.StructType):
        raise ConfigurationError(f"{schema!r} is one type; a schema has named columns, like 'id BIGINT, name STRING'")
    return parsed


_GLOB, _ESCAPED = re.compile(r"([{}\[\]*?\\])"), r"\\\1"


def read_files(session: SparkSession, files: Sequence[str], schema: spark.StructType) -> DataFrame:
    if not files:
        return session.createDataFrame([], schema)
    reader = session.read.schema(schema).option("datetimeRebaseMode", "CORRECTED")
    # Spark takes paths for patterns. Its option against that, __globPaths__, reads each of n such files n times (4.3.0).
    return reader.parquet(*(f"file://{_GLOB.sub(_ESCAPED, file)}" for file in files))


# -- types ---------------------------------------------------------------------------------------------------

_PLAIN: dict[type[spark.DataType], pyarrow.DataType] = {
    spark.BooleanType: pyarrow.bool_(),
    spark.ByteType: pyarrow.int8(),
    spark.ShortType: pyarrow.int16(),
    spark.IntegerType: pyarrow.int32(),
    spark.LongType: pyarrow.int64(),
    spark.FloatType: pyarrow.float32(),
    spark.DoubleType: pyarrow.float64(),
    spark.StringType: pyarrow.string(),
    spark.CharType: pyarrow.string(),
    spark.VarcharType: pyarrow.string(),
    spark.BinaryType: pyarrow.binary(),
    spark.DateType: pyarrow.date32(),
    spark.TimestampType: pyarrow.timestamp("us", tz="UTC"),
    spark.TimestampNTZType: pyarrow.timestamp("us"),
    spark.NullType: pyarrow.null(),
}


def arrow_schema(schema: spark.StructType) -> pyarrow.Schema:
    """
    :raises ConfigurationError: a column has a type that records cannot be written as.
    """
    return pyarrow.schema([_arrow_field(field, field.name) for field in schema.fields])


def _check_readable(path: str, kind: spark.DataType) -> None:
    try:
        _arrow_type(kind, path)
    except ConfigurationError as error:
        raise ConfigurationError(f"the DataFrame cannot be read by a job: {error}") from None


def _arrow_field(field: spark.StructField, path: str) -> pyarrow.Field:
    return _named(field.name, field.dataType, path, field.nullable)


def _named(name: str, kind: spark.DataType, path: str, nullable: bool) -> pyarrow.Field:
    return pyarrow.field(name, _arrow_type(kind, path), nullable, {SPARK_TYPE: kind.simpleString()})


def _arrow_type(kind: spark.DataType, path: str) -> pyarrow.DataType:
    if type(kind) in _PLAIN:
        return _PLAIN[type(kind)]
    if isinstance(kind, spark.DecimalType):
        return pyarrow.decimal128(kind.precision, kind.scale)
    if isinstance(kind, spark.StructType):
        return pyarrow.struct([_arrow_field(field, f"{path}.{field.name}") for field in kind.fields])
    if isinstance(kind, spark.ArrayType):
        return pyarrow.list_(_named("element", kind.elementType, f"{path}[]", kind.containsNull))
    if isinstance(kind, spark.MapType):
        key = _named("key", kind.keyType, f"{path} key", nullable=False)
        return pyarrow.map_(key, _named("value", kind.valueType, f"{path} value", kind.valueContainsNull))
    raise ConfigurationError(
        f"column {path} is of the type {kind.simpleString()}, which has no plain Parquet form. Cast it, for example with "
        f"df.withColumn(name, col(name).cast('string'))"
    )


# -- manners in a session that is not ours -------------------------------------------------------------------


@contextlib.contextmanager
def _settings(session: SparkSession) -> Iterator[None]:
    with _settings_lock:
        before = {key: session.conf.get(key) for key in _WRITING}
        for key, value in _WRITING.items():
            session.conf.set(key, value)
        try:
            yield
        finally:
            for key, old in before.items():
                session.conf.set(key, old)  # type: ignore[arg-type]


_GROUP = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")


@contextlib.contextmanager
def job_group(sc: SparkContext, group: str, description: str) -> Iterator[None]:
    """Spark jobs of this thread belong to a group for a while."""
    before = [sc.getLocalProperty(key) for key in _GROUP]
    sc.setJobGroup(group, description, interruptOnCancel=False)
    try:
        yield
    finally:
        with contextlib.suppress(Exception):  # the JVM may be gone, which whatever happens next will say
            for key, value in zip(_GROUP, before, strict=True):
                sc.setLocalProperty(key, value)  # type: ignore[arg-type]


# -- results -------------------------------------------------------------------------------------------------

_scratch: ScratchDir | None = None
_scratch_lock = threading.Lock()


class Results:
    """Where a job's output becomes a DataFrame of this process's Spark."""

    def __init__(self, handle: session.SparkHandle, directory: str) -> None:
        self._handle, self.directory = handle, directory

    def read(self, files: Sequence[str], schema: Any) -> DataFrame:
        return read_files(self._handle.spark, files, struct_type(schema))


@contextlib.contextmanager
def open_results(parallelism: int, settings: Mapping[str, str], master: str | None) -> Iterator[Results]:
    """An empty directory that lasts as long as this process, and a hold on the session that will read it.

    The hold is kept when a DataFrame was made: whatever the user derives from it lives in that session, and nobody can
    know for how long.
    """
    handle = session.acquire(parallelism, settings, master)
    directory = _results_directory()
    try:
        yield Results(handle, directory)
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        handle.release()
        raise


def _results_directory() -> str:
    global _scratch
    with _scratch_lock:
        if _scratch is None:
            _scratch = ScratchDir.create()
            atexit.register(_scratch.remove)
        return tempfile.mkdtemp(prefix="result-", dir=_scratch.path)
