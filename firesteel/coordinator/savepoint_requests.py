"""Savepoints that were asked for: by any thread, at any time, and answered when they are there."""

from __future__ import annotations

import enum
import threading

from firesteel.common.completable_future import CompletableFuture
from firesteel.common.storage import Storage, open_storage, reason
from firesteel.errors import ConfigurationError, FiresteelError, SavepointError


class Ending(enum.Enum):
    """What becomes of the job when its savepoint is there."""

    NONE = enum.auto()  # it goes on
    SUSPEND = enum.auto()  # it is finished, and can be gone on with as if nothing had happened
    DRAIN = enum.auto()  # the same, but its input counts as ended, so that timers and windows fire before
    CANCEL = enum.auto()  # it is cancelled


class SavepointRequest:
    """One savepoint that somebody waits for."""

    def __init__(self, job_name: str, target: Storage, ending: Ending) -> None:
        self.target, self.ending = target, ending
        self.answer: CompletableFuture[str] = CompletableFuture()
        self._job_name = job_name

    def fail(self, why: str, cause: BaseException | None = None) -> None:
        """The first reason counts."""
        failure = SavepointError(f"no savepoint of job '{self._job_name}' was taken in {self.target}: {why}")
        failure.__cause__ = cause
        self.answer.set_exception(failure)

    def succeeded(self) -> bool:
        return self.answer.done() and self.answer.exception() is None


class SavepointRequests:
    """Those of one job. They outlive a restart while they wait; what a restart interrupts has failed.

    :param default: the directory for those that are given none.
    :param job_storage: the job's own, which may be deleted with its checkpoints.
    """

    def __init__(self, job_name: str, default: str | None, job_storage: Storage) -> None:
        self._job_name, self._default, self._job_storage = job_name, default, job_storage
        self._lock = threading.Lock()
        self._waiting: list[SavepointRequest] = []
        self._taken: list[SavepointRequest] = []
        self._unready: list[SavepointRequest] = []  # whose target is being looked at
        self._closed: str | None = None  # why there can be no more

    # ---- by any thread

    def ask(self, directory: str | None, ending: Ending = Ending.NONE) -> CompletableFuture[str]:
        """The savepoint's path, or a SavepointError or ConfigurationError."""
        target = directory or self._default
        try:
            request = SavepointRequest(self._job_name, self._target(target), ending)
        except FiresteelError as error:
            failed: CompletableFuture[str] = CompletableFuture()
            failed.set_exception(error)
            return failed
        with self._lock:
            if self._closed is not None:
                request.fail(self._closed)
                return request.answer
            self._unready.append(request)
        threading.Thread(target=self._try_out, args=(request,), name="savepoint-target", daemon=True).start()
        return request.answer

    def _target(self, directory: str | None) -> Storage:
        if directory is None:
            raise ConfigurationError(
                "nobody said where the savepoint is to be. Name a directory, or set execution.checkpointing.savepoint-dir "
                "(once state.savepoints.dir), or env.set_default_savepoint_directory(...)"
            )
        storage = open_storage(directory)
        if storage.within(self._job_storage):
            raise ConfigurationError(
                f"savepoints cannot be in {storage}: it is in the job's own directory {self._job_storage}, which may be "
                f"deleted with the job's checkpoints. Name another directory"
            )
        return storage

    def _try_out(self, request: SavepointRequest) -> None:
        """What is wrong with the target should be heard before anything happens to the job."""
        try:
            request.target.check_writable()
        except OSError as error:
            request.fail(f"the directory cannot be made or written to: {reason(error)}", error)
        with self._lock:
            self._unready.remove(request)
            if not request.answer.done():
                self._waiting.append(request)

    # ---- by the coordinator's thread

    def waiting(self) -> bool:
        """Whether there is one that does not end the job."""
        return any(each.ending is Ending.NONE for each in list(self._waiting))

    def take_ending(self) -> SavepointRequest | None:
        """The first one that is to end the job, if there is one. One that drains it waits for those that do not: they are not
        to be made of what it drained."""
        with self._lock:
            found = next((each for each in self._waiting if each.ending is not Ending.NONE), None)
            if found is not None and found.ending is Ending.DRAIN and self.waiting():
                return None
            if found is not None:
                self._waiting.remove(found)
                self._taken.append(found)
            return found

    def take(self, *, last: bool = False) -> list[SavepointRequest]:
        """All that the next barrier serves.

        :param last: it is at the end of the input, so that those are served too that would end the job.
        """
        with self._lock:
            found = [each for each in self._waiting if last or each.ending is Ending.NONE]
            self._waiting = [each for each in self._waiting if each not in found]
            self._taken += found
            return found

    def interrupted(self, failure: BaseException) -> None:
        """The incarnation that took them has ended."""
        with self._lock:
            taken, self._taken = self._taken, []
        for request in taken:
            request.fail(f"the job was interrupted before it was complete: {failure}", failure)

    def close(self, why: str) -> None:
        """The job has ended, so there will be no more."""
        with self._lock:
            self._closed = why
            left = [*self._waiting, *self._taken, *self._unready]
            self._waiting, self._taken = [], []
        for request in left:
            request.fail(why)
