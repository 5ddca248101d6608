"""Broadcast process functions: two ways in, of which one may change the broadcast state and the other one look at it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firesteel.datastream.broadcast_functions import KeyedBroadcastProcessFunction, KeyedStateFunction
from firesteel.datastream.state import MapStateDescriptor, StateDescriptor
from firesteel.datastream.timerservice import TimerService
from firesteel.errors import StateError, TimerError
from firesteel.graph import nodes
from firesteel.graph.plan import PlannedOperator
from firesteel.runtime.context import FunctionContext
from firesteel.runtime.flow import Emitter, Push, Times, Values
from firesteel.runtime.keyed_state import KeyedState, NoKey
from firesteel.runtime.operator_state import OperatorState, ReadOnlySlotBroadcastState, SlotBroadcastState
from firesteel.runtime.process import ProcessLoop


class BroadcastStates:
    """The broadcast states of one operator, by the names of their descriptors."""

    def __init__(self, operator: PlannedOperator, states: OperatorState) -> None:
        kind = operator.operator
        assert isinstance(kind, nodes.BroadcastProcess)
        self._operator = operator
        self._types = {descriptor.name: descriptor.type_info for descriptor in kind.descriptors}
        self._seen: dict[str, Any] = {}  # the descriptor that was given last, and is all right
        self.writable: dict[str, SlotBroadcastState] = {}
        self.readable: dict[str, ReadOnlySlotBroadcastState] = {}
        for descriptor in kind.descriptors:
            state = self.writable[descriptor.name] = states.get_broadcast_state(descriptor)
            self.readable[descriptor.name] = ReadOnlySlotBroadcastState(descriptor.name, state.table)

    def check(self, descriptor: MapStateDescriptor) -> str:
        """The name of a descriptor that a function gave; quick when it gives the same one every time."""
        name: str = getattr(descriptor, "name", "")
        if self._seen.get(name) is not descriptor:
            if not isinstance(descriptor, MapStateDescriptor):
                raise StateError(f"get_broadcast_state() takes a MapStateDescriptor, not {descriptor!r:.200}")
            if name not in self._types:
                known = ", ".join(map(repr, self._types))
                raise StateError(
                    f"{self._operator} asks for broadcast state {name!r}, which is not there (there is {known}): give its "
                    f"descriptor to broadcast(...) too"
                )
            if descriptor.type_info != self._types[name]:
                raise StateError(
                    f"broadcast state {name!r} of {self._operator} was given to broadcast(...) with type "
                    f"{self._types[name]} and is asked for with type {descriptor.type_info}; one name has one type"
                )
            self._seen[name] = descriptor
        return name


class _BroadcastContext(FunctionContext):
    """What both sides' contexts have."""

    __slots__ = ("_states",)

    def __init__(self, keyed: KeyedState | None, service: TimerService, states: BroadcastStates) -> None:
        super().__init__(keyed, service)
        self._states = states

    def current_processing_time(self) -> int:
        return self._service.current_processing_time()

    def current_watermark(self) -> int:
        return self._service.current_watermark()


class ReadOnlyContext(_BroadcastContext):
    """The context of `process_element` and `on_timer`."""

    __slots__ = ()

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> ReadOnlySlotBroadcastState:
        return self._states.readable[self._states.check(state_descriptor)]


class WritingContext(_BroadcastContext):
    """The context of `process_broadcast_element`."""

    __slots__ = ()

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> SlotBroadcastState:
        return self._states.writable[self._states.check(state_descriptor)]

    def apply_to_keyed_state(
        self, state_descriptor: StateDescriptor, function: KeyedStateFunction | Callable[[Any, Any], Any]
    ) -> None:
        keyed = self._keyed
        if keyed is None:
            raise StateError("apply_to_keyed_state() is for keyed streams, and this one has no keys. Call key_by(...)")
        call = function.process if isinstance(function, KeyedStateFunction) else function
        state = keyed.state(state_descriptor)
        before = keyed.key
        try:
            for key in keyed.keys(state_descriptor.name):
                keyed.key = key
                call(key, state)
        finally:
            keyed.key = before

    def get_current_key(self) -> Any:
        raise StateError("there is no current key in process_broadcast_element(): a broadcast record has none")

    def timer_service(self) -> TimerService:
        raise TimerError(
            "there are no timers in process_broadcast_element(): timers belong to keys, and a broadcast record has none. "
            "For the time use ctx.current_processing_time() and ctx.current_watermark()"
        )


def broadcast_ports(
    operator: PlannedOperator, states: BroadcastStates, keyed: KeyedState | None, context: FunctionContext, out: Emitter
) -> list[Push]:
    """The ways in of a broadcast process function.

    :param context: a ReadOnlyContext.
    """
    kind = operator.operator
    assert isinstance(kind, nodes.BroadcastProcess)
    function = kind.function
    writing = WritingContext(keyed, context.timer_service(), states)
    element = ProcessLoop(operator, function.process_element, 0, keyed, context, out)
    broadcast = ProcessLoop(operator, function.process_broadcast_element, 1, None, writing, out)
    if keyed is None:
        return [element.push, broadcast.push]
    assert isinstance(function, KeyedBroadcastProcessFunction)
    no_key = NoKey(
        "keyed state and timers cannot be used in process_broadcast_element(): a broadcast record has no key. Use "
        "ctx.apply_to_keyed_state(descriptor, function) for the state of every key"
    )

    def push_broadcast(values: Values, times: Times) -> None:
        keyed.key = no_key
        broadcast.push(values, times)

    return [element.push, push_broadcast]
