"""The general window operator: any assigner, trigger, evictor and function. It does what Flink's WindowOperator does, in
the same order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any

from firesteel.datastream.state import ListState
from firesteel.datastream.time_domain import TimeDomain
from firesteel.datastream.window import MergingWindowAssigner, TimeWindow, TriggerResult
from firesteel.datastream.window.windows import MIN_LONG_VALUE
from firesteel.errors import UserCodeError
from firesteel.graph import nodes
from firesteel.graph.keys import groups_of
from firesteel.graph.plan import PlannedOperator
from firesteel.runtime.callables import resolve_selector
from firesteel.runtime.context import SlotRuntimeContext
from firesteel.runtime.copying import own
from firesteel.runtime.failures import OperatorFailure, on_record
from firesteel.runtime.flow import Emitter, Times, Values
from firesteel.runtime.keyed_state import KeyedState
from firesteel.runtime.process import Output
from firesteel.runtime.windows.contexts import AssignerContext, TriggerContext
from firesteel.runtime.windows.evaluation import Evaluation
from firesteel.runtime.windows.evicting import EvictingEvaluation
from firesteel.runtime.windows.lateness import Lateness
from firesteel.runtime.windows.merging import MergingWindowSet
from firesteel.runtime.windows.states import (
    TRIGGER,
    WindowScope,
    check_contents,
    combined_kind,
    contents_of,
    contents_table,
    merge_of,
)
from firesteel.runtime.windows.timers import WindowTimers, push
from firesteel.runtime.windows.waiting import Element, take_waiting
from firesteel.state.store import WindowTable


class WindowOperator:
    """One operator's windows in one subtask."""

    def __init__(
        self,
        operator: PlannedOperator,
        kind: nodes.Window,
        keyed: KeyedState,
        context: SlotRuntimeContext,
        emitter: Emitter,
        now: Callable[[], int],
    ) -> None:
        check_contents(kind, keyed.store)
        self._operator, self._kind, self._keyed, self._emitter = operator, kind, keyed, emitter
        self._index = context.get_index_of_this_subtask()
        self._selector = resolve_selector(operator.key_selector())
        self.timers = self._create_timers(operator, self.on_timer, keyed, emitter, now)
        service, metrics = self.timers.service, context.get_metrics_group()
        self._lateness = Lateness(kind, service, metrics, emitter)
        evaluate = Evaluation if kind.evictor is None else EvictingEvaluation
        self._evaluation = evaluate(kind, keyed, service, context, emitter)
        self._assigner_context = AssignerContext(service, context)
        self._contents = WindowScope(keyed)
        self._state: Any = contents_of(kind, self._contents)
        self._is_list = isinstance(self._state, ListState)
        self._triggers = WindowScope(keyed, TRIGGER)
        self._trigger = kind.trigger
        self._trigger_context = TriggerContext(
            self._triggers, service, self.timers.event, self.timers.processing, metrics
        )
        self._merging: MergingWindowSet | None = None
        if isinstance(kind.assigner, MergingWindowAssigner):
            self._merging = MergingWindowSet(kind.assigner, keyed)

    def _create_timers(self, *parts: Any) -> WindowTimers:
        return WindowTimers(*parts)

    def restored(self) -> int:
        """State and watermark are there. Gives how many records are in windows now that came before the checkpoint and had
        not been sent here."""
        table = contents_table(self._kind, self._keyed.store)
        waited = self._take_waiting(table)
        self._resume(table)
        return waited

    def _take_waiting(self, table: WindowTable | None) -> int:
        operator = self._operator
        mine = groups_of(self._index, operator.parallelism, operator.max_parallelism)

        def put(part: Element) -> None:
            assert table is not None
            window = TimeWindow(part.start, part.end)
            if self._lateness.is_window_late(window):
                self._lateness.drop(part.records)
            else:
                self._merge_into(table, window, part.keys, part.values)

        return take_waiting(self._keyed.store, combined_kind(self._kind) if table is not None else "", mine, put)

    def _merge_into(self, table: WindowTable, window: TimeWindow, keys: Sequence[Any], values: Sequence[Any]) -> None:
        """Merge what records of one window were combined into where they came from (precombining.py)."""
        if not values:
            return
        rest: Any = iter(values)
        try:
            table.pane(window).combine(keys, rest, None, merge_of(self._kind, values[0]))
        except Exception as error:
            key = keys[len(values) - rest.__length_hint__() - 1]
            doing = f"merging what belongs to {window} of the key {key!r:.200}"
            raise OperatorFailure(self._operator, doing, error) from error

    def _resume(self, table: WindowTable | None) -> None:
        """Windows that the short loop has kept without timers get them now."""
        entries = [entry for entry, _ in table.scan()] if table is not None else []
        timers = self.timers.event if self._kind.assigner.is_event_time() else self.timers.processing
        have = {entry for (entry, _), _ in timers.scan()} if entries else set()
        for entry in entries:
            if entry not in have:
                _, window, _ = self._triggers.states.key = entry
                if not self._lateness.has_ended(window):
                    timers.register(entry, window.max_timestamp())
                self._lateness.register_cleanup(window, self._trigger_context)

    # ---- records

    def push(self, values: Values, times: Times) -> None:
        out = Output(self._emitter)
        element = self._element if self._merging is None else self._merging_element
        if self._kind.assigner.is_event_time():
            check_times(self._operator, values, times)
        value = None
        try:
            for value, time in zip(values, repeat(None) if times is None else times, strict=False):
                key = self._keyed.key = self._selector(value)
                stamp = MIN_LONG_VALUE if time is None else time
                windows = self._kind.assigner.assign_windows(value, stamp, self._assigner_context)
                if not element(key, value, time, windows, out) and self._lateness.is_element_late(stamp):
                    self._lateness.take(value, time, out)
        except Exception as error:
            raise on_record(self._operator, value, error) from error
        push(out)

    def _element(self, key: Any, value: Any, time: int | None, windows: Any, out: Output) -> bool:
        """Put a record into windows. Says whether there was one that it is not too late for."""
        taken = False
        windows = list(windows)
        last = len(windows) - 1
        for index, window in enumerate(windows):
            if not self._lateness.is_window_late(window):
                taken = True
                self._contents.enter(key, window)
                # a function may change what it has made so far, which is the record itself at first
                mine = value if index == last or self._is_list else own(value)
                self._add(key, window, mine, time, out)
        return taken

    def _merging_element(self, key: Any, value: Any, time: int | None, windows: Any, out: Output) -> bool:
        assert self._merging is not None
        taken = False
        for window in windows:
            actual = self._merging.add(window, self._on_merge)
            if self._lateness.is_window_late(actual):
                self._merging.retire(actual)
                continue
            taken = True
            self._contents.enter(key, self._merging.state_window(actual))
            self._add(key, actual, value, time, out)
        return taken

    def _add(self, key: Any, window: Any, value: Any, time: int | None, out: Output) -> None:
        """A record comes into a window whose contents are entered."""
        self._state.add(value if self._kind.evictor is None else (value, time))
        self._triggers.enter(key, window)
        stamp = MIN_LONG_VALUE if time is None else time
        result = self._trigger.on_element(value, stamp, window, self._trigger_context)
        self._act(result, key, window, time, out)
        self._lateness.register_cleanup(window, self._trigger_context)

    def _on_merge(self, result: Any, parts: list[Any], state_window: Any, state_windows: list[Any]) -> None:
        """Windows of the current key have become one."""
        key = self._keyed.key
        self._lateness.check_merged(result)
        context = self._trigger_context
        self._triggers.enter(key, result)
        context.merged = parts
        self._trigger.on_merge(result, context)
        for part in parts:
            self._triggers.enter(key, part)
            self._trigger.clear(part, context)
            self._lateness.delete_cleanup(part, context)
        self._contents.unite(self._state, key, state_window, state_windows)

    # ---- time

    def on_timer(self, time: int, key: Any, window: Any, domain: TimeDomain, out: Output) -> None:
        """A timer that the trigger set, or the end of the window and of its lateness."""
        self._keyed.key = key
        state_window = window
        if self._merging is not None:
            state_window = self._merging.state_window(window)
            if state_window is None:
                return  # the trigger left a timer behind for a window that is part of another one by now
        self._contents.enter(key, state_window)
        self._triggers.enter(key, window)
        event_time = domain is TimeDomain.EVENT_TIME
        fire = self._trigger.on_event_time if event_time else self._trigger.on_processing_time
        self._act(fire(time, window, self._trigger_context), key, window, time, out)
        if self._lateness.is_cleanup(window, time, event_time):
            self._state.clear()
            self._trigger.clear(window, self._trigger_context)
            self._evaluation.clear(key, window)
            if self._merging is not None:
                self._merging.retire(window)

    def _act(self, result: TriggerResult, key: Any, window: Any, time: int | None, out: Output) -> None:
        """Do with the entered window what its trigger wants."""
        if result is TriggerResult.CONTINUE:
            return
        if not isinstance(result, TriggerResult):
            raise UserCodeError(f"{type(self._trigger).__name__} must return a TriggerResult, not {result!r:.200}")
        if result.is_fire():
            elements = self._elements()
            if elements is not None:
                self._evaluation(key, window, elements, time, out)
                if isinstance(self._evaluation, EvictingEvaluation):
                    self._state.update(self._evaluation.left)
        if result.is_purge():
            self._state.clear()

    def _elements(self) -> list[Any] | None:
        """What is in the entered window, None when that is nothing."""
        found = self._state.get()
        if self._is_list:
            return list(found) or None
        # the window may fire again, with what its function makes of this one: maybe by changing it
        return None if found is None else [own(found)]


def check_times(operator: PlannedOperator, values: Values, times: Times) -> None:
    """
    :raises OperatorFailure: a record has no timestamp, and windows go by them.
    """
    if times is None or None in times:
        value = values[0] if times is None else values[times.index(None)]
        raise on_record(
            operator,
            value,
            UserCodeError(
                "the record has no timestamp, and windows by event time go by timestamps. Call "
                "assign_timestamps_and_watermarks(...) before key_by(...), or use windows by processing time"
            ),
        )
