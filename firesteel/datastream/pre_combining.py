"""Combining a window's records where they come from, before they are sent to the subtask that has its key.

This file says for which windows that gives the same results; `runtime/windows/precombining.py` does it, and says why.
"""

from __future__ import annotations

import dis
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from firesteel.datastream.functions import AggregateFunction, Function
from firesteel.datastream.window import EventTimeTrigger, SlidingEventTimeWindows, TumblingEventTimeWindows
from firesteel.graph.nodes import Window
from firesteel.graph.plan import JobPlan

_ASSIGNERS = (TumblingEventTimeWindows, SlidingEventTimeWindows)


def obstacle(window: Window) -> str | None:
    """Why a window's records cannot be combined before they are sent; None: they can."""
    if window.combine is None:
        return "apply() and process() need all records of a window: use reduce() or aggregate()"
    if window.evictor is not None:
        return "an evictor needs all records of a window"
    if type(window.assigner) not in _ASSIGNERS:
        return f"{type(window.assigner).__name__} are neither tumbling nor sliding windows by event time"
    if type(window.trigger) is not EventTimeTrigger:
        return f"{type(window.trigger).__name__} may look at every record, and fire between any two of them"
    if window.allowed_lateness:
        return "with allowed lateness a window fires for every late record"
    if window.late_tag is not None:
        return "side_output_late_data() needs every record that is late"
    return _cannot(window.combine)


def _cannot(function: Any) -> str | None:
    kind = type(function)
    if isinstance(function, Function) and (kind.open is not Function.open or kind.close is not Function.close):
        return f"{kind.__name__} has open() or close(), and so belongs to its own subtasks"
    if isinstance(function, AggregateFunction) and not _merges(function.merge):
        return f"{kind.__name__}.merge() does not look at both accumulators, and so cannot merge them"
    return None


def _merges(merge: Any) -> bool:
    """Whether it reads both of its arguments. Windows that do not merge get along without, and many a `merge` is `pass`."""
    code = getattr(merge, "__code__", None)
    if code is None:
        return True  # not written in Python: there is nothing to look at
    if code.co_flags & 0x0C:
        return True  # *args, **kwargs: whoever they are handed to
    arguments = code.co_varnames[: code.co_argcount][-2:]
    return len(arguments) == 2 and _names_read(dis.get_instructions(code)).issuperset(arguments)


def _names_read(instructions: Iterable[Any]) -> set[Any]:
    read: set[Any] = set()
    for each in instructions:
        if "LOAD_" in each.opname:  # from Python 3.13 on one instruction may load two
            read.update(each.argval if isinstance(each.argval, tuple) else (each.argval,))
    return read


def settled(plan: JobPlan, enabled: bool) -> JobPlan:
    """The plan with the decision made for every operator.

    :param enabled: what to do where the program says nothing (`firesteel.window.pre-combine`).
    """
    operators = []
    for operator in plan.operators:
        kind = operator.operator
        if isinstance(kind, Window):
            wanted = enabled if kind.pre_combine is None else kind.pre_combine
            operator = replace(operator, operator=replace(kind, pre_combine=wanted and obstacle(kind) is None))
        operators.append(operator)
    return JobPlan(tuple(operators))
