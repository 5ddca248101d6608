"""The general functions: with time, timers and side outputs, over one stream or over two connected ones.

They yield their outputs; `yield output_tag, value` goes to the side output of that tag. Timers, like keyed state, belong
to a key, so there are none on streams that are not keyed. A context is valid only during the call it is given to.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from firesteel.datastream.runtime_context import Function
from firesteel.datastream.time_domain import TimeDomain
from firesteel.datastream.timerservice import TimerService


class ProcessContext(ABC):
    """What every process function's context has."""

    @abstractmethod
    def timer_service(self) -> TimerService: ...

    @abstractmethod
    def timestamp(self) -> int | None:
        """The timestamp of the record or of the firing timer, in milliseconds; None for a record that has none."""


class KeyedProcessContext(ProcessContext):
    """What the context has on keyed streams."""

    @abstractmethod
    def get_current_key(self) -> Any: ...


class TimerContext(ABC):
    """What the context has in `on_timer`."""

    @abstractmethod
    def time_domain(self) -> TimeDomain:
        """Whether the firing timer is one of event time or of processing time."""


class ProcessFunction(Function):
    """The general function on a stream that is not keyed."""

    class Context(ProcessContext):
        """Time, for `process_element`."""

    class OnTimerContext(Context, TimerContext):
        """Time, for `on_timer`."""

    @abstractmethod
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterable[Any] | None:
        """Yield any number of outputs."""

    def on_timer(self, timestamp: int, ctx: ProcessFunction.OnTimerContext) -> Iterable[Any] | None:
        """Yield any number of outputs when a timer fires."""
        return None


class KeyedProcessFunction(Function):
    """The general function on a keyed stream, with state and timers for each key."""

    class Context(KeyedProcessContext):
        """Key and time, for `process_element`."""

    class OnTimerContext(Context, TimerContext):
        """Key and time, for `on_timer`."""

    @abstractmethod
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterable[Any] | None:
        """Yield any number of outputs."""

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterable[Any] | None:
        """Yield any number of outputs when a timer of the current key fires."""
        return None


class CoProcessFunction(Function):
    """The general function on two connected streams."""

    class Context(ProcessContext):
        """Time, for `process_element1` and `process_element2`."""

    class OnTimerContext(Context, TimerContext):
        """Time, for `on_timer`."""

    @abstractmethod
    def process_element1(self, value: Any, ctx: CoProcessFunction.Context) -> Iterable[Any] | None:
        """Yield any number of outputs for a record of the first stream."""

    @abstractmethod
    def process_element2(self, value: Any, ctx: CoProcessFunction.Context) -> Iterable[Any] | None:
        """Yield any number of outputs for a record of the second stream."""

    def on_timer(self, timestamp: int, ctx: CoProcessFunction.OnTimerContext) -> Iterable[Any] | None:
        """Yield any number of outputs when a timer fires."""
        return None


class KeyedCoProcessFunction(Function):
    """The general function on two connected keyed streams, which share the state and timers of a key."""

    class Context(KeyedProcessContext):
        """Key and time, for `process_element1` and `process_element2`."""

    class OnTimerContext(Context, TimerContext):
        """Key and time, for `on_timer`."""

    @abstractmethod
    def process_element1(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Iterable[Any] | None:
        """Yield any number of outputs for a record of the first stream."""

    @abstractmethod
    def process_element2(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Iterable[Any] | None:
        """Yield any number of outputs for a record of the second stream."""

    def on_timer(self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext) -> Iterable[Any] | None:
        """Yield any number of outputs when a timer of the current key fires."""
        return None
