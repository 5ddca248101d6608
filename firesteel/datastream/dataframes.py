"""Spark at the edges of a program: what environments and streams can do with DataFrames.

Imports are made when they are needed, because slots load this module and most of them need neither Spark nor Arrow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from firesteel.common.typeinfo import TypeInformation
from firesteel.errors import GraphError
from firesteel.graph.nodes import FromFrame, Graph, Read, ToFrame, Write

if TYPE_CHECKING:
    from firesteel.common.watermark_strategy import WatermarkStrategy
    from firesteel.connectors.dataframe import DataFrame, Schema
    from firesteel.datastream.data_stream import DataStream, DataStreamSink
    from firesteel.datastream.environment import StreamExecutionEnvironment


class DataFrameSources:
    """What an environment can read with Spark."""

    def from_dataframe(
        self,
        dataframe: DataFrame | Callable[[Any], DataFrame],
        source_name: str = "DataFrame Source",
        type_info: TypeInformation | None = None,
        watermark_strategy: WatermarkStrategy | None = None,
    ) -> DataStream:
        """The rows of a Spark DataFrame, as `Row`s with its column names: all that `spark.read`, `spark.table` and
        `spark.sql` can read.

        The DataFrame is written to files in the job's directory when the job is started first; those are what is read, so
        positions in checkpoints stay true whatever happens to the tables behind it. A job that is started again under the
        same name reads the files it has. The order of rows is that of the files: as stable as the files are, and no order
        that the query had.

        :param dataframe: a DataFrame, or a function that is given the job's SparkSession when the job starts.
        :param type_info: declares the type of the records, as for any source.
        """
        from firesteel.client import check_frame
        from firesteel.connectors.dataframe import DataFrameSource

        check_frame(dataframe)
        env: StreamExecutionEnvironment = self  # type: ignore[assignment]
        return env.from_source(DataFrameSource(dataframe), watermark_strategy, source_name, type_info)


class DataFrameOperations:
    """What a stream can do with Spark."""

    def to_dataframe(self, schema: Schema, job_execution_name: str | None = None) -> DataFrame:
        """Run the program to its end and give this stream's records as a DataFrame of the job's SparkSession.

        Records are `Row`s, tuples, lists, dicts or dataclasses, or the bare values where there is one column. They are
        written by the slots and do not pass through the driver. The DataFrame lasts as long as this process, and keeps the
        embedded Spark that it lives in from being replaced by one with other settings.

        :param schema: a DDL string ("id BIGINT, name STRING") or a StructType.
        :raises GraphError: the program never ends by itself; use `foreach_dataframe` for its epochs.
        :raises TypeMismatchError: a record does not fit the schema.
        """
        from firesteel.client import check_schema, open_results
        from firesteel.connectors.dataframe_sink import ResultSink

        check_schema(schema)
        stream: DataStream = self  # type: ignore[assignment]
        env = stream._environment
        _refuse_unbounded(env.graph)
        settings = env.settings("")
        with open_results(env.get_parallelism(), settings.spark, settings.master) as results:
            sink = ResultSink(schema, results.directory)
            node = stream._end(Write(sink), "To DataFrame")._inputs[0].node
            try:
                env.execute(job_execution_name)
            finally:
                env.graph.remove(node)
            return results.read(sink.files(), schema)

    def foreach_dataframe(self, func: Callable[[DataFrame, int], Any], schema: Schema) -> DataStreamSink:
        """Call `func(dataframe, checkpoint_id)` on the driver with the records of every checkpoint.

        The contract is that of Spark's `foreachBatch`: after a failure `func` may be called again, with the same
        records and the same number, before it is called with any later one. A `func` that writes a number's records
        only once, for example by overwriting a partition or by MERGE with the number, makes the job exactly-once from
        end to end. If it raises, the job fails with its error and restarts as its restart strategy says.

        A checkpoint without records makes no call. Without checkpointing there is one call, at the end of the job. The
        DataFrame is valid until `func` returns, and `dataframe.sparkSession` is the job's session. `func` runs in a
        thread of the driver while the next epochs run, and is not sent to the slots: it may use any object it likes.

        :param schema: a DDL string ("id BIGINT, name STRING") or a StructType.
        """
        from firesteel.client import check_schema
        from firesteel.connectors.dataframe_sink import ForeachSink

        if not callable(func):
            raise GraphError(f"foreach_dataframe() takes a function of a DataFrame and a number, not {func!r:.200}")
        check_schema(schema)
        stream: DataStream = self  # type: ignore[assignment]
        return stream._end(Write(ForeachSink(func, schema)), "Foreach DataFrame")

    def transform_dataframe(
        self, func: Callable[[DataFrame], DataFrame], schema: Schema, output_type: TypeInformation | None = None
    ) -> DataStream:
        """Apply a DataFrame or SQL transformation to the records of each epoch: the rows of `func(dataframe)` go on, as
        `Row`s with its column names and without timestamps.

        `func` runs on the driver and only describes a query, which Spark runs on the files that the slots wrote: no record
        passes through Python on the way, or through the driver. It may join with other DataFrames of
        `dataframe.sparkSession`. Watermarks pass by it.

        An epoch is a slice of the input that Spark works on at once, of about a second; where it ends depends on
        the machine's speed, and after a failure it may end elsewhere. So use what looks at each record on its own
        (filters, projections, joins with tables), or what can be merged afterwards: partial sums by key, which a
        `key_by(...).reduce(...)` behind it adds up. Rows come in the order that Spark gives them. An epoch without
        records runs no query; one with records costs a Spark job and a query more: about 0.2 s on 2 cores.

        :param schema: of the records that come in, as for `to_dataframe`.
        :param output_type: declares the type of the rows that go on.
        """
        from firesteel.client import check_schema
        from firesteel.connectors.dataframe_transform import FrameTransform

        if not callable(func):
            raise GraphError(f"transform_dataframe() takes a function from DataFrame to DataFrame, not {func!r:.200}")
        check_schema(schema)
        stream: DataStream = self  # type: ignore[assignment]
        records = stream._then(ToFrame(FrameTransform(func, schema)), "To DataFrame", None)
        return records._then(FromFrame(), "Transform DataFrame", output_type)


def _refuse_unbounded(graph: Graph) -> None:
    for node in graph.nodes():
        if isinstance(node.operator, Read) and not node.operator.source.bounded:
            raise GraphError(
                f"to_dataframe() gives a DataFrame when the program has ended, and the source '{node.name}' (defined at "
                f"{node.defined_at}) never ends. Use foreach_dataframe(func, schema) to get a DataFrame for every checkpoint"
            )
