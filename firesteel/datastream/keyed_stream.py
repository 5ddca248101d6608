"""Streams by key: state for each key, running aggregates, functions with state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from firesteel.common.typeinfo import TypeInformation
from firesteel.datastream.connected_streams import ConnectedStreams
from firesteel.datastream.data_stream import DataStream
from firesteel.datastream.field_aggregates import FieldAggregates
from firesteel.datastream.fields import Field, check_field
from firesteel.datastream.functions import (
    KeyedProcessFunction,
    KeySelector,
    Partitioner,
    ProcessFunction,
    ReduceFunction,
)
from firesteel.datastream.given import OutputType, check_function
from firesteel.datastream.interval_join import IntervalJoin
from firesteel.datastream.windowing import KeyedWindowOperations
from firesteel.datastream.with_state import (
    FilterWithState,
    FlatMapWithState,
    MapWithState,
    StatefulFunction,
    WithState,
)
from firesteel.errors import GraphError
from firesteel.graph.nodes import Input, Partitioning, Process, Reduce

if TYPE_CHECKING:
    from firesteel.datastream.environment import StreamExecutionEnvironment


class KeyedStream(KeyedWindowOperations, FieldAggregates, DataStream):
    """A stream whose records are brought together by key; its functions have keyed state."""

    def __init__(
        self,
        environment: StreamExecutionEnvironment,
        inputs: tuple[Input, ...],
        type_info: TypeInformation | None = None,
        key_type: TypeInformation | None = None,
    ) -> None:
        super().__init__(environment, inputs, type_info)
        self._key_type = key_type

    def process(self, func: KeyedProcessFunction, output_type: OutputType = None) -> DataStream:  # type: ignore[override]
        """The general operator with state and timers for each key."""
        if not isinstance(func, KeyedProcessFunction):
            hint = "; derive it from KeyedProcessFunction" if isinstance(func, ProcessFunction) else ""
            raise GraphError(f"process() on a keyed stream takes a KeyedProcessFunction, not {func!r:.200}{hint}")
        return self._then(Process(func), "Keyed Process", output_type)

    def reduce(self, func: Callable[[Any, Any], Any] | ReduceFunction) -> DataStream:
        """The running reduction of each key: one update for each input."""
        return self._then(Reduce(check_function(func, ReduceFunction, "reduce")), "Keyed Reduce", self._type)

    def _roll(self, method: str, aggregate: Callable[[Field], ReduceFunction], field: Field) -> DataStream:
        return self.reduce(aggregate(check_field(method, field, self._type)))

    # ---- functions of (value, state of the key or None) returning (output, new state); a new state of None removes it

    def map_with_state(self, func: StatefulFunction, output_type: OutputType = None) -> DataStream:
        """One output for each input: func(value, state) -> (output, new state)."""
        return self._with_state(func, MapWithState, "Map With State", output_type)

    def flat_map_with_state(self, func: StatefulFunction, output_type: OutputType = None) -> DataStream:
        """Any number of outputs for each input: func(value, state) -> (outputs or None, new state)."""
        return self._with_state(func, FlatMapWithState, "Flat Map With State", output_type)

    def filter_with_state(self, func: StatefulFunction, output_type: OutputType = None) -> DataStream:
        """The inputs that are kept: func(value, state) -> (whether it is kept, new state)."""
        return self._with_state(func, FilterWithState, "Filter With State", output_type or self._type)

    def _with_state(
        self, func: StatefulFunction, kind: type[WithState], name: str, output_type: OutputType
    ) -> DataStream:
        if not callable(func):
            raise GraphError(f"{kind.method}() takes a function of (value, state), not {func!r:.200}")
        return self._then(Process(kind(func)), name, output_type)

    # ---- joins

    def interval_join(self, other_stream: KeyedStream) -> IntervalJoin:
        """Join with records of the same key that another keyed stream has around the same event time."""
        self._check_other("interval_join", other_stream)
        if not isinstance(other_stream, KeyedStream):
            raise GraphError("interval_join() takes a keyed stream: call key_by(...) on the other stream, too")
        return IntervalJoin(ConnectedStreams(self, other_stream))

    # ---- what a keyed stream cannot do

    def rebalance(self) -> NoReturn:
        raise self._spread_already("rebalance")

    def rescale(self) -> NoReturn:
        raise self._spread_already("rescale")

    def shuffle(self) -> NoReturn:
        raise self._spread_already("shuffle")

    def forward(self) -> NoReturn:
        raise self._spread_already("forward")

    def global_(self) -> NoReturn:
        raise self._spread_already("global_")

    def broadcast(self, *args: Any) -> NoReturn:
        raise self._spread_already("broadcast")

    def partition_custom(
        self, partitioner: Callable[[Any, int], int] | Partitioner, key_selector: Callable[[Any], Any] | KeySelector
    ) -> NoReturn:
        raise self._spread_already("partition_custom")

    def _spread_already(self, method: str) -> GraphError:
        return GraphError(f"{method}() cannot follow key_by(), which has to bring the records of a key together")

    def _operator(self, what: str) -> int:
        raise GraphError(f"{what} is for operators, and key_by() is none: use it before key_by() or on what follows")

    def _unkeyed(self) -> tuple[Input, ...]:
        return tuple(replace(i, partitioning=Partitioning.FORWARD, key_selector=None) for i in self._inputs)
