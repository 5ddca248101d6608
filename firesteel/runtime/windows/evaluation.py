"""Calling window functions: those of four kinds, or none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firesteel.datastream.functions import (
    AllWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from firesteel.datastream.window import MergingWindowAssigner
from firesteel.datastream.window.windows import MAX_LONG_VALUE
from firesteel.graph import nodes
from firesteel.runtime.context import SlotRuntimeContext
from firesteel.runtime.flow import Emitter
from firesteel.runtime.keyed_state import KeyedState
from firesteel.runtime.process import Output
from firesteel.runtime.timers import KeyedTimerService
from firesteel.runtime.windows.contexts import NoWindowState, WindowContext
from firesteel.runtime.windows.states import WINDOW, WindowScope

Call = Callable[[Any, Any, Any], Any]
"""A function of (key, window, elements)."""


class Evaluation:
    """Evaluates windows: what their function gives goes to the output, with the window's last timestamp.

    A window without an end has none. Its results have the time of the record or timer that made it fire.
    """

    def __init__(
        self,
        kind: nodes.Window,
        keyed: KeyedState,
        service: KeyedTimerService,
        context: SlotRuntimeContext,
        emitter: Emitter,
    ) -> None:
        self._kind, self._keyed, self._scope = kind, keyed, WindowScope(keyed, WINDOW)
        merging = isinstance(kind.assigner, MergingWindowAssigner)
        per_window = NoWindowState() if merging else context.of(self._scope.states)
        self.context = WindowContext(context, per_window, service, context.get_metrics_group())
        self._function = kind.function
        self._call: Call = emitter.noting(self._calling(kind.function))
        self._has_clear = isinstance(kind.function, (ProcessWindowFunction, ProcessAllWindowFunction))

    def _calling(self, function: Any) -> Call:
        context = self.context
        if function is None:
            return lambda key, window, elements: elements
        if isinstance(function, WindowFunction):
            return function.apply
        if isinstance(function, AllWindowFunction):
            return lambda key, window, elements: function.apply(window, elements)
        if isinstance(function, ProcessWindowFunction):
            return lambda key, window, elements: function.process(key, context, elements)
        assert isinstance(function, ProcessAllWindowFunction)
        return lambda key, window, elements: function.process(context, elements)

    def __call__(self, key: Any, window: Any, elements: Any, time: int | None, out: Output) -> None:
        self.enter(key, window)
        results = self._call(key, window, elements)
        if results is not None:
            end = window.max_timestamp()
            out.add(results, time if end == MAX_LONG_VALUE else end)

    def clear(self, key: Any, window: Any) -> None:
        """The window is over."""
        if self._has_clear:
            self.enter(key, window)
            self._function.clear(self.context)

    def enter(self, key: Any, window: Any) -> None:
        """Let functions and evictors see this window."""
        self._keyed.key, self.context.current = key, window
        self._scope.enter(key, window)
