"""Windows that have nothing to do with time: by the number of records of a key, and the one window of everything."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from firesteel.common.serializer import TypeSerializer
from firesteel.common.typeinfo import Types
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.datastream.window.assigners import WindowAssigner
from firesteel.datastream.window.triggers import CountTrigger, NeverTrigger, PurgingTrigger
from firesteel.datastream.window.windows import (
    CountWindow,
    CountWindowSerializer,
    GlobalWindow,
    GlobalWindowSerializer,
)
from firesteel.graph.nodes import check_positive


class CountWindows(WindowAssigner[Any, CountWindow]):
    """Numbers the records of a key; how many there were is the key's state.

    Unlike in PyFlink, a window's records are thrown away once it is full and has fired: no other record can belong to it,
    and time never would.
    """

    def __init__(self, window_size: int, window_slide: int, counter: str) -> None:
        self._window_size = check_positive("the size of count windows", window_size)
        self._window_slide = check_positive("the slide of count windows", window_slide)
        self._count = ValueStateDescriptor(counter, Types.LONG())

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[CountWindow]:
        state = context.get_runtime_context().get_state(self._count)
        index = state.value() or 0
        state.update(index + 1)
        last, before_first = index // self._window_slide, (index - self._window_size) // self._window_slide
        return [CountWindow(number) for number in range(last, max(before_first, -1), -1)]

    def get_default_trigger(self, env: Any) -> PurgingTrigger:
        return PurgingTrigger(CountTrigger(self._window_size))

    def get_window_serializer(self) -> TypeSerializer[CountWindow]:
        return CountWindowSerializer()

    def is_event_time(self) -> bool:
        return False


class CountTumblingWindowAssigner(CountWindows):
    """A window for every so many records of a key."""

    def __init__(self, window_size: int) -> None:
        super().__init__(window_size, window_size, "tumble-count-assigner")

    @staticmethod
    def of(window_size: int) -> CountTumblingWindowAssigner:
        return CountTumblingWindowAssigner(window_size)

    def __repr__(self) -> str:
        return f"CountTumblingWindowAssigner({self._window_size})"


class CountSlidingWindowAssigner(CountWindows):
    """A window of the last `window_size` records of a key after every `window_slide` of them, from the first full one on."""

    def __init__(self, window_size: int, window_slide: int) -> None:
        super().__init__(window_size, window_slide, "slide-count-assigner")

    @staticmethod
    def of(window_size: int, window_slide: int) -> CountSlidingWindowAssigner:
        return CountSlidingWindowAssigner(window_size, window_slide)

    def __repr__(self) -> str:
        return f"CountSlidingWindowAssigner({self._window_size}, {self._window_slide})"


class GlobalWindows(WindowAssigner[Any, GlobalWindow]):
    """One window for everything. It never ends, so it needs a trigger that fires and, sooner or later, purges."""

    @staticmethod
    def create() -> GlobalWindows:
        return GlobalWindows()

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[GlobalWindow]:
        return (GlobalWindow.get(),)

    def get_default_trigger(self, env: Any) -> NeverTrigger:
        return NeverTrigger()

    def get_window_serializer(self) -> TypeSerializer[GlobalWindow]:
        return GlobalWindowSerializer()

    def is_event_time(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "GlobalWindows()"
