"""What functions see of the slot they run in."""

from __future__ import annotations

from typing import Any

from firesteel.connectors.base import ReaderContext
from firesteel.datastream.functions import KeyedProcessFunction, ProcessFunction, RuntimeContext
from firesteel.datastream.state import ValueState, ValueStateDescriptor
from firesteel.errors import StateError
from firesteel.graph.plan import PlannedOperator
from firesteel.runtime.keyed_state import KeyedState


class SlotRuntimeContext(RuntimeContext):
    """A function's place: its operator, subtask and attempt, and its state if the stream is keyed."""

    def __init__(self, operator: PlannedOperator, place: ReaderContext, attempt: int, keyed: KeyedState | None) -> None:
        self._operator = operator
        self._place = place
        self._attempt = attempt
        self._keyed = keyed

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

    def get_state(self, state_descriptor: ValueStateDescriptor) -> ValueState[Any]:
        if self._keyed is None:
            raise StateError(
                f"{self._operator} asks for keyed state {getattr(state_descriptor, 'name', state_descriptor)!r}, but its "
                f"stream is not keyed. Call key_by(...) before it"
            )
        return self._keyed.value_state(state_descriptor)


class ProcessContext(ProcessFunction.Context):
    def timestamp(self) -> int | None:
        return None


class KeyedProcessContext(KeyedProcessFunction.Context):
    __slots__ = ("_keyed",)

    def __init__(self, keyed: KeyedState) -> None:
        self._keyed = keyed

    def get_current_key(self) -> Any:
        return self._keyed.key

    def timestamp(self) -> int | None:
        return None
