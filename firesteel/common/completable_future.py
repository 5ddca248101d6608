"""The future result of something a job was asked to do."""

from __future__ import annotations

import threading
import time
from concurrent.futures import CancelledError
from typing import Generic, TypeVar

__all__ = ["CompletableFuture"]

T = TypeVar("T")

_SLICE_SECONDS = 0.2
"""Not every platform lets Ctrl-C end an unlimited wait, so the wait is never unlimited."""


class CompletableFuture(Generic[T]):
    """A result that some thread will set. The first to set a result, set an exception or cancel wins."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._completed = threading.Event()
        self._result: T | None = None
        self._exception: BaseException | None = None

    @staticmethod
    def completed(value: T) -> CompletableFuture[T]:
        """A future that already has its result."""
        future: CompletableFuture[T] = CompletableFuture()
        future.set_result(value)
        return future

    def set_result(self, value: T) -> bool:
        """Whether this completed the future; False if it was complete before."""
        return self._complete(value, None)

    def set_exception(self, exception: BaseException) -> bool:
        """Whether this completed the future; False if it was complete before."""
        return self._complete(None, exception)

    def cancel(self) -> bool:
        """Give up on the result; the work itself goes on. Whether the future is now cancelled."""
        self._complete(None, CancelledError())
        return self.cancelled()

    def cancelled(self) -> bool:
        return isinstance(self._exception, CancelledError)

    def done(self) -> bool:
        """Whether there is a result, an exception or a cancellation."""
        return self._completed.is_set()

    def result(self, timeout: float | None = None) -> T:
        """Wait for the result, at most `timeout` seconds, and return it, or raise the exception that was set.

        Raises TimeoutError when none comes in time, `concurrent.futures.CancelledError` when cancelled.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self._completed.is_set():
            left = _SLICE_SECONDS if deadline is None else min(_SLICE_SECONDS, deadline - time.monotonic())
            if left <= 0:
                raise TimeoutError(f"No result within {timeout} seconds")
            self._completed.wait(left)
        if self._exception is not None:
            raise self._exception
        return self._result  # type: ignore[return-value]  # None only if T allows None

    def exception(self) -> BaseException | None:
        """The exception that was set, None if there is none (yet). Does not wait."""
        return self._exception

    def _complete(self, value: T | None, exception: BaseException | None) -> bool:
        with self._lock:
            if self._completed.is_set():
                return False
            self._result = value
            self._exception = exception
            self._completed.set()
            return True

    def __str__(self) -> str:
        if not self.done():
            return "CompletableFuture[Not completed]"
        return f"CompletableFuture[Completed {'normally' if self._exception is None else 'exceptionally'}]"
