"""The loop of operators that give any number of outputs for an input, to the stream and to side outputs."""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from typing import Any

from firesteel.datastream.output_tag import OutputTag
from firesteel.errors import SideOutputError
from firesteel.graph.plan import PlannedOperator
from firesteel.runtime.callables import resolve_selector
from firesteel.runtime.context import FunctionContext
from firesteel.runtime.copying import own_all
from firesteel.runtime.failures import on_record
from firesteel.runtime.flow import Emitter, Times, Values
from firesteel.runtime.keyed_state import KeyedState


class Output:
    """What one call to a loop gives out."""

    def __init__(self, emitter: Emitter) -> None:
        self._emitter = emitter
        self.values: list[Any] = []
        self.times: list[Any] = []
        self._sides: dict[str, tuple[list[Any], list[Any]]] = {}

    def add(self, results: Any, time: int | None) -> None:
        """Take what a function returned, telling side outputs by their tags."""
        for result in results:
            if type(result) is tuple and len(result) == 2 and type(result[0]) is OutputTag:
                values, times = self._side(result[0])
                values.append(result[1])
                times.append(time)
            else:
                self.values.append(result)
                self.times.append(time)

    def _side(self, tag: OutputTag) -> tuple[list[Any], list[Any]]:
        side = self._sides.get(tag.tag_id)
        if side is None:
            if tag.tag_id not in self._emitter.tags:
                known = ", ".join(map(repr, self._emitter.tags)) or "none"
                raise SideOutputError(
                    f"the side output {tag.tag_id!r} is not read by anyone, so its records would be lost (read are: {known}). "
                    f"Call get_side_output(OutputTag({tag.tag_id!r})) on this operator's stream, or do not emit to it"
                )
            side = self._sides[tag.tag_id] = ([], [])
        return side

    def push(self, timed: bool, split: bool = False) -> None:
        """
        :param split: values were taken without looking for tags. If there are any now, a function has just made its first.
        """
        if split and OutputTag.exist():
            values, times, self.values, self.times = self.values, self.times, [], []
            for value, time in zip(values, times, strict=True):
                self.add((value,), time)
        if self._sides and self._emitter.separate:
            self._separate()
        if self.values:
            self._emitter.push(self.values, self.times if timed else None)
        for tag_id, (values, times) in self._sides.items():
            self._emitter.push_side(tag_id, values, times if timed else None)

    def _separate(self) -> None:
        """One record may have gone to several outputs. Side outputs get the copies, which as a rule have less."""
        tags = list(self._sides)
        for tag_id in tags if self.values else tags[1:]:
            values, times = self._sides[tag_id]
            self._sides[tag_id] = own_all(values), times


class ProcessLoop:
    """Calls `process(value, context)` for every record of one port.

    Streams without timestamps or side outputs take the short loop.
    """

    def __init__(
        self,
        operator: PlannedOperator,
        process: Callable[[Any, Any], Any],
        port: int,
        keyed: KeyedState | None,
        context: FunctionContext,
        emitter: Emitter,
    ) -> None:
        self.operator, self.context, self.emitter = operator, context, emitter
        self._process = process = emitter.noting(process)
        self._short = _short_loop(operator, process, port, keyed, context, emitter)
        self._keyed = keyed or _Unkeyed()
        self._selector = _nothing if keyed is None else resolve_selector(operator.key_selector(port))

    def push(self, values: Values, times: Times) -> None:
        if times is None and not OutputTag.exist():
            self._short(values)
            return
        keyed, selector, process, context = self._keyed, self._selector, self._process, self.context
        out = Output(self.emitter)
        tags = OutputTag.exist()
        append, append_time = out.values.append, out.times.append
        value = None
        try:
            for value, time in zip(values, repeat(None) if times is None else times, strict=False):
                context.time = time
                keyed.key = selector(value)
                results = process(value, context)
                if results is None:
                    continue
                if tags:
                    out.add(results, time)
                else:
                    for result in results:
                        append(result)
                        append_time(time)
        except Exception as error:
            raise on_record(self.operator, value, error) from error
        finally:
            context.time = None
        out.push(timed=times is not None, split=not tags)


class _Unkeyed:
    key = None


def _push(values: list[Any], emitter: Emitter) -> None:
    if OutputTag.exist():  # the function has just made its first one
        out = Output(emitter)
        out.add(values, None)
        out.push(timed=False)
    elif values:
        emitter.push(values, None)


def _nothing(value: Any) -> None:
    return None


def _short_loop(
    operator: PlannedOperator,
    process: Callable[[Any, Any], Any],
    port: int,
    keyed: KeyedState | None,
    context: FunctionContext,
    emitter: Emitter,
) -> Callable[[Values], None]:
    def unkeyed_loop(values: Values) -> None:
        out: list[Any] = []
        extend = out.extend
        value = None
        try:
            for value in values:
                results = process(value, context)
                if results is not None:
                    extend(results)
        except Exception as error:
            raise on_record(operator, value, error) from error
        _push(out, emitter)

    if keyed is None:
        return unkeyed_loop
    selector = resolve_selector(operator.key_selector(port))

    def keyed_loop(values: Values) -> None:
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
        _push(out, emitter)

    return keyed_loop
