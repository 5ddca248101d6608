"""When windows are evaluated: the interface."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from firesteel.errors import GraphError

if TYPE_CHECKING:
    from firesteel.datastream.state import StateDescriptor
    from firesteel.metrics import MetricGroup

T = TypeVar("T")
W = TypeVar("W")


class TriggerResult(Enum):
    """What happens to a window. Evaluating one that has nothing in it gives nothing."""

    CONTINUE = (False, False)
    FIRE_AND_PURGE = (True, True)
    FIRE = (True, False)
    PURGE = (False, True)

    def is_fire(self) -> bool:
        """Whether the window is evaluated."""
        return self.value[0]

    def is_purge(self) -> bool:
        """Whether what is in the window is thrown away. The trigger's own state stays."""
        return self.value[1]


class Trigger(ABC, Generic[T, W]):
    """Decides when a window of a key is evaluated.

    One trigger object serves all windows of all keys, so it must not keep anything in attributes: what it has to remember
    goes into the context's state, and is checkpointed with it.
    """

    class TriggerContext(ABC):
        """Time, timers and state of one window of one key."""

        @abstractmethod
        def get_current_processing_time(self) -> int: ...

        @abstractmethod
        def get_metric_group(self) -> MetricGroup: ...

        @abstractmethod
        def get_current_watermark(self) -> int:
            """The event time up to which records are complete."""

        @abstractmethod
        def register_processing_time_timer(self, time: int) -> None:
            """Call `on_processing_time` once the machine's clock has passed this time."""

        @abstractmethod
        def register_event_time_timer(self, time: int) -> None:
            """Call `on_event_time` once the watermark reaches this time."""

        @abstractmethod
        def delete_processing_time_timer(self, time: int) -> None: ...

        @abstractmethod
        def delete_event_time_timer(self, time: int) -> None: ...

        @abstractmethod
        def get_partitioned_state(self, state_descriptor: StateDescriptor) -> Any:
            """The trigger's own state for this window of this key."""

    class OnMergeContext(TriggerContext):
        """The same for `on_merge`."""

        @abstractmethod
        def merge_partitioned_state(self, state_descriptor: StateDescriptor) -> None:
            """Unite the state of the windows that were merged into that of the new one. For list, reducing and aggregating
            state."""

    @abstractmethod
    def on_element(self, element: T, timestamp: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        """A record was added to the window."""

    @abstractmethod
    def on_processing_time(self, time: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        """A timer of processing time fires."""

    @abstractmethod
    def on_event_time(self, time: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        """A timer of event time fires."""

    def can_merge(self) -> bool:
        """Whether it works with windows that merge: `on_merge` has to unite its state then."""
        return False

    def on_merge(self, window: W, ctx: Trigger.OnMergeContext) -> None:
        """Windows were merged into this one. Their timers and state are still there and are cleared after it."""
        raise GraphError(f"{type(self).__name__} cannot be used with windows that merge: it has no on_merge()")

    @abstractmethod
    def clear(self, window: W, ctx: Trigger.TriggerContext) -> None:
        """The window is over: delete its timers and state."""
