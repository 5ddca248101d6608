"""What assigners, triggers, evictors and window functions see: one object of each for an operator, its attributes set as
records pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from firesteel.datastream.functions import KeyedStateStore, ProcessAllWindowFunction, RuntimeContext
from firesteel.datastream.state import (
    AggregatingState,
    AggregatingStateDescriptor,
    ListState,
    ListStateDescriptor,
    MapState,
    MapStateDescriptor,
    MergingState,
    ReducingState,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueState,
    ValueStateDescriptor,
)
from firesteel.datastream.timerservice import TimerService
from firesteel.datastream.window import Evictor, Trigger, WindowAssigner
from firesteel.errors import StateError
from firesteel.metrics import MetricGroup
from firesteel.runtime.windows.states import WindowScope
from firesteel.state.timers import TimerTable


class AssignerContext(WindowAssigner.WindowAssignerContext):
    def __init__(self, service: TimerService, runtime_context: RuntimeContext) -> None:
        self.get_current_processing_time = service.current_processing_time  # type: ignore[method-assign]
        self._runtime_context = runtime_context

    def get_current_processing_time(self) -> int:
        raise NotImplementedError  # set above: it is asked for every record

    def get_runtime_context(self) -> RuntimeContext:
        return self._runtime_context


class TriggerContext(Trigger.OnMergeContext):
    """A trigger's view of the window that its scope has entered."""

    def __init__(
        self,
        scope: WindowScope,
        service: TimerService,
        event: TimerTable,
        processing: TimerTable,
        metrics: MetricGroup,
    ) -> None:
        self._scope, self._states = scope, scope.states
        self._service, self._event, self._processing, self._metrics = service, event, processing, metrics
        self.merged: Sequence[Any] = ()  # the windows that the current one was made of

    def get_current_processing_time(self) -> int:
        return self._service.current_processing_time()

    def get_metric_group(self) -> MetricGroup:
        return self._metrics

    def get_current_watermark(self) -> int:
        return self._service.current_watermark()

    def register_processing_time_timer(self, time: int) -> None:
        self._processing.register(self._states.key, time)

    def register_event_time_timer(self, time: int) -> None:
        self._event.register(self._states.key, time)

    def delete_processing_time_timer(self, time: int) -> None:
        self._processing.delete(self._states.key, time)

    def delete_event_time_timer(self, time: int) -> None:
        self._event.delete(self._states.key, time)

    def get_partitioned_state(self, state_descriptor: StateDescriptor) -> Any:
        return self._states.state(state_descriptor)

    def merge_partitioned_state(self, state_descriptor: StateDescriptor) -> None:
        state = self._states.state(state_descriptor)
        if not isinstance(state, MergingState):
            raise StateError(
                f"merge_partitioned_state() takes the descriptor of a list, reducing or aggregating state, and "
                f"{state_descriptor.name!r} is a {state_descriptor.kind} state: nothing says how two of them become one"
            )
        key, window, _ = self._states.key
        self._scope.unite(state, key, window, self.merged)


class WindowContext(ProcessAllWindowFunction.Context[Any], Evictor.EvictorContext):
    """A window function's view of the current window; evictors have the same."""

    def __init__(
        self,
        per_key: KeyedStateStore,
        per_window: KeyedStateStore,
        service: TimerService,
        metrics: MetricGroup,
    ) -> None:
        self._per_key, self._per_window, self._service, self._metrics = per_key, per_window, service, metrics
        self.current: Any = None  # the window

    def window(self) -> Any:
        return self.current

    def current_processing_time(self) -> int:
        return self._service.current_processing_time()

    def current_watermark(self) -> int:
        return self._service.current_watermark()

    def window_state(self) -> KeyedStateStore:
        return self._per_window

    def global_state(self) -> KeyedStateStore:
        return self._per_key

    def get_current_processing_time(self) -> int:
        return self._service.current_processing_time()

    def get_current_watermark(self) -> int:
        return self._service.current_watermark()

    def get_metric_group(self) -> MetricGroup:
        return self._metrics


class NoWindowState(KeyedStateStore):
    """Of windows that merge: what belongs to one of them would belong to no window once it is part of another."""

    def _refuse(self, state_descriptor: StateDescriptor) -> Any:
        raise StateError(
            f"per-window state {getattr(state_descriptor, 'name', '')!r} cannot be used with windows that merge, such as "
            f"sessions: use context.global_state()"
        )

    def get_state(self, state_descriptor: ValueStateDescriptor) -> ValueState[Any]:
        return self._refuse(state_descriptor)  # type: ignore[no-any-return]

    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        return self._refuse(state_descriptor)  # type: ignore[no-any-return]

    def get_map_state(self, state_descriptor: MapStateDescriptor) -> MapState[Any, Any]:
        return self._refuse(state_descriptor)  # type: ignore[no-any-return]

    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor) -> ReducingState[Any]:
        return self._refuse(state_descriptor)  # type: ignore[no-any-return]

    def get_aggregating_state(self, state_descriptor: AggregatingStateDescriptor) -> AggregatingState[Any, Any]:
        return self._refuse(state_descriptor)  # type: ignore[no-any-return]
