"""What users implement. A plain function works wherever a function class does; the class adds open() and close()."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from firesteel.datastream.state import ValueState, ValueStateDescriptor


class RuntimeContext(ABC):
    """Where a function runs, and its state. Given to `open()`."""

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
    def get_state(self, state_descriptor: ValueStateDescriptor) -> ValueState[Any]:
        """The value state of that name; only in functions of a keyed stream."""


class Function(ABC):  # noqa: B024  a base class whose hooks are all optional
    """Base of all user functions."""

    def open(self, runtime_context: RuntimeContext) -> None:  # noqa: B027
        """Called once in the slot, before the first record."""

    def close(self) -> None:  # noqa: B027
        """Called once in the slot, after the last record."""


class MapFunction(Function):
    @abstractmethod
    def map(self, value: Any) -> Any:
        """One output for one input."""


class FlatMapFunction(Function):
    @abstractmethod
    def flat_map(self, value: Any) -> Iterable[Any] | None:
        """Any number of outputs for one input: yield them, or return an iterable or None."""


class FilterFunction(Function):
    @abstractmethod
    def filter(self, value: Any) -> bool:
        """Whether the input is kept."""


class ReduceFunction(Function):
    @abstractmethod
    def reduce(self, value1: Any, value2: Any) -> Any:
        """Combine the reduction so far with a new input."""


class KeySelector(Function):
    @abstractmethod
    def get_key(self, value: Any) -> Any:
        """The key of an input. Must give the same key for the same input, always."""


class ProcessFunction(Function):
    """The general function on a stream that is not keyed."""

    class Context(ABC):
        @abstractmethod
        def timestamp(self) -> int | None:
            """The record's timestamp in milliseconds, None when it has none."""

    @abstractmethod
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterable[Any] | None:
        """Yield any number of outputs."""


class KeyedProcessFunction(Function):
    """The general function on a keyed stream, with state for each key."""

    class Context(ABC):
        @abstractmethod
        def get_current_key(self) -> Any: ...

        @abstractmethod
        def timestamp(self) -> int | None:
            """The record's timestamp in milliseconds, None when it has none."""

    @abstractmethod
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterable[Any] | None:
        """Yield any number of outputs."""
