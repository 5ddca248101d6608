"""Operators compiled into closures over lists of records: built once for a slot, called once for a batch.

Calls inside a level pass lists along, so what an operator costs per record is the user's function and one loop turn.
A failing record is found again without bookkeeping on the way: by the loop variable, or by how much an iterator has left.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import compress
from typing import Any

from firesteel.datastream.functions import (
    FilterFunction,
    FlatMapFunction,
    KeySelector,
    MapFunction,
    ReduceFunction,
)
from firesteel.errors import FiresteelError
from firesteel.graph import nodes
from firesteel.graph.plan import PlannedOperator
from firesteel.runtime.context import KeyedProcessContext, ProcessContext
from firesteel.runtime.failures import on_record
from firesteel.runtime.keyed_state import KeyedState

Push = Callable[[list[Any]], None]
Call = Callable[[Any], Any]


def compile_operator(operator: PlannedOperator, keyed: KeyedState | None, emit: Push) -> Push:
    """The closure that takes an operator's input and pushes its output to `emit`. Sources and sinks are not here."""
    kind = operator.operator
    if isinstance(kind, nodes.Process):
        process = kind.function.process_element
        if keyed is None:
            return _process(operator, process, ProcessContext(), emit)
        return _keyed_process(operator, process, keyed, emit)
    if isinstance(kind, nodes.Reduce):
        assert keyed is not None
        return _reduce(operator, _method(kind.function, ReduceFunction, "reduce"), keyed, emit)
    if isinstance(kind, nodes.Map):
        call = _method(kind.function, MapFunction, "map")
        if keyed is None:
            return _map(operator, call, emit)
        return _keyed_process(operator, lambda value, _: (call(value),), keyed, emit)
    if isinstance(kind, nodes.Filter):
        call = _method(kind.function, FilterFunction, "filter")
        if keyed is None:
            return _filter(operator, call, emit)
        return _keyed_process(operator, lambda value, _: (value,) if call(value) else None, keyed, emit)
    if isinstance(kind, nodes.FlatMap):
        call = _method(kind.function, FlatMapFunction, "flat_map")
        if keyed is None:
            return _flat_map(operator, call, emit)
        return _keyed_process(operator, lambda value, _: call(value), keyed, emit)
    raise FiresteelError(f"{operator} is a {operator.kind}, which this version cannot run")


def resolve_selector(selector: Any) -> Call:
    """A key selector as a plain callable."""
    call: Call = _method(selector, KeySelector, "get_key")
    return call


def _method(function: Any, kind: type, name: str) -> Any:
    return getattr(function, name) if isinstance(function, kind) else function


def _map(operator: PlannedOperator, call: Call, emit: Push) -> Push:
    def run(values: list[Any]) -> None:
        rest = iter(values)
        try:
            out = list(map(call, rest))
        except Exception as error:
            raise on_record(operator, _failed(values, rest), error) from error
        emit(out)

    return run


def _filter(operator: PlannedOperator, call: Call, emit: Push) -> Push:
    def run(values: list[Any]) -> None:
        rest = iter(values)
        try:
            out = list(compress(values, map(call, rest)))
        except Exception as error:
            raise on_record(operator, _failed(values, rest), error) from error
        if out:
            emit(out)

    return run


def _flat_map(operator: PlannedOperator, call: Call, emit: Push) -> Push:
    def run(values: list[Any]) -> None:
        out: list[Any] = []
        extend = out.extend
        value = None
        try:
            for value in values:
                results = call(value)
                if results is not None:
                    extend(results)
        except Exception as error:
            raise on_record(operator, value, error) from error
        if out:
            emit(out)

    return run


def _process(operator: PlannedOperator, process: Callable[[Any, Any], Any], context: Any, emit: Push) -> Push:
    return _flat_map(operator, lambda value: process(value, context), emit)


def _keyed_process(
    operator: PlannedOperator, process: Callable[[Any, Any], Any], keyed: KeyedState, emit: Push
) -> Push:
    selector = resolve_selector(operator.key_selector)
    context = KeyedProcessContext(keyed)

    def run(values: list[Any]) -> None:
        out: list[Any] = []
        extend = out.extend
        value = None
        try:
            for value in values:
                keyed.key = selector(value)
                results = process(value, context)
                if results is not None:
                    extend(results)
        except Exception as error:
            raise on_record(operator, value, error) from error
        if out:
            emit(out)

    return run


def _reduce(operator: PlannedOperator, reduce: Callable[[Any, Any], Any], keyed: KeyedState, emit: Push) -> Push:
    selector = resolve_selector(operator.key_selector)
    reduced, update, _ = keyed.store.table("_reduced", "value").bind(keyed)

    def run(values: list[Any]) -> None:
        out: list[Any] = []
        append = out.append
        value = None
        try:
            for value in values:
                keyed.key = selector(value)
                before = reduced()
                result = value if before is None else reduce(before, value)
                update(result)
                append(result)
        except Exception as error:
            raise on_record(operator, value, error) from error
        emit(out)

    return run


def _failed(values: list[Any], rest: Any) -> Any:
    """The record an iterator over `values` gave out last."""
    return values[len(values) - rest.__length_hint__() - 1]
