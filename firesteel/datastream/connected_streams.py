"""Two streams, for functions over both."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from firesteel.common.typeinfo import TypeInformation
from firesteel.datastream.functions import (
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedCoProcessFunction,
)
from firesteel.datastream.given import OutputType
from firesteel.datastream.key_selection import Selector, check_key_type
from firesteel.errors import GraphError
from firesteel.graph.nodes import CoFlatMap, CoMap, CoProcess, Operator

if TYPE_CHECKING:
    from firesteel.datastream.data_stream import DataStream
    from firesteel.datastream.environment import StreamExecutionEnvironment


class ConnectedStreams:
    """Two streams whose records go to one function, which has a method for each stream.

    When both are keyed, records of one key meet in the same subtask and share its state, whichever stream they are of.
    """

    def __init__(self, stream1: DataStream, stream2: DataStream) -> None:
        self.stream1 = stream1
        self.stream2 = stream2

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        return self.stream1.get_execution_environment()

    def get_first_input(self) -> DataStream:
        return self.stream1

    def get_second_input(self) -> DataStream:
        return self.stream2

    def get_type1(self) -> TypeInformation:
        return self.stream1.get_type()

    def get_type2(self) -> TypeInformation:
        return self.stream2.get_type()

    def key_by(
        self,
        key_selector1: Selector,
        key_selector2: Selector,
        key_type: TypeInformation | None = None,
    ) -> ConnectedStreams:
        """Bring records of one key together, of both streams. Several fields are given as lists: `key_by([0, 1], [0, 2])`."""
        key_type = check_key_type("key_by", key_type)
        return ConnectedStreams(
            self.stream1.key_by(key_selector1, key_type), self.stream2.key_by(key_selector2, key_type)
        )

    def map(self, func: CoMapFunction, output_type: OutputType = None) -> DataStream:
        """At most one output for each input of either stream: a result of None is left out."""
        if not isinstance(func, CoMapFunction):
            raise GraphError(f"map() on connected streams takes a CoMapFunction, not {func!r:.200}")
        return self._then(CoMap(func), "Co-Map", output_type)

    def flat_map(self, func: CoFlatMapFunction, output_type: OutputType = None) -> DataStream:
        """Any number of outputs for each input of either stream."""
        if not isinstance(func, CoFlatMapFunction):
            raise GraphError(f"flat_map() on connected streams takes a CoFlatMapFunction, not {func!r:.200}")
        return self._then(CoFlatMap(func), "Co-Flat Map", output_type)

    def process(self, func: CoProcessFunction | KeyedCoProcessFunction, output_type: OutputType = None) -> DataStream:
        """The general operator."""
        if not isinstance(func, (CoProcessFunction, KeyedCoProcessFunction)):
            raise GraphError(
                f"process() on connected streams takes a CoProcessFunction or a KeyedCoProcessFunction, not {func!r:.200}"
            )
        keyed = self._is_keyed()
        if isinstance(func, KeyedCoProcessFunction) and not keyed:
            raise GraphError(f"{func!r:.200} is for keyed streams: call key_by(selector1, selector2) before process()")
        return self._then(CoProcess(func), "Keyed Co-Process" if keyed else "Co-Process", output_type)

    def _then(self, operator: Operator, name: str, output_type: OutputType) -> DataStream:
        from firesteel.datastream.data_stream import add_operator

        self._is_keyed()
        inputs = (*self.stream1._inputs, *(replace(i, port=1) for i in self.stream2._inputs))
        return add_operator(self.stream1._environment, operator, name, inputs, output_type)

    def _is_keyed(self) -> bool:
        from firesteel.datastream.keyed_stream import KeyedStream

        keyed1, keyed2 = isinstance(self.stream1, KeyedStream), isinstance(self.stream2, KeyedStream)
        if keyed1 != keyed2:
            which, other = ("first", "second") if keyed1 else ("second", "first")
            raise GraphError(
                f"of the connected streams the {which} is keyed and the {other} is not, so they have no key in common: "
                f"call key_by(selector1, selector2) on the connected streams, or key_by(...) on both"
            )
        if isinstance(self.stream1, KeyedStream) and isinstance(self.stream2, KeyedStream):
            type1, type2 = self.stream1._key_type, self.stream2._key_type
            if type1 is not None and type2 is not None and type1 != type2:
                raise GraphError(
                    f"the keys of the first stream are of type {type1!r} and those of the second of type {type2!r}, so no "
                    f"record of one would ever meet one of the other: key both by the same"
                )
        return keyed1
