"""A stream that reaches every subtask, for state that is the same on all, and what it is connected with."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from firesteel.datastream.broadcast_functions import BroadcastProcessFunction, KeyedBroadcastProcessFunction
from firesteel.datastream.given import OutputType
from firesteel.datastream.state import MapStateDescriptor
from firesteel.errors import GraphError
from firesteel.graph.nodes import BroadcastProcess

if TYPE_CHECKING:
    from firesteel.datastream.data_stream import DataStream


class BroadcastStream:
    """A broadcast stream and the states that its records fill. It can be connected with other streams, and nothing else."""

    def __init__(self, input_stream: DataStream, broadcast_state_descriptors: list[MapStateDescriptor]) -> None:
        """
        :param input_stream: the stream after `broadcast()`.
        """
        self.input_stream = input_stream
        self.broadcast_state_descriptors = broadcast_state_descriptors


class BroadcastConnectedStream:
    """A stream, keyed or not, and a broadcast one, whose records go to one function with a method for each."""

    def __init__(
        self,
        non_broadcast_stream: DataStream,
        broadcast_stream: BroadcastStream,
        broadcast_state_descriptors: list[MapStateDescriptor],
    ) -> None:
        self.non_broadcast_stream = non_broadcast_stream
        self.broadcast_stream = broadcast_stream
        self.broadcast_state_descriptors = broadcast_state_descriptors

    def process(
        self, func: BroadcastProcessFunction | KeyedBroadcastProcessFunction, output_type: OutputType = None
    ) -> DataStream:
        """The general operator: a BroadcastProcessFunction, or on a keyed stream a KeyedBroadcastProcessFunction."""
        from firesteel.datastream.data_stream import add_operator
        from firesteel.datastream.keyed_stream import KeyedStream

        stream = self.non_broadcast_stream
        keyed = isinstance(stream, KeyedStream)
        wanted, other = BroadcastProcessFunction, KeyedBroadcastProcessFunction
        if keyed:
            wanted, other = KeyedBroadcastProcessFunction, BroadcastProcessFunction  # type: ignore[assignment]
        if not isinstance(func, wanted):
            kind = "a keyed stream" if keyed else "a stream that is not keyed"
            hint = ("derive it from KeyedBroadcastProcessFunction", "call key_by(...) before connect(...)")[not keyed]
            raise GraphError(
                f"process() on {kind} connected with a broadcast one takes a {wanted.__name__}, not {func!r:.200}"
                + (f"; {hint}" if isinstance(func, other) else "")
            )
        broadcast = tuple(replace(each, port=1) for each in self.broadcast_stream.input_stream._inputs)
        name = "Keyed-Co-Process-Broadcast" if keyed else "Co-Process-Broadcast"
        operator = BroadcastProcess(func, tuple(self.broadcast_state_descriptors))
        return add_operator(stream._environment, operator, name, (*stream._inputs, *broadcast), output_type)


def check_descriptors(given: tuple[Any, ...]) -> list[MapStateDescriptor]:
    """The descriptors that `broadcast(...)` was given."""
    names: dict[str, MapStateDescriptor] = {}
    for descriptor in given:
        if not isinstance(descriptor, MapStateDescriptor):
            raise GraphError(f"broadcast() takes MapStateDescriptors, not {descriptor!r:.200}")
        if descriptor.name in names:
            raise GraphError(f"broadcast() was given two descriptors of the name {descriptor.name!r}")
        if descriptor.ttl_config is not None:
            raise GraphError(f"broadcast state {descriptor.name!r} has time-to-live, which is for keyed state only")
        names[descriptor.name] = descriptor
    return list(given)
