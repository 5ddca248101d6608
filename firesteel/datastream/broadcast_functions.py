"""Functions over a stream and a broadcast one, which reaches every subtask and fills state that is the same on all.

They yield their outputs, to side outputs as well. A context is valid only during the call it is given to.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from firesteel.datastream.process_functions import TimerContext
from firesteel.datastream.runtime_context import Function
from firesteel.datastream.timerservice import TimerService

if TYPE_CHECKING:
    from firesteel.datastream.state import BroadcastState, MapStateDescriptor, ReadOnlyBroadcastState, StateDescriptor


class KeyedStateFunction(ABC):
    """What `apply_to_keyed_state` does with each key; a plain function of (key, state) does as well."""

    @abstractmethod
    def process(self, key: Any, state: Any) -> None:
        """Read or change the state, which is that of the key."""


class BaseBroadcastProcessFunction(Function):
    """What both kinds of broadcast process functions have."""

    class BaseContext(ABC):
        """Time, for all methods."""

        @abstractmethod
        def timestamp(self) -> int | None:
            """The timestamp of the record or of the firing timer, in milliseconds; None for a record that has none."""

        @abstractmethod
        def current_processing_time(self) -> int: ...

        @abstractmethod
        def current_watermark(self) -> int: ...

    class Context(BaseContext):
        """For the broadcast side, which may change the broadcast state."""

        @abstractmethod
        def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
            """The state of one of the descriptors that were given to `broadcast(...)`."""

    class ReadOnlyContext(BaseContext):
        """For the other side, which may look at the broadcast state."""

        @abstractmethod
        def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> ReadOnlyBroadcastState[Any, Any]:
            """The state of one of the descriptors that were given to `broadcast(...)`."""


class BroadcastProcessFunction(BaseBroadcastProcessFunction):
    """The general function on a stream that is not keyed, connected with a broadcast one."""

    class Context(BaseBroadcastProcessFunction.Context):
        """For `process_broadcast_element`."""

    class ReadOnlyContext(BaseBroadcastProcessFunction.ReadOnlyContext):
        """For `process_element`."""

    @abstractmethod
    def process_element(self, value: Any, ctx: BroadcastProcessFunction.ReadOnlyContext) -> Iterable[Any] | None:
        """Yield any number of outputs for a record of the stream that is not broadcast."""

    @abstractmethod
    def process_broadcast_element(self, value: Any, ctx: BroadcastProcessFunction.Context) -> Iterable[Any] | None:
        """Yield any number of outputs for a broadcast record, and change the broadcast state.

        Every subtask gets it, so every subtask has to change the state in the same way.
        """


class KeyedBroadcastProcessFunction(BaseBroadcastProcessFunction):
    """The general function on a keyed stream, connected with a broadcast one: state and timers for each key besides."""

    class Context(BaseBroadcastProcessFunction.Context):
        """For `process_broadcast_element`, which is about no key."""

        @abstractmethod
        def apply_to_keyed_state(
            self, state_descriptor: StateDescriptor, function: KeyedStateFunction | Callable[[Any, Any], Any]
        ) -> None:
            """Call the function with (key, state) for every key of this subtask that has something in that state."""

    class ReadOnlyContext(BaseBroadcastProcessFunction.ReadOnlyContext):
        """Key and time, for `process_element`."""

        @abstractmethod
        def timer_service(self) -> TimerService: ...

        @abstractmethod
        def get_current_key(self) -> Any: ...

    class OnTimerContext(ReadOnlyContext, TimerContext):
        """Key and time, for `on_timer`."""

    @abstractmethod
    def process_element(self, value: Any, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext) -> Iterable[Any] | None:
        """Yield any number of outputs for a record of the keyed stream."""

    @abstractmethod
    def process_broadcast_element(self, value: Any, ctx: KeyedBroadcastProcessFunction.Context) -> Iterable[Any] | None:
        """Yield any number of outputs for a broadcast record, and change the broadcast state.

        Every subtask gets it, so every subtask has to change the state in the same way. There is no current key.
        """

    def on_timer(self, timestamp: int, ctx: KeyedBroadcastProcessFunction.OnTimerContext) -> Iterable[Any] | None:
        """Yield any number of outputs when a timer of the current key fires."""
        return None
