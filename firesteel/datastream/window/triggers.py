"""The triggers there are."""

from __future__ import annotations

import operator
from abc import abstractmethod
from typing import Any

from firesteel.common.typeinfo import TypeInformation, Types
from firesteel.datastream.given import check_millis
from firesteel.datastream.state import ReducingStateDescriptor, ValueStateDescriptor
from firesteel.datastream.window.delta import DeltaFunction, check_delta_function, delta_of
from firesteel.datastream.window.trigger import Trigger, TriggerResult
from firesteel.datastream.window.windows import MAX_LONG_VALUE
from firesteel.errors import GraphError
from firesteel.graph.nodes import check_positive

_CONTINUE, _FIRE = TriggerResult.CONTINUE, TriggerResult.FIRE


class _Plain(Trigger[Any, Any]):
    """A trigger that no timer concerns, unless it says so."""

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        return _CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        return _CONTINUE

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class EventTimeTrigger(_Plain):
    """Fires when the watermark passes the end of the window, and then for every record that is late but not too late."""

    @staticmethod
    def create() -> EventTimeTrigger:
        return EventTimeTrigger()

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        if window.max_timestamp() <= ctx.get_current_watermark():
            return _FIRE
        ctx.register_event_time_timer(window.max_timestamp())
        return _CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        return _FIRE if time == window.max_timestamp() else _CONTINUE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        if window.max_timestamp() > ctx.get_current_watermark():  # else the next record fires it, as any late one does
            ctx.register_event_time_timer(window.max_timestamp())

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        ctx.delete_event_time_timer(window.max_timestamp())


class ProcessingTimeTrigger(_Plain):
    """Fires when the machine's clock passes the end of the window."""

    @staticmethod
    def create() -> ProcessingTimeTrigger:
        return ProcessingTimeTrigger()

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        ctx.register_processing_time_timer(window.max_timestamp())
        return _CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        return _FIRE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        if window.max_timestamp() > ctx.get_current_processing_time():
            ctx.register_processing_time_timer(window.max_timestamp())

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        ctx.delete_processing_time_timer(window.max_timestamp())


class _Continuous(_Plain):
    """Fires at the multiples of an interval. The next time is state, the earlier one of two windows that merge."""

    def __init__(self, interval: int) -> None:
        self.interval = check_positive(f"the interval of {type(self).__name__}", interval)
        self._next_fire = ReducingStateDescriptor("fire-time", min, Types.LONG())

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        ctx.merge_partitioned_state(self._next_fire)
        time = ctx.get_partitioned_state(self._next_fire).get()
        if time is not None:
            self._register(ctx, time)

    def _schedule(self, after: int, window: Any, ctx: Trigger.TriggerContext, first: bool = True) -> None:
        """
        :param first: it has not fired at `after`, and does if that is the end of the window.
        """
        time, end = after + self.interval, window.max_timestamp()
        # not in windows that are over: those by event time may long be, by the clock
        if after - first < end < time or self._is_over(ctx):
            time = end
        ctx.get_partitioned_state(self._next_fire).add(time)
        self._register(ctx, time)

    def _is_due(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> bool:
        state = ctx.get_partitioned_state(self._next_fire)
        if state.get() != time:
            return False
        state.clear()
        self._schedule(time, window, ctx, first=False)
        return True

    def _forget(self, ctx: Trigger.TriggerContext) -> int | None:
        state = ctx.get_partitioned_state(self._next_fire)
        time: int | None = state.get()
        state.clear()
        return time

    def _is_over(self, ctx: Trigger.TriggerContext) -> bool:
        """Whether time has come to its end, so that intervals would have none."""
        return False

    @abstractmethod
    def _register(self, ctx: Trigger.TriggerContext, time: int) -> None: ...

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.interval})"


class ContinuousEventTimeTrigger(_Continuous):
    """Fires at every multiple of an interval that the watermark passes, and at the end of the window."""

    @staticmethod
    def of(interval: Any) -> ContinuousEventTimeTrigger:
        return ContinuousEventTimeTrigger(check_millis("the interval of a ContinuousEventTimeTrigger", interval))

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        if window.max_timestamp() <= ctx.get_current_watermark():
            return _FIRE
        ctx.register_event_time_timer(window.max_timestamp())
        if ctx.get_partitioned_state(self._next_fire).get() is None:
            self._schedule(timestamp - timestamp % self.interval, window, ctx)
        return _CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        return _FIRE if time == window.max_timestamp() or self._is_due(time, window, ctx) else _CONTINUE

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        ctx.delete_event_time_timer(window.max_timestamp())
        time = self._forget(ctx)
        if time is not None:
            ctx.delete_event_time_timer(time)

    def _is_over(self, ctx: Trigger.TriggerContext) -> bool:
        return ctx.get_current_watermark() == MAX_LONG_VALUE

    def _register(self, ctx: Trigger.TriggerContext, time: int) -> None:
        ctx.register_event_time_timer(time)


class ContinuousProcessingTimeTrigger(_Continuous):
    """Fires at every multiple of an interval that the machine's clock passes."""

    @staticmethod
    def of(interval: Any) -> ContinuousProcessingTimeTrigger:
        millis = check_millis("the interval of a ContinuousProcessingTimeTrigger", interval)
        return ContinuousProcessingTimeTrigger(millis)

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        if ctx.get_partitioned_state(self._next_fire).get() is None:
            now = ctx.get_current_processing_time()
            self._schedule(now - now % self.interval, window, ctx)
        return _CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        return _FIRE if self._is_due(time, window, ctx) else _CONTINUE

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        time = self._forget(ctx)
        if time is not None:
            ctx.delete_processing_time_timer(time)

    def _register(self, ctx: Trigger.TriggerContext, time: int) -> None:
        ctx.register_processing_time_timer(time)


class CountTrigger(_Plain):
    """Fires at every so many records of a window."""

    def __init__(self, window_size: int) -> None:
        self._window_size = check_positive("the count of a CountTrigger", window_size)
        self._count = ReducingStateDescriptor("count", operator.add, Types.LONG())

    @staticmethod
    def of(window_size: int) -> CountTrigger:
        return CountTrigger(window_size)

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        count = ctx.get_partitioned_state(self._count)
        count.add(1)
        if count.get() < self._window_size:
            return _CONTINUE
        count.clear()
        return _FIRE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        ctx.merge_partitioned_state(self._count)

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        ctx.get_partitioned_state(self._count).clear()

    def __repr__(self) -> str:
        return f"CountTrigger({self._window_size})"


class DeltaTrigger(_Plain):
    """Fires when a record is further than a threshold from the one at which it fired last, or from the first one."""

    def __init__(
        self, threshold: float, delta_function: DeltaFunction | Any, state_type: TypeInformation | None = None
    ) -> None:
        self._threshold = threshold
        self._delta_function = check_delta_function("DeltaTrigger", delta_function)
        self._last = ValueStateDescriptor("last-element", state_type)

    @staticmethod
    def of(
        threshold: float, delta_function: DeltaFunction | Any, state_type: TypeInformation | None = None
    ) -> DeltaTrigger:
        """
        :param delta_function: a DeltaFunction or a function of (older record, newer record).
        """
        return DeltaTrigger(threshold, delta_function, state_type)

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        last = ctx.get_partitioned_state(self._last)
        before = last.value()
        if before is None:
            last.update(element)
            return _CONTINUE
        if delta_of(self._delta_function)(before, element) > self._threshold:
            last.update(element)
            return _FIRE
        return _CONTINUE

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        ctx.get_partitioned_state(self._last).clear()

    def __repr__(self) -> str:
        return f"DeltaTrigger({self._threshold})"


class PurgingTrigger(Trigger[Any, Any]):
    """Another trigger, whose firing also throws away what is in the window."""

    def __init__(self, nested_trigger: Trigger[Any, Any]) -> None:
        if not isinstance(nested_trigger, Trigger):
            raise GraphError(f"PurgingTrigger.of() takes another trigger, not {nested_trigger!r:.200}")
        self.nested_trigger = nested_trigger

    @staticmethod
    def of(nested_trigger: Trigger[Any, Any]) -> PurgingTrigger:
        return PurgingTrigger(nested_trigger)

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        return _purging(self.nested_trigger.on_element(element, timestamp, window, ctx))

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        return _purging(self.nested_trigger.on_event_time(time, window, ctx))

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        return _purging(self.nested_trigger.on_processing_time(time, window, ctx))

    def can_merge(self) -> bool:
        return self.nested_trigger.can_merge()

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        self.nested_trigger.on_merge(window, ctx)

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        self.nested_trigger.clear(window, ctx)

    def __repr__(self) -> str:
        return f"PurgingTrigger({self.nested_trigger!r})"


def _purging(result: TriggerResult) -> TriggerResult:
    return TriggerResult.FIRE_AND_PURGE if result is _FIRE else result


class NeverTrigger(_Plain):
    """Never fires. What global windows have unless they are given another one."""

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        return _CONTINUE

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        """There is nothing to clear."""
