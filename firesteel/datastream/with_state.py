"""Functions of (value, state) returning (output, new state): keyed state without a function class."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

from firesteel.datastream.process_functions import KeyedProcessFunction
from firesteel.datastream.runtime_context import RuntimeContext
from firesteel.datastream.state import ValueState, ValueStateDescriptor

StatefulFunction = Callable[[Any, Any], tuple[Any, Any]]


class WithState(KeyedProcessFunction):
    """Keeps what the function returns as the new state for the key's next record; None removes it."""

    method: str
    _state: ValueState[Any]

    def __init__(self, func: StatefulFunction) -> None:
        self._func = func

    def open(self, runtime_context: RuntimeContext) -> None:
        self._state = runtime_context.get_state(ValueStateDescriptor("state"))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterable[Any] | None:
        result = self._func(value, self._state.value())
        if not isinstance(result, tuple) or len(result) != 2:
            raise TypeError(f"the function of {self.method}() must return (output, new state), not {result!r:.200}")
        output, state = result
        self._state.update(state)
        return self._outputs(value, output)

    @abstractmethod
    def _outputs(self, value: Any, output: Any) -> Iterable[Any] | None:
        """The records the function's output stands for."""


class MapWithState(WithState):
    method = "map_with_state"

    def _outputs(self, value: Any, output: Any) -> Iterable[Any] | None:
        return (output,)


class FlatMapWithState(WithState):
    method = "flat_map_with_state"

    def _outputs(self, value: Any, output: Any) -> Iterable[Any] | None:
        return output  # type: ignore[no-any-return]


class FilterWithState(WithState):
    method = "filter_with_state"

    def _outputs(self, value: Any, output: Any) -> Iterable[Any] | None:
        return (value,) if output else None
