"""What takes longer than a request: it is asked for, gets a number, and is asked about by that number."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from firesteel.common.completable_future import CompletableFuture
from firesteel.errors import FiresteelError
from firesteel.rest.messages import Answer, Document, Request, RequestError

_MOST = 100
_POLL_S = 0.05


@dataclass
class _Operation:
    future: CompletableFuture[Any]
    read: bool = False  # somebody has been told how it ended


class Operations:
    """Those of one job, the oldest forgotten when there are too many. Any thread may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._operations: dict[str, _Operation] = {}

    def start(self, request: Request, begin: Callable[[], CompletableFuture[Any]]) -> Answer:
        """Begin it, unless the request repeats one that has begun, which it says by its own `triggerId`."""
        trigger = request.text("triggerId") or uuid.uuid4().hex
        with self._lock:
            if trigger not in self._operations:
                self._operations[trigger] = _Operation(begin())
                while len(self._operations) > _MOST:
                    del self._operations[next(iter(self._operations))]
        return Answer({"request-id": trigger}, HTTPStatus.ACCEPTED)

    def status(self, trigger: str, result: Callable[[Any], Document]) -> Answer:
        """
        :param result: what there is to say about a result.
        :raises RequestError: nobody has asked for it.
        """
        with self._lock:
            operation = self._operations.get(trigger)
            if operation is None:
                raise RequestError(HTTPStatus.NOT_FOUND, f"Operation {trigger} not found")
            if not operation.future.done():
                return Answer({"status": {"id": "IN_PROGRESS"}})
            operation.read = True
        failure = operation.future.exception()
        outcome = result(operation.future.result()) if failure is None else {"failure-cause": _cause(failure)}
        return Answer({"status": {"id": "COMPLETED"}, "operation": outcome})

    def await_reading(self, timeout_s: float) -> None:
        """Wait until somebody was told how each of them ended, but no longer than that."""
        deadline = time.monotonic() + timeout_s
        while self.unread() and time.monotonic() < deadline:
            time.sleep(_POLL_S)

    def unread(self) -> bool:
        with self._lock:
            return any(not operation.read for operation in self._operations.values())


def _cause(failure: BaseException) -> Document:
    kind = type(failure)
    text = str(failure) if isinstance(failure, FiresteelError) else f"{kind.__name__}: {failure}"
    return {"class": f"{kind.__module__}.{kind.__qualname__}", "stack-trace": text, "serialized-throwable": None}
