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
    to send several at once, is a `CheckpointedFunction` too and puts them into operator state; or it defines `flush()`,
    which is called at the end of every epoch, before a checkpoint counts them as done.
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
        self._context, self._uid = context, context.uid
        self._invoke = _invocation(function)
        if not self._has("initialize_state"):
            self._open()

    def initialize_state(self, context: Any) -> None:
        if self._has("initialize_state"):
            self._call(lambda: self._function.initialize_state(context), "in initialize_state()")
            self._open()

    def snapshot_state(self, context: Any) -> None:
        if self._has("snapshot_state"):
            self._call(lambda: self._function.snapshot_state(context), "in snapshot_state()")

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self._notify("notify_checkpoint_complete", checkpoint_id)

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self._notify("notify_checkpoint_aborted", checkpoint_id)

    def write(self, values: Sequence[Any]) -> None:
        invoke = self._invoke
        value = None
        try:
            for value in values:
                invoke(value)
        except Exception as error:
            raise user_error(error, f"on the record {value!r:.500}") from error

    def flush(self) -> None:
        if self._has("flush"):
            self._call(self._function.flush, "in flush()")

    def close(self) -> None:
        if self._has("close"):
            self._call(self._function.close, "in close()")

    def _open(self) -> None:
        if self._has("open"):
            context = FunctionContext(self._context, "sink function")
            self._call(lambda: self._function.open(context), "in open()")

    def _notify(self, method: str, checkpoint: int) -> None:
        if self._has(method):
            self._call(lambda: getattr(self._function, method)(checkpoint), f"in {method}()")

    def _has(self, method: str) -> bool:
        return callable(getattr(self._function, method, None))

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
