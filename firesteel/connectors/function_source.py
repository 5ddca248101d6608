"""A source made of a function that pushes records."""

from __future__ import annotations

import copy
import inspect
import threading
from typing import Any

from firesteel.connectors.base import EnumeratorContext
from firesteel.connectors.driver_source import DriverSource, Pusher, PushQueue, Stamped
from firesteel.connectors.user_code import FunctionContext
from firesteel.errors import GraphError


class CallableSource(DriverSource):
    """Runs a `SourceFunction`, or a function that returns an iterable (such as a generator), on the driver.

    The function never leaves the driver's process, so it may hold connections. It ends when it returns, and starts
    from its beginning after a failure: each start of the job runs a shallow copy of a SourceFunction.
    """

    def __init__(self, function: Any) -> None:
        if not callable(getattr(function, "run", None)) and not callable(function):
            raise GraphError(
                f"add_source() takes a SourceFunction or a function that yields records, not {function!r:.200}"
            )
        if callable(getattr(function, "snapshot_state", None)):
            raise GraphError(
                f"add_source() cannot take a CheckpointedFunction such as {function!r:.200}: a function that pushes records is "
                f"no part of checkpoints. Derive from Source, whose positions are, and use from_source()"
            )
        self.function = function

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "function": None}  # slots only unpack records

    def create_pusher(self, context: EnumeratorContext) -> Pusher:
        if callable(getattr(self.function, "run", None)):
            return FunctionPusher(copy.copy(self.function), context)
        return IterablePusher(self.function)


class FunctionPusher(Pusher):
    """Runs a SourceFunction: open, run, close."""

    def __init__(self, function: Any, context: EnumeratorContext) -> None:
        self._function = function
        self._context = context

    def run(self, queue: PushQueue) -> None:
        function = self._function
        if callable(getattr(function, "open", None)):
            function.open(FunctionContext(self._context, "source function"))
        try:
            function.run(SourceContext(queue))
        finally:
            if callable(getattr(function, "close", None)):
                function.close()

    def cancel(self) -> None:
        if callable(getattr(self._function, "cancel", None)):
            self._function.cancel()


class IterablePusher(Pusher):
    """Goes through what a function returns. One that is waiting for its next record is only left at that one."""

    def __init__(self, function: Any) -> None:
        self._function = function

    def run(self, queue: PushQueue) -> None:
        values = self._function()
        try:
            for value in values:
                queue.put(value)
        finally:
            if inspect.isgenerator(values):
                values.close()

    def cancel(self) -> None:
        """The closed queue ends it."""


class SourceContext:
    """What a SourceFunction's `run` is given."""

    def __init__(self, queue: PushQueue) -> None:
        self._queue = queue
        self.collect = queue.put
        self._lock = threading.RLock()

    def collect_with_timestamp(self, element: Any, timestamp: int) -> None:
        """Give out a record with a timestamp of its own."""
        self._queue.put(Stamped(element, timestamp))

    def emit_watermark(self, mark: Any) -> None:
        raise GraphError(
            "a source function emits no watermarks here: give the stream a WatermarkStrategy instead "
            "(assign_timestamps_and_watermarks)"
        )

    def mark_as_temporarily_idle(self) -> None:
        """Watermarks are not held back by a source that has none."""

    def get_checkpoint_lock(self) -> Any:
        """For programs that take it: there is nothing to lock out."""
        return self._lock

    def close(self) -> None:
        """Nothing to release."""
