"""Functions that evaluate a window when its trigger fires.

They are given what is in the window: all its records, or the one result of a reduce or aggregate function. They yield
their outputs; `yield output_tag, value` goes to the side output of that tag. A context is valid only during the call it is
given to.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from firesteel.datastream.runtime_context import Function, KeyedStateStore

IN = TypeVar("IN")
OUT = TypeVar("OUT")
KEY = TypeVar("KEY")
W = TypeVar("W")
W2 = TypeVar("W2")


class WindowFunction(Function, Generic[IN, OUT, KEY, W]):
    """Evaluates a window of a key."""

    @abstractmethod
    def apply(self, key: KEY, window: W, inputs: Iterable[IN]) -> Iterable[OUT] | None:
        """Yield any number of outputs."""


class AllWindowFunction(Function, Generic[IN, OUT, W]):
    """Evaluates a window of a stream that has no keys."""

    @abstractmethod
    def apply(self, window: W, inputs: Iterable[IN]) -> Iterable[OUT] | None:
        """Yield any number of outputs."""


class ProcessWindowFunction(Function, Generic[IN, OUT, KEY, W]):
    """Evaluates a window of a key, knowing about time and keeping state."""

    class Context(ABC, Generic[W2]):
        """The window, time and state."""

        @abstractmethod
        def window(self) -> W2: ...

        @abstractmethod
        def current_processing_time(self) -> int: ...

        @abstractmethod
        def current_watermark(self) -> int: ...

        @abstractmethod
        def window_state(self) -> KeyedStateStore:
            """State of this window of this key. Remove it in `clear`. Not for windows that merge."""

        @abstractmethod
        def global_state(self) -> KeyedStateStore:
            """State of this key, whatever the window."""

    @abstractmethod
    def process(
        self, key: KEY, context: ProcessWindowFunction.Context[Any], elements: Iterable[IN]
    ) -> Iterable[OUT] | None:
        """Yield any number of outputs."""

    def clear(self, context: ProcessWindowFunction.Context[Any]) -> None:
        """The window is over, its allowed lateness included: remove what was kept in `context.window_state()`."""


class ProcessAllWindowFunction(Function, Generic[IN, OUT, W]):
    """Evaluates a window of a stream that has no keys, knowing about time and keeping state."""

    class Context(ProcessWindowFunction.Context[W2]):
        """The window, time and state."""

    @abstractmethod
    def process(self, context: ProcessAllWindowFunction.Context[Any], elements: Iterable[IN]) -> Iterable[OUT] | None:
        """Yield any number of outputs."""

    def clear(self, context: ProcessAllWindowFunction.Context[Any]) -> None:
        """The window is over, its allowed lateness included: remove what was kept in `context.window_state()`."""


class PlainWindowFunction(WindowFunction[Any, Any, Any, Any]):
    """A function of (key, window, inputs)."""

    def __init__(self, function: Callable[[Any, Any, Iterable[Any]], Iterable[Any] | None]) -> None:
        self._function = function

    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Iterable[Any] | None:
        return self._function(key, window, inputs)


class PlainAllWindowFunction(AllWindowFunction[Any, Any, Any]):
    """A function of (window, inputs)."""

    def __init__(self, function: Callable[[Any, Iterable[Any]], Iterable[Any] | None]) -> None:
        self._function = function

    def apply(self, window: Any, inputs: Iterable[Any]) -> Iterable[Any] | None:
        return self._function(window, inputs)
