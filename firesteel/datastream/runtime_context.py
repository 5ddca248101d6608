"""Where a function runs: the context that `open()` is given."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from firesteel.datastream.state import (
        AggregatingState,
        AggregatingStateDescriptor,
        ListState,
        ListStateDescriptor,
        MapState,
        MapStateDescriptor,
        ReducingState,
        ReducingStateDescriptor,
        ValueState,
        ValueStateDescriptor,
    )
    from firesteel.metrics import MetricGroup


class KeyedStateStore(ABC):
    """Gives out keyed state by its descriptor. Only functions of a keyed stream have keyed state."""

    @abstractmethod
    def get_state(self, state_descriptor: ValueStateDescriptor) -> ValueState[Any]: ...

    @abstractmethod
    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]: ...

    @abstractmethod
    def get_map_state(self, state_descriptor: MapStateDescriptor) -> MapState[Any, Any]: ...

    @abstractmethod
    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor) -> ReducingState[Any]: ...

    @abstractmethod
    def get_aggregating_state(self, state_descriptor: AggregatingStateDescriptor) -> AggregatingState[Any, Any]: ...


class RuntimeContext(KeyedStateStore):
    """Where a function runs, its state and its metrics. Given to `open()`."""

    @abstractmethod
    def get_task_name(self) -> str: ...

    @abstractmethod
    def get_number_of_parallel_subtasks(self) -> int: ...

    @abstractmethod
    def get_max_number_of_parallel_subtasks(self) -> int: ...

    @abstractmethod
    def get_index_of_this_subtask(self) -> int: ...

    @abstractmethod
    def get_attempt_number(self) -> int:
        """0 for the first start of the job, one more for every restart."""

    @abstractmethod
    def get_task_name_with_subtasks(self) -> str: ...

    @abstractmethod
    def get_job_parameter(self, key: str, default_value: str) -> str:
        """A parameter that was set for the whole job, or the default when it was not."""

    @abstractmethod
    def get_metrics_group(self) -> MetricGroup:
        """Where the function registers metrics of its own."""


class Function(ABC):  # noqa: B024  a base class whose hooks are all optional
    """Base of all user functions."""

    def open(self, runtime_context: RuntimeContext) -> None:  # noqa: B027
        """Called once in the slot, before the first record."""

    def close(self) -> None:  # noqa: B027
        """Called once in the slot, after the last record."""
