"""A sink made of a function that is called with every record."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Sequence
from typing import Any

from firesteel.connectors.base import Sink, SinkWriter, WriterContext
from firesteel.connectors.user_code import FunctionContext, user_error
from firesteel.errors import GraphError

_NO_WATERMARK = -(2**63)


class SinkFunctionSink(Sink):
    """Calls a `SinkFunction` or a plain function of one argument with every record, in the slot.

    At least once: after a failure, records since the last checkpoint come again. A function that keeps records back,
    to send several at once, defines `flush()`: it is called at the end of every epoch, before a checkpoint counts them
    as done.
    """

    def __init__(self, function: Any) -> None:
        if not callable(getattr(function, "invoke", None)) and not callable(function):
            raise GraphError(f"add_sink() takes a SinkFunction or a function of one record, not {function!r:.200}")
        self.function = function

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return FunctionWriter(self.function, context)


class FunctionWriter(SinkWriter):
    def __init__(self, function: Any, context: WriterContext) -> None:
        self._function = function
        self._uid = context.uid
        self._invoke = _invocation(function)
        if callable(getattr(function, "open", None)):
            self._call(lambda: function.open(FunctionContext(context, "sink function")), "in open()")

    def write(self, values: Sequence[Any]) -> None:
        invoke = self._invoke
        value = None
        try:
            for value in values:
                invoke(value)
        except Exception as error:
            raise user_error(error, f"on the record {value!r:.500}") from error

    def flush(self) -> None:
        if callable(getattr(self._function, "flush", None)):
            self._call(self._function.flush, "in flush()")

    def close(self) -> None:
        if callable(getattr(self._function, "close", None)):
            self._call(self._function.close, "in close()")

    def _call(self, hook: Callable[[], None], where: str) -> None:
        try:
            hook()
        except Exception as error:
            raise user_error(error, f"{where} of sink {self._uid!r}") from error


class SinkContext:
    """The context of `invoke`. A sink is given records without their timestamps."""

    def current_processing_time(self) -> int:
        return time.time_ns() // 1_000_000

    def current_watermark(self) -> int:
        return _NO_WATERMARK

    def timestamp(self) -> int | None:
        return None


def _invocation(function: Any) -> Callable[[Any], Any]:
    """Java's sink functions have `invoke(value, context)`; the context may be left out, as in older ones."""
    invoke = getattr(function, "invoke", None)
    if invoke is None:
        return function  # type: ignore[no-any-return]
    try:
        inspect.signature(invoke).bind(None, None)
    except TypeError:
        return invoke  # type: ignore[no-any-return]
    except ValueError:
        pass  # something built in that does not tell its signature
    context = SinkContext()
    return lambda value: invoke(value, context)
