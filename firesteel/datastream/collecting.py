"""Reading a running job's results on the driver."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Protocol

from firesteel.common.job_client import JobClient

END = object()
"""Put behind the last result."""


class CollectingClient(Protocol):
    """A job client whose job has a collecting sink."""

    results: queue.SimpleQueue[Any]

    def cancel(self) -> Any: ...

    def get_job_execution_result(self) -> Any: ...


class CloseableIterator(Iterator[Any]):
    """The records of `execute_and_collect`, in order per subtask; close it (or use `with`) to stop the job early."""

    def __init__(self, client: JobClient) -> None:
        self._client: CollectingClient = client  # type: ignore[assignment]
        self._batch: Iterator[Any] = iter(())
        self._done = False

    def __iter__(self) -> CloseableIterator:
        return self

    def __next__(self) -> Any:
        while True:
            for value in self._batch:
                return value
            if self._done:
                raise StopIteration
            try:
                batch = self._client.results.get(timeout=0.2)  # in slices, so that Ctrl-C gets through
            except queue.Empty:
                continue
            except KeyboardInterrupt:
                self.close()
                raise
            if batch is END:
                self._done = True
                self._client.get_job_execution_result().result()  # raises what the job failed with
            else:
                self._batch = iter(batch)

    def close(self) -> None:
        """Cancel the job if it still runs, and wait until it has cleaned up."""
        if not self._done:
            self._done = True
            self._client.cancel().result()

    def __enter__(self) -> CloseableIterator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
