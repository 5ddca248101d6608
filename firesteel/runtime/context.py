"""What functions see of the slot they run in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from firesteel.connectors.base import ReaderContext
from firesteel.datastream.functions import RuntimeContext
from firesteel.datastream.process_functions import KeyedProcessContext, TimerContext
from firesteel.datastream.state import (
    AggregatingState,
    AggregatingStateDescriptor,
    ListState,
    ListStateDescriptor,
    MapState,
    MapStateDescriptor,
    ReducingState,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueState,
    ValueStateDescriptor,
)
from firesteel.datastream.time_domain import TimeDomain
from firesteel.datastream.timerservice import TimerService
from firesteel.errors import StateError, TimerError
from firesteel.graph.plan import PlannedOperator
from firesteel.metrics import MetricGroup
from firesteel.runtime.keyed_state import KeyedState


class SlotRuntimeContext(RuntimeContext):
    """A function's place: its operator, subtask and attempt, its metrics, and its state if the stream is keyed."""

    def __init__(
        self,
        operator: PlannedOperator,
        place: ReaderContext,
        attempt: int,
        keyed: KeyedState | None,
        metrics: MetricGroup,
        parameters: Mapping[str, str],
    ) -> None:
        self._operator = operator
        self._place = place
        self._attempt = attempt
        self._keyed = keyed
        self._metrics = metrics
        self._parameters = parameters

    def of(self, keyed: KeyedState) -> SlotRuntimeContext:
        """The same place with other state."""
        return SlotRuntimeContext(self._operator, self._place, self._attempt, keyed, self._metrics, self._parameters)

    def get_task_name(self) -> str:
        return self._operator.name

    def get_number_of_parallel_subtasks(self) -> int:
        return self._place.parallelism

    def get_max_number_of_parallel_subtasks(self) -> int:
        return self._operator.max_parallelism

    def get_index_of_this_subtask(self) -> int:
        return self._place.subtask

    def get_attempt_number(self) -> int:
        return self._attempt

    def get_task_name_with_subtasks(self) -> str:
        return f"{self._operator.name} ({self._place.subtask + 1}/{self._place.parallelism})#{self._attempt}"

    def get_job_parameter(self, key: str, default_value: str) -> str:
        return self._parameters.get(key, default_value)

    def get_metrics_group(self) -> MetricGroup:
        return self._metrics

    def get_state(self, state_descriptor: ValueStateDescriptor) -> ValueState[Any]:
        return self._state("get_state", state_descriptor, ValueStateDescriptor)  # type: ignore[no-any-return]

    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        return self._state("get_list_state", state_descriptor, ListStateDescriptor)  # type: ignore[no-any-return]

    def get_map_state(self, state_descriptor: MapStateDescriptor) -> MapState[Any, Any]:
        return self._state("get_map_state", state_descriptor, MapStateDescriptor)  # type: ignore[no-any-return]

    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor) -> ReducingState[Any]:
        return self._state("get_reducing_state", state_descriptor, ReducingStateDescriptor)  # type: ignore[no-any-return]

    def get_aggregating_state(self, state_descriptor: AggregatingStateDescriptor) -> AggregatingState[Any, Any]:
        return self._state(  # type: ignore[no-any-return]
            "get_aggregating_state", state_descriptor, AggregatingStateDescriptor
        )

    def _state(self, method: str, descriptor: StateDescriptor, kind: type[StateDescriptor]) -> Any:
        if self._keyed is None:
            raise StateError(
                f"{self._operator} asks for keyed state {getattr(descriptor, 'name', descriptor)!r}, but its stream is not "
                f"keyed. Call key_by(...) before it"
            )
        if not isinstance(descriptor, kind):
            raise StateError(f"{method}() takes a {kind.__name__}, not {descriptor!r:.200}")
        return self._keyed.state(descriptor)


class FunctionContext(KeyedProcessContext, TimerContext):
    """The context of every process function: one for each operator, its attributes set as records pass."""

    __slots__ = ("_keyed", "_service", "domain", "time")

    def __init__(self, keyed: KeyedState | None, service: TimerService) -> None:
        self._keyed = keyed
        self._service = service
        self.time: int | None = None
        self.domain: TimeDomain | None = None

    def get_current_key(self) -> Any:
        if self._keyed is None:
            raise StateError(
                "there is no current key on a stream that is not keyed. Call key_by(...) before process(...)"
            )
        return self._keyed.key

    def timestamp(self) -> int | None:
        return self.time

    def timer_service(self) -> TimerService:
        return self._service

    def time_domain(self) -> TimeDomain:
        if self.domain is None:
            raise TimerError("time_domain() is about the timer that fires: it can be called in on_timer() only")
        return self.domain
