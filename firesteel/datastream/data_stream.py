"""Streams as a program describes them. Every method adds to the environment's graph and runs nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, overload

from firesteel.common.typeinfo import PickledBytesTypeInfo, TupleTypeInfo, TypeInformation, Types
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.connectors.base import Sink
from firesteel.connectors.file_sink import sink_for
from firesteel.connectors.function_sink import SinkFunctionSink
from firesteel.connectors.print_sink import PrintSink
from firesteel.datastream.broadcast_stream import BroadcastConnectedStream, BroadcastStream, check_descriptors
from firesteel.datastream.collecting import CloseableIterator
from firesteel.datastream.dataframes import DataFrameOperations
from firesteel.datastream.described import DataStreamSink, Described
from firesteel.datastream.fields import Field, check_field
from firesteel.datastream.flink1 import Flink1Stream, TimestampsAndWatermarks
from firesteel.datastream.functions import (
    FilterFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    Partitioner,
    ProcessFunction,
    SinkFunction,
)
from firesteel.datastream.given import OutputType, Projection, check_function, check_output_type, same
from firesteel.datastream.key_selection import Selector, key_selection
from firesteel.datastream.output_tag import OutputTag
from firesteel.datastream.state import MapStateDescriptor
from firesteel.datastream.windowed_stream import AllWindowedStream, WindowedStream
from firesteel.datastream.windowing import WindowOperations
from firesteel.errors import GraphError
from firesteel.graph.nodes import (
    AssignTimestamps,
    Chaining,
    Collect,
    Filter,
    FlatMap,
    Input,
    Map,
    Operator,
    Partitioning,
    Process,
    Write,
)

if TYPE_CHECKING:
    from firesteel.common.execution_config import ExecutionConfig
    from firesteel.datastream.environment import StreamExecutionEnvironment

__all__ = ["AllWindowedStream", "BroadcastConnectedStream", "BroadcastStream", "CloseableIterator", "ConnectedStreams"]
__all__ += ["DataStream", "DataStreamSink", "KeyedStream", "WindowedStream"]

Self = TypeVar("Self", bound="DataStream")


class DataStream(DataFrameOperations, Flink1Stream, WindowOperations, Described):
    """A stream of records."""

    def __init__(
        self,
        environment: StreamExecutionEnvironment,
        inputs: tuple[Input, ...],
        type_info: TypeInformation | None = None,
    ) -> None:
        """
        :param inputs: the edges that an operator on this stream has.
        :param type_info: the records' type; None when it is what their operator declares.
        """
        super().__init__(environment, inputs)
        declared = type_info or environment.graph[inputs[0].node].output_type
        self._type = None if isinstance(declared, PickledBytesTypeInfo) else declared

    # ---- about the stream

    def get_name(self) -> str:
        return self._environment.graph[self._operator("get_name()")].name

    def get_id(self) -> int:
        """The operator's number in the graph."""
        return self._operator("get_id()")

    def get_parallelism(self) -> int:
        node = self._environment.graph[self._operator("get_parallelism()")]
        return node.parallelism or self._environment.get_parallelism()

    def get_type(self) -> TypeInformation:
        """The records' type as declared; `Types.PICKLED_BYTE_ARRAY()`, which is anything, when it is not."""
        return self._type or Types.PICKLED_BYTE_ARRAY()

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        return self._environment

    def get_execution_config(self) -> ExecutionConfig:
        return self._environment.get_config()

    # ---- settings of the operator

    def force_non_parallel(self: Self) -> Self:
        return self.set_parallelism(1).set_max_parallelism(1)

    def start_new_chain(self: Self) -> Self:
        """Begin a level (a Spark stage) with this operator; what follows it may be in the same one."""
        return self._change("start_new_chain()", chaining=Chaining.HEAD)

    def set_buffer_timeout(self: Self, timeout_millis: int) -> Self:
        """Accepted without effect: records wait for no buffer, but for the end of their epoch."""
        if not isinstance(timeout_millis, int) or timeout_millis < -1:
            raise GraphError(f"a buffer timeout must be at least -1 ms, not {timeout_millis!r}")
        return self._change("set_buffer_timeout()")

    def cache(self) -> DataStream:
        """Not supported: Flink caches results of batch jobs only."""
        raise GraphError(
            "cache() keeps a batch job's results for later jobs, and firesteel's jobs are streams. Write the stream to "
            "files with sink_to(FileSink...) and read them in the other job"
        )

    # ---- transformations

    def map(self, func: Callable[[Any], Any] | MapFunction, output_type: OutputType = None) -> DataStream:
        """One output for each input."""
        return self._then(Map(check_function(func, MapFunction, "map")), "Map", output_type)

    def flat_map(self, func: Callable[[Any], Any] | FlatMapFunction, output_type: OutputType = None) -> DataStream:
        """Any number of outputs for each input."""
        return self._then(FlatMap(check_function(func, FlatMapFunction, "flat_map")), "Flat Map", output_type)

    def filter(self, func: Callable[[Any], bool] | FilterFunction) -> DataStream:
        """The inputs for which the function holds."""
        return self._then(Filter(check_function(func, FilterFunction, "filter")), "Filter", self._type)

    def process(self, func: ProcessFunction, output_type: OutputType = None) -> DataStream:
        """The general operator."""
        if not isinstance(func, ProcessFunction):
            hint = "; call key_by(...) first" if isinstance(func, KeyedProcessFunction) else ""
            raise GraphError(
                f"process() on a stream that is not keyed takes a ProcessFunction, not {func!r:.200}{hint}"
            )
        return self._then(Process(func), "Process", output_type)

    def project(self, *field_indexes: int) -> DataStream:
        """These fields of tuples, in this order."""
        declared = self._type
        if declared is not None and not isinstance(declared, TupleTypeInfo):
            raise GraphError(f"project() takes streams of tuples, and this one is of type {declared!r}")
        if not field_indexes:
            raise GraphError("project() takes the position of at least one field")
        for index in field_indexes:
            if not isinstance(check_field("project", index, declared), int):
                raise GraphError(f"project() takes positions of fields, not {index!r}")
        kept = None if declared is None else Types.TUPLE([declared.field_types[index] for index in field_indexes])
        return self._then(Map(Projection(field_indexes)), "Projection", kept)

    def assign_timestamps_and_watermarks(
        self, watermark_strategy: WatermarkStrategy | TimestampsAndWatermarks
    ) -> DataStream:
        """Give records timestamps and the stream watermarks, in the place of whatever it had."""
        if isinstance(watermark_strategy, TimestampsAndWatermarks):
            watermark_strategy = watermark_strategy.to_watermark_strategy()
        if not isinstance(watermark_strategy, WatermarkStrategy):
            raise GraphError(
                f"assign_timestamps_and_watermarks() takes a WatermarkStrategy, not {watermark_strategy!r:.200}"
            )
        return self._then(AssignTimestamps(watermark_strategy), "Timestamps/Watermarks", self._type)

    # ---- several streams

    def key_by(
        self, key_selector: Selector, key_type: TypeInformation | Field | None = None, *more_fields: Field
    ) -> KeyedStream:
        """Bring records of one key together, so that functions can keep state for it.

        :param key_selector: gives a record's key; an int or str selects that field, several of them (or a list) a tuple of
            those fields: `key_by(0, 1)`. Where the stream's type is not declared, a position is `value[position]`, also of
            a string. Keys must have a canonical form (str, bytes, numbers, dates, tuples of those, frozen dataclasses),
            because state is found again by it.
        :param key_type: compared with that of the other stream when two keyed streams are connected or joined.
        """
        if more_fields or (isinstance(key_selector, (int, str)) and isinstance(key_type, (int, str))):
            key_selector, key_type = [key_selector, key_type, *more_fields], None  # type: ignore[list-item]
        selector, key_type = key_selection(key_selector, key_type, self._type)
        return KeyedStream(
            self._environment,
            tuple(
                Input(i.node, Partitioning.KEY, key_selector=selector, port=i.port, side=i.side) for i in self._inputs
            ),
            self.get_type(),
            key_type,
        )

    def union(self, *streams: DataStream) -> DataStream:
        """The records of all these streams; keyed ones are no longer keyed then."""
        type_info = self._type
        for stream in streams:
            self._check_other("union", stream)
            if type_info is not None and stream._type is not None and type_info != stream._type:
                raise GraphError(f"union() of streams of different types: {type_info!r} and {stream._type!r}")
            type_info = type_info if stream._type is not None else None
        inputs = tuple(i for stream in (self, *streams) for i in stream._unkeyed())
        return DataStream(self._environment, inputs, type_info or Types.PICKLED_BYTE_ARRAY())

    @overload
    def connect(self, ds: DataStream) -> ConnectedStreams: ...

    @overload
    def connect(self, ds: BroadcastStream) -> BroadcastConnectedStream: ...

    def connect(self, ds: DataStream | BroadcastStream) -> ConnectedStreams | BroadcastConnectedStream:
        """This stream and another, for functions over both that share state."""
        if isinstance(ds, BroadcastStream):
            self._check_other("connect", ds.input_stream)
            return BroadcastConnectedStream(self, ds, ds.broadcast_state_descriptors)
        self._check_other("connect", ds)
        return ConnectedStreams(self, ds)

    def get_side_output(self, output_tag: OutputTag) -> DataStream:
        """The records that this stream's operator emits to the side output of that tag."""
        if not isinstance(output_tag, OutputTag):
            raise GraphError(f"get_side_output() takes an OutputTag, not {output_tag!r:.200}")
        node = self._operator("get_side_output()")
        graph = self._environment.graph
        declared = graph[node].side_types.get(output_tag.tag_id, output_tag.type_info)
        graph.change(node, side_types={**graph[node].side_types, output_tag.tag_id: declared})
        if declared != output_tag.type_info:
            raise GraphError(
                f"the side output {output_tag.tag_id!r} was asked for with type {declared!r} and is now with type "
                f"{output_tag.type_info!r}; use one OutputTag for it, or another id"
            )
        return DataStream(self._environment, (Input(node, side=output_tag.tag_id),), declared)

    # ---- spreading records

    def rebalance(self) -> DataStream:
        """Spread records evenly, round robin."""
        return self._spread(Partitioning.REBALANCE)

    def rescale(self) -> DataStream:
        """Spread records round robin over the few subtasks of the next operator that share this subtask's part."""
        return self._spread(Partitioning.RESCALE)

    def shuffle(self) -> DataStream:
        """Spread records at random."""
        return self._spread(Partitioning.SHUFFLE)

    def forward(self) -> DataStream:
        """Keep records on their subtask; an error when the next operator has another parallelism."""
        return self._spread(Partitioning.FORWARD)

    def global_(self) -> DataStream:
        """Send all records to the first subtask of the next operator."""
        return self._spread(Partitioning.GLOBAL)

    @overload
    def broadcast(self) -> DataStream: ...

    @overload
    def broadcast(
        self, broadcast_state_descriptor: MapStateDescriptor, *other_broadcast_state_descriptors: MapStateDescriptor
    ) -> BroadcastStream: ...

    def broadcast(
        self,
        broadcast_state_descriptor: MapStateDescriptor | None = None,
        *other_broadcast_state_descriptors: MapStateDescriptor,
    ) -> DataStream | BroadcastStream:
        """Send every record to all subtasks of the next operator. With descriptors they fill broadcast state there: give
        the result to `connect` of another stream."""
        stream = self._spread(Partitioning.BROADCAST)
        if broadcast_state_descriptor is None and not other_broadcast_state_descriptors:
            return stream
        descriptors = check_descriptors((broadcast_state_descriptor, *other_broadcast_state_descriptors))
        return BroadcastStream(stream, descriptors)

    def partition_custom(
        self, partitioner: Callable[[Any, int], int] | Partitioner, key_selector: Callable[[Any], Any] | KeySelector
    ) -> DataStream:
        """Send each record to the subtask that the partitioner names for its key.

        :param partitioner: gives the subtask for (key, number of subtasks).
        """
        check_function(partitioner, Partitioner, "partition_custom")
        check_function(key_selector, KeySelector, "partition_custom")
        return self._spread(Partitioning.CUSTOM, partitioner=partitioner, key_selector=key_selector)

    # ---- ends

    def sink_to(self, sink: Sink) -> DataStreamSink:
        """Send records to a sink."""
        if not isinstance(sink, Sink):
            raise GraphError(f"sink_to() takes a firesteel Sink, not {sink!r:.200}")
        return self._end(Write(sink_for(sink, self._type)), type(sink).__name__)

    def add_sink(self, sink_func: SinkFunction | Callable[[Any], Any] | Sink) -> DataStreamSink:
        """Call a function for every record. Not transactional: after a restart records may come again."""
        if isinstance(sink_func, Sink):  # some that were SinkFunctions in Flink 1.x
            return self.sink_to(sink_func)
        return self._end(Write(SinkFunctionSink(check_function(sink_func, SinkFunction, "add_sink"))), "Sink")

    def print(self, sink_identifier: str | None = None) -> DataStreamSink:
        """Print records on the driver's standard output. Not fault tolerant: after a restart lines may come again."""
        return self._end(Write(PrintSink(sink_identifier, type_info=self._type)), "Print to Std. Out")

    def print_to_err(self, sink_identifier: str | None = None) -> DataStreamSink:
        """Print records on the driver's standard error."""
        return self._end(Write(PrintSink(sink_identifier, type_info=self._type, to_err=True)), "Print to Std. Err")

    def execute_and_collect(
        self, job_execution_name: str | None = None, limit: int | None = None
    ) -> CloseableIterator | list[Any]:
        """Run the program and iterate over this stream's records, or get up to `limit` of them as a list.

        Every record is seen once, also when the job restarts meanwhile: with checkpointing, records appear when the
        checkpoint that covers them is complete.
        """
        sink = self._end(Collect(), "Collect")
        try:
            client = self._environment.execute_async(job_execution_name)
        finally:
            self._environment.graph.remove(sink._inputs[0].node)
        results = CloseableIterator(client)
        if limit is None:
            return results
        with results:
            return [value for _, value in zip(range(limit), results, strict=False)]

    # ---- building

    def _then(self, operator: Operator, name: str, output_type: OutputType) -> DataStream:
        return add_operator(self._environment, operator, name, self._inputs, output_type)

    def _end(self, operator: Operator, name: str) -> DataStreamSink:
        node = self._environment.graph.add(operator, name, self._inputs)
        return DataStreamSink(self._environment, (Input(node.id),))

    def _spread(self, partitioning: Partitioning, *, key_selector: Any = None, partitioner: Any = None) -> DataStream:
        inputs = (
            Input(i.node, partitioning, True, key_selector, partitioner, port=i.port, side=i.side) for i in self._inputs
        )
        return DataStream(self._environment, tuple(inputs), self.get_type())

    def _unkeyed(self) -> tuple[Input, ...]:
        return self._inputs

    def _change(self: Self, what: str, **settings: Any) -> Self:
        edge = self._inputs[0]
        if len(self._inputs) == 1 and edge.side is not None and edge == Input(edge.node, side=edge.side):
            # as in PyFlink a side output is an operator of its own, if only once somebody names or places it
            self._inputs = self._then(Map(same), "Side Output", self._type)._inputs
        self._operator(what)
        return super()._change(what, **settings)

    def _operator(self, what: str) -> int:
        """The operator this stream is the output of."""
        edge = self._inputs[0]
        if len(self._inputs) > 1:
            raise GraphError(f"{what} is for operators, and a union is none: use it on the streams that it unites")
        if edge.side is not None:
            raise GraphError(
                f"{what} is for operators, and a side output is none: use it on the stream of its operator"
            )
        if edge != Input(edge.node):
            raise GraphError(
                f"{what} is for operators, and {edge.partitioning.value} partitioning is none: use it before the records "
                f"are spread, or on what follows"
            )
        return edge.node

    def _check_other(self, method: str, stream: Any) -> None:
        if not isinstance(stream, DataStream):
            raise GraphError(f"{method}() takes a DataStream, not {stream!r:.200}")
        if stream._environment is not self._environment:
            raise GraphError(
                f"{method}() of streams of two environments: a program is described with one StreamExecutionEnvironment"
            )


def add_operator(
    environment: StreamExecutionEnvironment,
    operator: Operator,
    name: str,
    inputs: tuple[Input, ...],
    output_type: OutputType,
) -> DataStream:
    """A new operator's stream."""
    node = environment.graph.add(operator, name, inputs, output_type=check_output_type(output_type))
    return DataStream(environment, (Input(node.id),))


# At the end: these are built on DataStream, which in turn makes them.
from firesteel.datastream.connected_streams import ConnectedStreams  # noqa: E402
from firesteel.datastream.keyed_stream import KeyedStream  # noqa: E402
