"""What has happened to a job: its states, its failures and its last checkpoints. For people to look at; nothing depends on it.

The coordinator's threads write it, and whoever is asked about the job reads it, from any thread.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from firesteel.common.job_status import JobStatus
from firesteel.coordinator.completed import Completed
from firesteel.coordinator.importing import IMPORTED_FROM, WAS_SAVEPOINT
from firesteel.coordinator.metadata import CheckpointMetadata

IN_PROGRESS, COMPLETED, FAILED = "IN_PROGRESS", "COMPLETED", "FAILED"
_CHECKPOINTS = 100
_FAILURES = 32

Clock = Callable[[], int]


def _now_ms() -> int:
    return int(time.time() * 1000)


@dataclass(frozen=True)
class FailureRecord:
    """Why a job went back to its last checkpoint, or ended."""

    time_ms: int
    name: str
    text: str


@dataclass(frozen=True)
class CheckpointRecord:
    """One checkpoint, as far as it has got."""

    checkpoint: int
    triggered_ms: int
    slots: int
    status: str = IN_PROGRESS
    ended_ms: int | None = None
    written: int = 0  # bytes that no earlier checkpoint has
    size: int = 0
    path: str | None = None
    why: str | None = None  # it failed
    final: bool = False
    savepoint: bool = False

    @property
    def duration_ms(self) -> int | None:
        return None if self.ended_ms is None else max(0, self.ended_ms - self.triggered_ms)


@dataclass(frozen=True)
class RestoreRecord:
    """The checkpoint that the running incarnation started from."""

    checkpoint: int
    time_ms: int
    path: str  # of the one that it was copied from, if it was
    savepoint: bool


class CheckpointHistory:
    """The last checkpoints, and how many of all there were."""

    def __init__(self, clock: Clock = _now_ms) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._records: deque[CheckpointRecord] = deque(maxlen=_CHECKPOINTS)
        self._files: set[str] = set()
        self._restored: RestoreRecord | None = None
        self._savepoint: CheckpointRecord | None = None
        self._counts = {COMPLETED: 0, FAILED: 0}
        self._restores = 0

    # ---- what the coordinator tells

    def begun(self, checkpoint: int, slots: int, *, final: bool) -> None:
        with self._lock:
            self._records.append(CheckpointRecord(checkpoint, self._clock(), slots, final=final))

    def completed(self, found: Completed) -> None:
        metadata = found.metadata
        sizes = {handle["file"]: handle["size"] for chain in metadata.state for handle in chain}
        with self._lock:
            written = sum(size for file, size in sizes.items() if file not in self._files)
            self._files = set(sizes)
            self._end(metadata.checkpoint, status=COMPLETED, written=written, size=metadata.size(), path=found.path)

    def dropped(self, checkpoint: int, why: str) -> None:
        with self._lock:
            self._end(checkpoint, status=FAILED, why=why)

    def savepoint(self, metadata: CheckpointMetadata, path: str, took_s: float) -> None:
        """A savepoint of a checkpoint is there."""
        now, size, slots = self._clock(), metadata.size(), len(metadata.state)
        self._savepoint = CheckpointRecord(
            metadata.checkpoint, now - int(took_s * 1000), slots, COMPLETED, now, size, size, path, savepoint=True
        )

    def rolled_back(self) -> None:
        """Whatever is not complete never will be."""
        with self._lock:
            for record in [one for one in self._records if one.status == IN_PROGRESS]:
                self._end(record.checkpoint, status=FAILED, why="the job rolled back or ended")

    def restored(self, start: Completed) -> None:
        with self._lock:
            self._restores += 1
            self._files = start.metadata.files()
            origin = start.metadata.statistics
            self._restored = RestoreRecord(
                start.metadata.checkpoint,
                self._clock(),
                origin.get(IMPORTED_FROM, start.path),
                origin.get(WAS_SAVEPOINT, False),
            )

    def _end(self, checkpoint: int, status: str, **changes: object) -> None:
        for index, record in enumerate(self._records):
            if record.checkpoint == checkpoint and record.status == IN_PROGRESS:
                self._counts[status] += 1
                ended = replace(record, status=status, ended_ms=self._clock(), **changes)  # type: ignore[arg-type]
                self._records[index] = ended

    # ---- what others read

    def records(self) -> list[CheckpointRecord]:
        """The last ones, oldest first."""
        with self._lock:
            return list(self._records)

    def latest(self, status: str) -> CheckpointRecord | None:
        return next((one for one in reversed(self.records()) if one.status == status), None)

    @property
    def last_savepoint(self) -> CheckpointRecord | None:
        return self._savepoint

    @property
    def last_restore(self) -> RestoreRecord | None:
        return self._restored

    def counts(self) -> dict[str, int]:
        """In all, by Flink's names."""
        with self._lock:
            running = sum(one.status == IN_PROGRESS for one in self._records)
            done, failed = self._counts[COMPLETED], self._counts[FAILED]
            return {
                "restored": self._restores,
                "total": done + failed + running,
                "in_progress": running,
                "completed": done,
                "failed": failed,
            }


class JobHistory:
    """A job's life so far."""

    def __init__(self, clock: Clock = _now_ms) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self.checkpoints = CheckpointHistory(clock)
        self.status = JobStatus.CREATED
        self.started_ms = clock()
        self.since: dict[JobStatus, int] = {JobStatus.CREATED: self.started_ms}  # when it last came into each state
        self._failures: deque[FailureRecord] = deque(maxlen=_FAILURES)
        self.failed = 0  # times
        self.on_status: Callable[[JobStatus], None] = lambda status: None  # it is told after every change

    def enter(self, status: JobStatus) -> None:
        """The end is the end, and a job that is being cancelled does nothing else any more."""
        with self._lock:
            ending = self.status is JobStatus.CANCELLING and not status.is_terminal_state()
            if ending or self.status.is_terminal_state():
                return
            self.status = status
            self.since = {**self.since, status: self._clock()}
            self.on_status(status)

    def failure(self, failure: BaseException) -> None:
        kind = type(failure)
        self.failed += 1
        self._failures.append(FailureRecord(self._clock(), f"{kind.__module__}.{kind.__qualname__}", str(failure)))

    @property
    def failures(self) -> Sequence[FailureRecord]:
        """The last ones, oldest first."""
        return list(self._failures)

    @property
    def ended_ms(self) -> int | None:
        return self.since[self.status] if self.status.is_terminal_state() else None
