"""Sources whose input only the driver can read: pushed by a function, or by a connection there is only one of.

The function runs in a thread of the driver and fills a bounded queue; each epoch takes what is there and sends it to the
slots inside the planned ranges. Nothing is kept, so what an epoch lost cannot be read again: at most once.
"""

from __future__ import annotations

import base64
import logging
import pickle
import threading
from abc import abstractmethod
from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

from firesteel.connectors.base import (
    CHUNK,
    Assignment,
    EnumeratorContext,
    Json,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
    Timestamped,
)
from firesteel.connectors.splits import first_only
from firesteel.connectors.user_code import user_error
from firesteel.errors import SerializationError

log = logging.getLogger("firesteel")

QUEUE_SIZE = 50_000
"""How many records may wait for an epoch before the function has to wait for the job."""

_CLOSE_TIMEOUT_S = 5.0


class PushCancelledError(BaseException):
    """Ends a pushing function whose job has ended. Not an Exception: functions should not catch it by accident."""


class Stamped(NamedTuple):
    """A record that was pushed with a timestamp."""

    value: Any
    time: int | None


class PushQueue:
    """Between the pushing thread and the driver's."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._values: deque[Any] = deque()
        self._changed = threading.Condition()
        self._ended = False
        self.failure: BaseException | None = None

    def put(self, value: Any) -> None:
        """Waits while the queue is full.

        :raises PushCancelledError: nobody will take it any more.
        """
        with self._changed:
            while len(self._values) >= self._size and not self._ended:
                self._changed.wait()
            if self._ended:
                raise PushCancelledError
            self._values.append(value)
            self._changed.notify_all()

    def take(self, most: int) -> list[Any]:
        with self._changed:
            taken = [self._values.popleft() for _ in range(min(most, len(self._values)))]
            self._changed.notify_all()
            return taken

    def end(self, failure: BaseException | None = None) -> None:
        with self._changed:
            self._ended = True
            self.failure = self.failure or failure
            self._changed.notify_all()

    @property
    def ended(self) -> bool:
        return self._ended

    @property
    def drained(self) -> bool:
        with self._changed:
            return self._ended and not self._values

    def wait_until_some(self, timeout: float | None = None) -> bool:
        """Until there is something to take or there never will be."""
        with self._changed:
            return self._changed.wait_for(lambda: bool(self._values) or self._ended, timeout)


class Pusher:
    """What runs in the driver's thread. One is made for every start of the job."""

    @abstractmethod
    def run(self, queue: PushQueue) -> None:
        """Put records until there are no more. Returning is the end of the input; raising fails the job."""

    @abstractmethod
    def cancel(self) -> None:
        """Make `run` return soon. Called by another thread."""


class DriverSource(Source):
    """Base of sources that are read on the driver. All records go to subtask 0, in order."""

    replayable = False
    queue_size = QUEUE_SIZE

    @abstractmethod
    def create_pusher(self, context: EnumeratorContext) -> Pusher: ...

    def create_enumerator(self, context: EnumeratorContext) -> SplitEnumerator:
        return DriverEnumerator(self.create_pusher(context), context, self.queue_size)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return ShippedReader()


class DriverEnumerator(SplitEnumerator):
    """Starts the thread at the first plan, and plans what has arrived. A unit is a record."""

    def __init__(self, pusher: Pusher, context: EnumeratorContext, queue_size: int) -> None:
        self._pusher = pusher
        self._context = context
        self.queue = PushQueue(queue_size)
        self._thread: threading.Thread | None = None
        self._planned = 0

    def plan(self, budget: int) -> Assignment:
        if self._thread is None:
            self._thread = threading.Thread(target=self._push, name=f"source {self._context.uid}", daemon=True)
            self._thread.start()
        values = self.queue.take(budget)
        if not values and self.queue.failure is not None:  # what came before the failure has been given out
            raise user_error(self.queue.failure, f"in the thread of source {self._context.uid!r} on the driver")
        self._planned += len(values)
        ranges: list[list[Json]] = [[] for _ in range(self._context.parallelism)]
        ranges[0] = [self._shipped(values[at : at + CHUNK]) for at in range(0, len(values), CHUNK)]
        return Assignment(ranges, len(values), splits=first_only(self._context.parallelism))

    def _push(self) -> None:
        try:
            self._pusher.run(self.queue)
        except PushCancelledError:
            self.queue.end()
        except BaseException as error:  # noqa: BLE001  it reaches the job with the next plan
            self.queue.end(error)
        else:
            self.queue.end()

    def _shipped(self, values: list[Any]) -> Json:
        chunk: list[Any] | Timestamped = values
        if any(type(value) is Stamped for value in values):
            stamped = [value if type(value) is Stamped else Stamped(value, None) for value in values]
            chunk = Timestamped([value for value, _ in stamped], [time for _, time in stamped])
        try:
            return {"values": base64.b64encode(pickle.dumps(chunk, pickle.HIGHEST_PROTOCOL)).decode("ascii")}
        except Exception as error:
            raise SerializationError(
                f"source {self._context.uid!r} gave records that cannot be pickled to the slots: {error}"
            ) from error

    def finished(self) -> bool:
        return self.queue.drained and self.queue.failure is None

    def snapshot(self) -> Json:
        return {"read": self._planned}

    def restore(self, state: Json) -> None:
        log.warning(
            "source %r starts anew: it cannot read again what it had given out after the last checkpoint",
            self._context.uid,
        )

    def close(self) -> None:
        self.queue.end()
        if self._thread is None:
            return
        try:
            self._pusher.cancel()
        except Exception:  # the job is over or restarts: neither should fail because of this
            log.warning("cancel() of source %r failed", self._context.uid, exc_info=True)
        self._thread.join(_CLOSE_TIMEOUT_S)
        if self._thread.is_alive():
            log.warning("source %r goes on in its thread although it was cancelled", self._context.uid)


class ShippedReader(SourceReader):
    """Unpacks what came with the range: bytes that this job's own driver packed."""

    def read(self, planned: Json) -> Iterator[list[Any] | Timestamped]:
        yield pickle.loads(base64.b64decode(planned["values"]))
