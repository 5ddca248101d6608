"""Streams as a program describes them. Every method adds to the environment's graph and runs nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar

from firesteel.common.typeinfo import TypeInformation
from firesteel.connectors.base import Sink
from firesteel.connectors.print_sink import PrintSink
from firesteel.datastream.collecting import CloseableIterator
from firesteel.datastream.functions import (
    FilterFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    ProcessFunction,
    ReduceFunction,
)
from firesteel.errors import GraphError
from firesteel.graph.nodes import (
    Collect,
    Filter,
    FlatMap,
    Input,
    Map,
    Operator,
    Partitioning,
    Process,
    Reduce,
    Write,
    check_positive,
)

if TYPE_CHECKING:
    from firesteel.datastream.environment import StreamExecutionEnvironment

Self = TypeVar("Self", bound="Described")


class Described:
    """What streams and sinks have in common: the operator they came from can be named and placed."""

    def __init__(self, environment: StreamExecutionEnvironment, inputs: tuple[Input, ...]) -> None:
        self._environment = environment
        self._inputs = inputs

    def _change(self: Self, **settings: Any) -> Self:
        if len(self._inputs) != 1:
            raise GraphError("a union is not an operator; set names, uids and parallelism on the streams it unites")
        self._environment.graph.change(self._inputs[0].node, **settings)
        return self

    def name(self: Self, name: str) -> Self:
        """What the operator is called in plans, logs and errors."""
        return self._change(name=name)

    def uid(self: Self, uid: str) -> Self:
        """Ties the operator's state to this name, across changes of the program."""
        return self._change(uid=uid)

    def set_parallelism(self: Self, parallelism: int) -> Self:
        return self._change(parallelism=check_positive("parallelism", parallelism))

    def set_max_parallelism(self: Self, max_parallelism: int) -> Self:
        return self._change(max_parallelism=check_positive("max parallelism", max_parallelism))

    def disable_chaining(self: Self) -> Self:
        """Put the operator into a level (a Spark stage) of its own."""
        return self._change(chaining=False)


class DataStreamSink(Described):
    """The end of a stream."""


class DataStream(Described):
    """A stream of records."""

    def get_name(self) -> str:
        return self._environment.graph[self._inputs[0].node].name

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        return self._environment

    def force_non_parallel(self) -> DataStream:
        return self.set_parallelism(1).set_max_parallelism(1)

    def map(self, func: Callable[[Any], Any] | MapFunction, output_type: TypeInformation | None = None) -> DataStream:
        """One output for each input."""
        return self._then(Map(_function(func, MapFunction, "map")), "Map")

    def flat_map(
        self, func: Callable[[Any], Any] | FlatMapFunction, output_type: TypeInformation | None = None
    ) -> DataStream:
        """Any number of outputs for each input."""
        return self._then(FlatMap(_function(func, FlatMapFunction, "flat_map")), "Flat Map")

    def filter(self, func: Callable[[Any], bool] | FilterFunction) -> DataStream:
        """The inputs for which the function holds."""
        return self._then(Filter(_function(func, FilterFunction, "filter")), "Filter")

    def process(self, func: ProcessFunction, output_type: TypeInformation | None = None) -> DataStream:
        """The general operator."""
        if not isinstance(func, ProcessFunction):
            hint = "; call key_by(...) first" if isinstance(func, KeyedProcessFunction) else ""
            raise GraphError(
                f"process() on a stream that is not keyed takes a ProcessFunction, not {func!r:.200}{hint}"
            )
        return self._then(Process(func), "Process")

    def key_by(
        self, key_selector: Callable[[Any], Any] | KeySelector | int, key_type: TypeInformation | None = None
    ) -> KeyedStream:
        """Bring records of one key together, so that functions can keep state for it.

        :param key_selector: gives a record's key; an int selects that field of a tuple. Keys must have a canonical form
            (str, bytes, numbers, dates, tuples of those, frozen dataclasses), because state is found again by it.
        """
        if isinstance(key_selector, int) and not isinstance(key_selector, bool):
            key_selector = itemgetter(key_selector)
        if not isinstance(key_selector, KeySelector) and not callable(key_selector):
            raise GraphError(f"key_by() takes a KeySelector, a function or a field number, not {key_selector!r:.200}")
        return KeyedStream(
            self._environment,
            tuple(replace(i, partitioning=Partitioning.KEY, key_selector=key_selector) for i in self._inputs),
        )

    def union(self, *streams: DataStream) -> DataStream:
        """The records of all these streams, which must not be keyed; keyed ones are united as their origins."""
        inputs = [i for stream in (self, *streams) for i in stream._unkeyed()]
        return DataStream(self._environment, tuple(inputs))

    def rebalance(self) -> DataStream:
        """Spread records evenly, round robin."""
        return self._spread(Partitioning.REBALANCE)

    def forward(self) -> DataStream:
        """Keep records on their subtask; an error when the next operator has another parallelism."""
        return self._spread(Partitioning.FORWARD)

    def sink_to(self, sink: Sink) -> DataStreamSink:
        """Send records to a sink."""
        if not isinstance(sink, Sink):
            raise GraphError(f"sink_to() takes a firesteel Sink, not {sink!r:.200}")
        return self._end(Write(sink), type(sink).__name__)

    def print(self, sink_identifier: str | None = None) -> DataStreamSink:
        """Print records on the driver's standard output. Not fault tolerant: after a restart lines may come again."""
        return self._end(Write(PrintSink(sink_identifier)), "Print to Std. Out")

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

    def _then(self, operator: Operator, name: str) -> DataStream:
        node = self._environment.graph.add(operator, name, self._inputs)
        return DataStream(self._environment, (Input(node.id),))

    def _end(self, operator: Operator, name: str) -> DataStreamSink:
        node = self._environment.graph.add(operator, name, self._inputs)
        return DataStreamSink(self._environment, (Input(node.id),))

    def _spread(self, partitioning: Partitioning) -> DataStream:
        inputs = (replace(i, partitioning=partitioning, explicit=True) for i in self._unkeyed())
        return DataStream(self._environment, tuple(inputs))

    def _unkeyed(self) -> tuple[Input, ...]:
        return self._inputs


class KeyedStream(DataStream):
    """A stream whose records are brought together by key; its functions have keyed state."""

    def _change(self: Self, **settings: Any) -> Self:
        raise GraphError("key_by() is not an operator; set names, uids and parallelism before it or on what follows it")

    def process(self, func: KeyedProcessFunction, output_type: TypeInformation | None = None) -> DataStream:  # type: ignore[override]
        """The general operator with state for each key."""
        if not isinstance(func, KeyedProcessFunction):
            raise GraphError(f"process() on a keyed stream takes a KeyedProcessFunction, not {func!r:.200}")
        return self._then(Process(func), "Keyed Process")

    def reduce(self, func: Callable[[Any, Any], Any] | ReduceFunction) -> DataStream:
        """The running reduction of each key: one update for each input."""
        return self._then(Reduce(_function(func, ReduceFunction, "reduce")), "Keyed Reduce")

    def _unkeyed(self) -> tuple[Input, ...]:
        return tuple(replace(i, partitioning=Partitioning.FORWARD, key_selector=None) for i in self._inputs)


def _function(func: Any, kind: type, method: str) -> Any:
    if not isinstance(func, kind) and not callable(func):
        raise GraphError(f"{method}() takes a {kind.__name__} or a function, not {func!r:.200}")
    return func
