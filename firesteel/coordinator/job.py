"""A job on the driver: incarnation after incarnation, epoch after epoch, until the input ends."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from typing import Any

from firesteel.common.crashpoints import crash_point
from firesteel.common.job_status import JobStatus
from firesteel.coordinator.carrying import carrying, carrying_origin, keep, limit_of
from firesteel.coordinator.checkpointing import Checkpointer, restore_point
from firesteel.coordinator.claiming import claim
from firesteel.coordinator.collecting import CollectedResults
from firesteel.coordinator.committing import Committers
from firesteel.coordinator.completed import locate
from firesteel.coordinator.engine import Deployment, Engine, EpochOrder, SlotMessage
from firesteel.coordinator.history import JobHistory
from firesteel.coordinator.lineage import Incarnation, JobDirectory, confirm
from firesteel.coordinator.metadata import CheckpointMetadata
from firesteel.coordinator.origin import origin_of
from firesteel.coordinator.progress import Progress
from firesteel.coordinator.reading import SourceReading
from firesteel.coordinator.restarts import Restarts
from firesteel.coordinator.retention import discard, drop_abandoned
from firesteel.coordinator.savepoint_requests import Ending, SavepointRequest, SavepointRequests
from firesteel.coordinator.savepoint_writing import SavepointWriting
from firesteel.coordinator.starting import check_output
from firesteel.errors import FiresteelError, JobCancelledError, SlotLostError
from firesteel.graph.guarantee import Level, end_to_end
from firesteel.graph.plan import JobPlan
from firesteel.graph.settings import JobSettings
from firesteel.metrics import merge

log = logging.getLogger("firesteel")

_IDLE_S = 0.05


class Job:
    """Runs one program to its end. `run` belongs to one thread; `cancel` and the attributes may be used by any."""

    def __init__(
        self,
        plan: JobPlan,
        settings: JobSettings,
        directory: JobDirectory,
        engine: Engine,
        results: CollectedResults,
        progress: Progress,
        output: Callable[[str, str], None],
    ) -> None:
        self._plan, self._settings, self._directory = plan, settings, directory
        self._engine, self._results, self._progress, self._output = engine, results, progress, output
        self._restarts = Restarts(settings.restart, checkpointing=settings.checkpoints.enabled)
        self._restore_from = settings.start.restore_from
        self.savepoints = SavepointRequests(settings.name, settings.checkpoints.savepoint_directory, directory.storage)
        self._cancelled = threading.Event()
        self._incarnation: Incarnation | None = None
        self.guarantee = end_to_end(plan, settings.checkpoints.enabled, settings.checkpoints.mode)
        self.metrics: dict[str, Any] = {}  # what user functions report, by operator uid
        self.history = JobHistory()
        self.failures: list[BaseException] = []

    @property
    def status(self) -> JobStatus:
        return self.history.status

    @status.setter
    def status(self, status: JobStatus) -> None:
        self.history.enter(status)

    def cancel(self) -> None:
        """End the job as soon as possible."""
        self.status = JobStatus.CANCELLING
        self._cancelled.set()
        self._engine.cancel()

    def run(self) -> None:
        """Run to the end.

        :raises FiresteelError: what the job failed with, or that it was cancelled.
        """
        loses = self.guarantee.level is Level.AT_MOST_ONCE  # in spite of its checkpoints, which is worth a warning
        log.log(logging.WARNING if loses else logging.INFO, "job '%s': %s", self._settings.name, self.guarantee.text)
        try:
            while True:
                try:
                    self._run_incarnation()
                except Exception as failure:  # noqa: BLE001  any failure rolls back; the strategy decides what then
                    self.savepoints.interrupted(failure)
                    if self._cancelled.is_set():
                        raise JobCancelledError(f"job '{self._settings.name}' was cancelled") from None
                    self._restart_after(failure)
                else:
                    self.status = JobStatus.FINISHED
                    return
        except JobCancelledError:
            if self._incarnation is not None and self._settings.checkpoints.delete_on_cancellation:
                discard(self._incarnation)
            self.status = JobStatus.CANCELED
            raise
        except BaseException:
            self.status = JobStatus.FAILED
            raise
        finally:
            self.savepoints.close(f"the job has ended, its status is {self.status.name}")
            self._progress.close()

    def _restart_after(self, failure: Exception) -> None:
        self.failures.append(failure)
        self.history.failure(failure)
        delay = self._restarts.delay_s(failure)
        if delay is None:
            raise failure
        self.status = JobStatus.RESTARTING
        log.warning(
            "job '%s' failed and restarts from its last checkpoint in %g s (restart %d): %s",
            self._settings.name, delay, self._restarts.count, _first_lines(failure),
        )  # fmt: skip
        self._cancelled.wait(delay)

    def _run_incarnation(self) -> None:
        """Recovery in the order that makes it safe: claim, commit, sweep, and only then start slots."""
        self._check_cancelled()
        if self._incarnation is not None:
            self._incarnation.check()  # somebody may have taken over while this driver waited to restart
        claimed = ""
        if self._restore_from is not None and self._settings.start.claim:
            claimed = claim(locate(self._restore_from), self._directory)
        incarnation = self._incarnation = self._directory.claim(
            self._restore_from, leave_output=self._settings.start.allow_non_restored_state, claimed=claimed
        )
        self._restore_from = None  # from now on the job goes on from its own newest checkpoint
        self._results.rollback()
        committers = Committers(self._plan, self._directory.job_id, incarnation.number, self._directory.workspace)
        checkpointer = None
        patience_s = self._settings.checkpoints.timeout_ms / 1000
        savepoints = SavepointWriting(
            self._directory, self._engine.tell, self._progress, patience_s, self.history.checkpoints
        )
        reading = SourceReading(self._plan, self._settings)
        try:
            self._recover(incarnation, committers)
            checkpointer = Checkpointer(
                self._plan,
                self._settings.name,
                self._settings.checkpoints,
                incarnation,
                committers,
                lambda metadata: self._on_completed(metadata, reading),
                savepoints,
                self.history.checkpoints,
            )
            if incarnation.start is not None:
                reading.restore(incarnation.start.metadata)
            self._deploy(incarnation, checkpointer, savepoints)
            self.status = JobStatus.RUNNING
            self._run_epochs(reading, checkpointer, savepoints)
        except Exception:
            incarnation.check()  # whatever else goes wrong then: a successor is the reason, or has made it irrelevant
            raise
        finally:
            savepoints.abandon()
            if checkpointer is not None:
                checkpointer.abandon()
            self._engine.undeploy()
            committers.close()
            reading.close()

    def _recover(self, incarnation: Incarnation, committers: Committers) -> None:
        start = incarnation.start
        if start is not None and not start.confirmed:
            if not self._settings.start.allow_non_restored_state:
                check_output(start, committers.uids)
            committables = {uid: items for uid, items in start.metadata.committables.items() if uid in committers.uids}
            if not committers.commit(start.metadata.checkpoint, committables, self._cancelled, incarnation.check):
                raise JobCancelledError("cancelled while committing")
            crash_point("recovery-before-confirm")
            confirm(start)
        drop_abandoned(incarnation)
        committers.sweep()
        crash_point("recovery-after-sweep")

    def _deploy(self, incarnation: Incarnation, checkpointer: Checkpointer, savepoints: SavepointWriting) -> None:
        start = incarnation.start
        allowed = self._settings.start.allow_non_restored_state
        storage = self._directory.storage
        restore, origin = {}, None
        if start is not None:
            chains = restore_point(start, self._plan, allowed)
            restore = {slot: carrying(storage, chain) for slot, chain in chains.items()}
            origin = carrying_origin(storage, origin_of(start.metadata, self._plan))
        limit, rocksdb = limit_of(storage), self._settings.rocksdb
        if limit is not None and rocksdb is not None:
            log.warning(
                "state is kept in the slots' memory and not in RocksDB: checkpoints in the driver's memory need it whole"
            )
            rocksdb = None
        began = time.monotonic()
        if start is not None:
            log.info("job '%s' goes on from checkpoint %d", self._settings.name, start.metadata.checkpoint)
            self._progress.restore(start.metadata)
            self.history.checkpoints.restored(start)
            if start.metadata.final:
                log.warning(
                    "job '%s' had finished with checkpoint %d in %s: only input that is new since then will be read. To run "
                    "it from the beginning, give it another name or another checkpoint directory",
                    self._settings.name, start.metadata.checkpoint, self._directory.path,
                )  # fmt: skip

        def on_message(message: SlotMessage) -> None:
            if message["type"] in ("durable", "declined"):
                checkpointer.on_message(message["slot"], message)
            elif message["type"] == "savepoint":
                savepoints.on_message(message["slot"], message)
            elif message["type"] == "state":
                keep(storage, message)
            elif message["type"] == "lost":
                checkpointer.fail(SlotLostError(f"slot {message['slot']} died"))
            elif message["type"] == "output":
                self._output(message["stream"], message["text"])
            elif message["type"] == "restored":
                self._progress.restoring(message["bytes"])
            elif message["type"] == "heartbeat":
                self._progress.slot_memory(message["slot"], message["rss"])

        self._engine.deploy(
            Deployment(
                self._directory.job_id, self._settings.name, self._plan, incarnation.number, self._restarts.count,
                self._directory.workspace, restore, self._settings.parameters, self._settings.checkpoints.enabled, origin,
                limit, rocksdb,
            ),
            on_message,
        )  # fmt: skip
        if start is not None:
            self._progress.restored(time.monotonic() - began)

    def _run_epochs(self, reading: SourceReading, checkpointer: Checkpointer, savepoints: SavepointWriting) -> None:
        epoch = 0
        wake = 0.0  # when an epoch is due without input: at once, for whatever was restored
        while True:
            self._results.wait_for_room(self._cancelled)
            self._check_cancelled()
            free = not checkpointer.busy()
            ending = self.savepoints.take_ending() if free else None
            planned = reading.plan() if ending is None else reading.stop(drain=ending.ending is Ending.DRAIN)
            final = planned.final
            barrier = checkpointer.due(reading.epoch_s) or final or ending is not None
            barrier = barrier or (free and self.savepoints.waiting())
            if not (planned.units or barrier or wake <= time.time() * 1000):
                self._cancelled.wait(_IDLE_S)
                continue
            if final:
                checkpointer.wait(self._cancelled)  # one checkpoint at a time, and the last one is this epoch's
            epoch += 1
            pending = None
            if barrier:
                wanted = [ending] if ending is not None else []
                if ending is None or not final:
                    wanted += self.savepoints.take(last=final)
                pending = checkpointer.begin(reading.positions(), final=final, savepoints=wanted)
            started = time.monotonic()
            result = self._engine.run_epoch(
                EpochOrder(
                    epoch,
                    planned.ranges,
                    checkpoint=pending.checkpoint if pending else None,
                    snapshot=pending.snapshot if pending else True,
                    whole=pending.whole if pending else False,
                    completed=checkpointer.base,
                    caught_up=planned.caught_up,
                    ended=planned.ended,
                    splits=planned.splits,
                    held_back=planned.held_back,
                    last=final or ending is not None,
                    over=planned.over,
                )
            )
            self.metrics = merge([report["metrics"] for report in result.reports])
            wake = min((report["wake"] for report in result.reports if report["wake"] is not None), default=math.inf)
            seconds = time.monotonic() - started
            reading.observe(seconds, result.reports)
            self._results.add(result.collected, held=self._settings.checkpoints.enabled or final, pending=pending)
            if pending is not None:
                checkpointer.run(pending, result)
            self._progress.epoch(epoch, seconds, result, checkpointer.base, reading.progress())
            if final or ending is not None:
                checkpointer.wait(self._cancelled)
                savepoints.wait(self._cancelled, checkpointer.check)
                self._check_cancelled()
                if ending is None or ending.succeeded() or final:
                    reading.tell_completed()
                    self._end(ending)
                    return
                log.warning("job '%s' goes on: %s", self._settings.name, ending.answer.exception())

    def _end(self, ending: SavepointRequest | None) -> None:
        if ending is not None and ending.ending is Ending.CANCEL:
            self.cancel()
            self._check_cancelled()

    def _check_cancelled(self) -> None:
        if self._cancelled.is_set():
            raise JobCancelledError(f"job '{self._settings.name}' was cancelled")

    def _on_completed(self, metadata: CheckpointMetadata, reading: SourceReading) -> None:
        self._results.release(metadata.checkpoint)
        reading.checkpoint_completed(metadata.positions)
        self._progress.checkpoint(metadata)


def _first_lines(failure: BaseException) -> str:
    text = str(failure) if isinstance(failure, FiresteelError) else f"{type(failure).__name__}: {failure}"
    lines = text.strip().splitlines()
    return "\n".join(lines[:25]) if lines else type(failure).__name__
