"""Operators compiled into closures over columns of records: built once for a slot, called once for a batch.

Calls inside a level pass lists along, so what an operator costs per record is the user's function and one loop turn.
A failing record is found again without bookkeeping on the way: by the loop variable, or by how much an iterator has left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

from firesteel.common.plain import all_plain
from firesteel.datastream.functions import (
    CoFlatMapFunction,
    CoMapFunction,
    FilterFunction,
    FlatMapFunction,
    MapFunction,
    ReduceFunction,
)
from firesteel.datastream.rolling import RollingField
from firesteel.errors import FiresteelError
from firesteel.graph import nodes
from firesteel.graph.plan import PlannedOperator
from firesteel.runtime.broadcast import BroadcastStates, broadcast_ports
from firesteel.runtime.callables import method_of, resolve_selector
from firesteel.runtime.context import FunctionContext
from firesteel.runtime.copying import own
from firesteel.runtime.failures import last_of, on_record
from firesteel.runtime.flow import Emitter, Push, Take, Times, Values
from firesteel.runtime.keyed_state import KeyedState
from firesteel.runtime.process import ProcessLoop
from firesteel.runtime.rolling import Rolling
from firesteel.runtime.timers import Timers

Call = Callable[[Any], Any]
Process = Callable[[Any, Any], Any]


@dataclass
class Operation:
    """An operator in a slot: a way in for each port, and what it does when time passes."""

    ports: Sequence[Push]
    advance: Callable[[int], None]
    idle: Callable[[bool], None]
    take: Take | None = None  # of windows, for records that were combined before


def compile_operator(
    operator: PlannedOperator,
    keyed: KeyedState | None,
    timers: Timers | None,
    context: FunctionContext,
    emitter: Emitter,
    broadcast: BroadcastStates | None = None,
) -> Operation:
    """The closures that take an operator's input and push its output to `emitter`. Sources and sinks are not here."""
    kind = operator.operator
    match kind:
        case nodes.Map():
            call = emitter.noting_one(method_of(kind.function, MapFunction, "map"))
            port = _map(operator, call, emitter) if keyed is None else _keyed_map(operator, call, keyed, emitter)
        case nodes.Filter():
            call = method_of(kind.function, FilterFunction, "filter")
            port = _filter(operator, call, emitter) if keyed is None else _keyed_filter(operator, call, keyed, emitter)
        case nodes.Reduce():
            assert keyed is not None
            port = _reduce(operator, kind.function, keyed, emitter)
        case nodes.FlatMap():
            flat = method_of(kind.function, FlatMapFunction, "flat_map")
            port = ProcessLoop(operator, _ignoring_context(flat), 0, keyed, context, emitter).push
        case nodes.CoMap():
            calls = _methods(kind.function, CoMapFunction, "map1", "map2")
            return _looping(operator, [_unless_none(call) for call in calls], keyed, timers, context, emitter)
        case nodes.CoFlatMap():
            calls = _methods(kind.function, CoFlatMapFunction, "flat_map1", "flat_map2")
            return _looping(operator, [_ignoring_context(call) for call in calls], keyed, timers, context, emitter)
        case nodes.Process():
            return _looping(operator, [kind.function.process_element], keyed, timers, context, emitter)
        case nodes.CoProcess():
            calls = [kind.function.process_element1, kind.function.process_element2]
            return _looping(operator, calls, keyed, timers, context, emitter)
        case nodes.BroadcastProcess():
            assert broadcast is not None
            return _timed(broadcast_ports(operator, broadcast, keyed, context, emitter), timers, context, emitter)
        case _:
            raise FiresteelError(f"{operator} is a {operator.kind}, which this version cannot run")
    return Operation([port], emitter.advance, emitter.idle)


def _looping(
    operator: PlannedOperator,
    calls: list[Process],
    keyed: KeyedState | None,
    timers: Timers | None,
    context: FunctionContext,
    emitter: Emitter,
) -> Operation:
    ports = [ProcessLoop(operator, call, port, keyed, context, emitter).push for port, call in enumerate(calls)]
    return _timed(ports, timers, context, emitter)


def _timed(ports: Sequence[Push], timers: Timers | None, context: FunctionContext, emitter: Emitter) -> Operation:
    if timers is not None:
        return Operation(ports, timers.advance, emitter.idle)
    service = context.timer_service()

    def advance(watermark: int) -> None:
        service.watermark = watermark  # type: ignore[attr-defined]
        emitter.advance(watermark)

    return Operation(ports, advance, emitter.idle)


def _methods(function: Any, kind: type, *names: str) -> list[Any]:
    assert isinstance(function, kind)
    return [getattr(function, name) for name in names]


def _ignoring_context(call: Call) -> Process:
    return lambda value, _: call(value)


def _unless_none(call: Call) -> Process:
    def process(value: Any, _: Any) -> Any:
        result = call(value)
        return None if result is None else (result,)

    return process


def _map(operator: PlannedOperator, call: Call, emitter: Emitter) -> Push:
    def push(values: Values, times: Times) -> None:
        rest = iter(values)
        try:
            out = list(map(call, rest))
        except Exception as error:
            raise on_record(operator, last_of(values, rest), error) from error
        emitter.push(out, times)

    return push


def _keyed_map(operator: PlannedOperator, call: Call, keyed: KeyedState, emitter: Emitter) -> Push:
    selector = resolve_selector(operator.key_selector())

    def push(values: Values, times: Times) -> None:
        out: list[Any] = []
        append = out.append
        value = None
        try:
            for value in values:
                keyed.key = selector(value)
                append(call(value))
        except Exception as error:
            raise on_record(operator, value, error) from error
        emitter.push(out, times)

    return push


def _filter(operator: PlannedOperator, call: Call, emitter: Emitter) -> Push:
    def push(values: Values, times: Times) -> None:
        rest = iter(values)
        try:
            keep = list(map(call, rest))
        except Exception as error:
            raise on_record(operator, last_of(values, rest), error) from error
        _emit_kept(values, times, keep, emitter)

    return push


def _keyed_filter(operator: PlannedOperator, call: Call, keyed: KeyedState, emitter: Emitter) -> Push:
    selector = resolve_selector(operator.key_selector())

    def push(values: Values, times: Times) -> None:
        keep: list[Any] = []
        value = None
        try:
            for value in values:
                keyed.key = selector(value)
                keep.append(call(value))
        except Exception as error:
            raise on_record(operator, value, error) from error
        _emit_kept(values, times, keep, emitter)

    return push


def _emit_kept(values: Values, times: Times, keep: list[Any], emitter: Emitter) -> None:
    out = list(compress(values, keep))
    if out:
        emitter.push(out, None if times is None else list(compress(times, keep)))


def _reduce(operator: PlannedOperator, function: Any, keyed: KeyedState, emitter: Emitter) -> Push:
    table, selector = keyed.store.value_table("/reduced"), resolve_selector(operator.key_selector())
    step = table.fold(keyed, selector, method_of(function, ReduceFunction, "reduce"))
    rolling = Rolling(function, table, selector, step) if isinstance(function, RollingField) else None
    copying = not operator.object_reuse

    def push(values: Values, times: Times) -> None:
        rest = iter(values)
        copied = copying and not all_plain(values[:1])
        try:
            if rolling is not None:
                out = rolling.roll(values, rest)
                if copied:
                    out = list(map(own, out))
            elif copied:  # one by one: the state keeps what is given out, and the next call may change it
                out = list(map(own, map(step, rest)))
            else:
                out = list(map(step, rest))
        except Exception as error:
            raise on_record(operator, last_of(values, rest), error) from error
        emitter.push(out, times)

    return push
