"""The handle on a running job."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from firesteel.common.completable_future import CompletableFuture
from firesteel.common.job_execution_result import JobExecutionResult
from firesteel.common.job_id import JobID
from firesteel.common.job_status import JobStatus

__all__ = ["JobClient"]


class JobClient(ABC):
    """Watches and controls one job. Methods return at once; their futures complete when the job answers."""

    @abstractmethod
    def get_job_id(self) -> JobID: ...

    @abstractmethod
    def get_job_status(self) -> CompletableFuture[JobStatus]: ...

    @abstractmethod
    def cancel(self) -> CompletableFuture[None]:
        """Stop the job without a savepoint. Completes when it has stopped."""

    @abstractmethod
    def stop_with_savepoint(
        self, advance_to_end_of_event_time: bool, savepoint_directory: str | None = None
    ) -> CompletableFuture[str]:
        """Stop the job at a savepoint and commit its output up to there. Completes with the savepoint's path.

        With `advance_to_end_of_event_time` every pending event timer and window fires first. Do that to end a
        job for good, not to continue it later: the windows would have fired too early.
        """

    @abstractmethod
    def trigger_savepoint(self, savepoint_directory: str | None = None) -> CompletableFuture[str]:
        """Write a savepoint and let the job run on. Completes with the savepoint's path."""

    @abstractmethod
    def cancel_with_savepoint(self, savepoint_directory: str | None = None) -> CompletableFuture[str]:
        """Cancel the job at a savepoint. Completes with the savepoint's path when the job has ended. Nothing is processed
        after the savepoint; if it cannot be written, the job goes on. Flink 1.x's name: `stop_with_savepoint` is the newer
        way."""

    @abstractmethod
    def get_accumulators(self) -> CompletableFuture[dict[str, Any]]: ...

    @abstractmethod
    def get_job_execution_result(self) -> CompletableFuture[JobExecutionResult]:
        """Completes when the job does: with its result if it finished, with the reason if it failed."""
