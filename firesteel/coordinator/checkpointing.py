"""The checkpoint protocol. Its five steps carry the same numbers here, in docs/architecture.md and in the code below.

1. **Plan.** Each source says how far this epoch reads; if a checkpoint is due, this epoch's end is barrier n on base b, the
   last completed checkpoint, whose files stay until n is resolved.
2. **Run.** At barrier n every operator snapshots and every sink writer pre-commits. Committables and the attempts' nonces
   come back in band, the handles of durable snapshots over the control connections.
3. **Complete.** All acknowledged and durable, and no sink says that its output cannot be committed any more: publish
   `_metadata`, at once or not at all. *This is the commit point.*
4. **Commit.** Make the output visible, idempotently, retrying without end; then mark n confirmed.
5. **Drop** checkpoints beyond the retained number.

Steps 3 to 5 run on a thread of their own while the next epochs run. One checkpoint is on its way at a time. A checkpoint
that fails before the commit point is dropped, but never its output: sources have moved on, so its committables are
carried into the next one. Only a rollback aborts output.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from firesteel.common.crashpoints import crash_point
from firesteel.connectors.base import Json
from firesteel.coordinator.committing import Committers
from firesteel.coordinator.completed import Completed
from firesteel.coordinator.engine import EpochResult, SlotMessage
from firesteel.coordinator.failure_manager import FailureManager
from firesteel.coordinator.history import CheckpointHistory
from firesteel.coordinator.lineage import Incarnation, confirm
from firesteel.coordinator.metadata import CheckpointMetadata, OperatorInfo
from firesteel.coordinator.pending import PendingCheckpoint
from firesteel.coordinator.rescaling import chains_of, rescaled_operators
from firesteel.coordinator.retention import CompletedCheckpoints
from firesteel.coordinator.savepoint_requests import Ending, SavepointRequest
from firesteel.coordinator.savepoint_writing import DraftSavepoint, SavepointWriting
from firesteel.coordinator.trigger import Trigger
from firesteel.errors import (
    CheckpointError,
    DataLossError,
    ExternalSystemError,
    RestoreError,
    SavepointError,
    SupersededError,
    UserCodeError,
)
from firesteel.graph.plan import JobPlan, PlannedOperator
from firesteel.graph.settings import CheckpointSettings

log = logging.getLogger("firesteel")

_POLL_S = 0.5
_EXPLAINED = (UserCodeError, CheckpointError, SavepointError, DataLossError, ExternalSystemError)
"""Failures that need no other words around them."""


class Checkpointer:
    """Takes the checkpoints of one incarnation."""

    def __init__(
        self,
        plan: JobPlan,
        job_name: str,
        settings: CheckpointSettings,
        incarnation: Incarnation,
        committers: Committers,
        on_completed: Callable[[CheckpointMetadata], None],
        savepoints: SavepointWriting | None = None,
        history: CheckpointHistory | None = None,
    ) -> None:
        self._savepoints = savepoints
        self._plan, self._job_name, self._settings = plan, job_name, settings
        self._incarnation, self._committers = incarnation, committers
        self._on_completed = on_completed
        self._history = history or CheckpointHistory()
        self._completed = CompletedCheckpoints(incarnation, settings.retained)
        start = incarnation.start
        self._next = start.metadata.checkpoint + 1 if start else 1
        self.base: int | None = start.metadata.checkpoint if start else None
        self._given_up = given_up(start, plan)
        self._pending: PendingCheckpoint | None = None
        self._carried: dict[str, list[Json]] = {}
        self._thread: threading.Thread | None = None
        self._abandoned = threading.Event()
        self._failure: BaseException | None = None
        self._trigger = Trigger(settings)
        self._failures = FailureManager(settings.tolerable_failures)

    # ---- on the coordinator's thread

    def due(self, epoch_s: float) -> bool:
        """Whether the epoch about to be planned should end with a barrier."""
        self.check()
        return not self.busy() and self._trigger.due(epoch_s)

    def busy(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def begin(
        self, positions: Mapping[str, Json], *, final: bool, savepoints: Sequence[SavepointRequest] = ()
    ) -> PendingCheckpoint:
        """Step 1: this epoch ends with barrier n.

        :param savepoints: what is to be made of it.
        """
        self.check()
        self._trigger.triggered()
        enabled = self._settings.enabled
        pending = PendingCheckpoint(
            self._next, self._plan.slots, positions, snapshot=enabled or bool(savepoints), final=final, whole=not enabled,
            savepoints=savepoints,
        )  # fmt: skip
        self._next += 1
        self._incarnation.begin(pending.checkpoint)
        self._pending = pending
        self._history.begun(pending.checkpoint, self._plan.slots, final=final)
        crash_point("after-plan")
        return pending

    def run(self, pending: PendingCheckpoint, result: EpochResult) -> None:
        """Step 2 is over: the epoch succeeded. The other steps follow on their own."""
        pending.epoch_ended(result)
        crash_point("after-epoch")
        self._thread = threading.Thread(target=self._finish, args=(pending,), name="checkpoint", daemon=True)
        self._thread.start()

    def on_message(self, slot: int, message: SlotMessage) -> None:
        """A slot acknowledges or declines. Called by the engine's threads."""
        pending = self._pending
        if pending is not None and pending.checkpoint == message["checkpoint"]:
            pending.acknowledge(slot, message)

    def wait(self, cancelled: threading.Event) -> None:
        """Wait until the checkpoint on its way is resolved."""
        while self.busy() and self._failure is None and not cancelled.is_set():
            assert self._thread is not None
            self._thread.join(_POLL_S)
        self.check()

    def check(self) -> None:
        """Raise what ended the checkpoint thread, if anything did."""
        if self._failure is not None:
            raise self._failure

    def fail(self, failure: Exception) -> None:
        """Something happened that no checkpoint can survive. Any thread may call this; `check` raises it."""
        self._failure = self._failure or failure

    def abandon(self) -> None:
        """The incarnation ends. What is not complete never will be, so its output is thrown away; what is complete will
        be committed by the next one.
        """
        self._abandoned.set()
        if self._thread is not None:
            self._thread.join()
        self._history.rolled_back()
        self._committers.abort(self._carried)

    # ---- on the checkpoint's own thread

    def _finish(self, pending: PendingCheckpoint) -> None:
        try:
            self._finish_steps(pending)
        except SupersededError as error:
            self._failure = error  # in the place of any other: it explains them
        except _EXPLAINED as error:
            self.fail(error)
        except Exception as error:  # noqa: BLE001  raised again by check() on the coordinator's thread
            failure = CheckpointError(f"checkpoint {pending.checkpoint} failed: {type(error).__name__}: {error}")
            failure.__cause__ = error
            self.fail(failure)
        finally:
            self._pending = None
            self._trigger.resolved()

    def _finish_steps(self, pending: PendingCheckpoint) -> None:
        for uid, items in self._carried.items():
            pending.committables[uid] = items + pending.committables.get(uid, [])
        why = self._await_durability(pending)
        if why is not None:
            self._drop(pending, why)
            return
        # 3. Complete
        self._carried = pending.committables  # if something is wrong with it, the rollback throws it away
        self._committers.check(pending.committables)
        crash_point("before-metadata")
        metadata = self._metadata(pending)
        drained = self._drain(pending, metadata)
        self._carried = {}  # from here on nobody may throw it away, unless the commit point is certainly missed
        try:
            completed = self._incarnation.complete(metadata)
        except SupersededError:
            self._carried = pending.committables
            raise
        self._incarnation.check()  # a successor that claimed before this may not know of it, and one after it does
        self.base = pending.checkpoint
        self._failures.completed()
        self._history.completed(completed)
        # 4. Commit
        if not self._committers.commit(
            pending.checkpoint, metadata.committables, self._abandoned, self._incarnation.check
        ):
            return
        crash_point("before-confirm")
        self._confirm(completed)
        self._make_savepoints(pending, metadata, drained)
        # 5. Drop
        self._incarnation.check()  # what is old to a superseded driver may be what its successor keeps
        self._completed.add(completed)
        crash_point("after-drop")

    def _drain(
        self, pending: PendingCheckpoint, metadata: CheckpointMetadata
    ) -> dict[SavepointRequest, DraftSavepoint]:
        """The state files of savepoints that end the job for good: before the commit point, because without them the job
        has to go back to before it was drained."""
        drains = [request for request in pending.savepoints if request.ending is Ending.DRAIN]
        if not drains:
            return {}
        assert self._savepoints is not None
        try:
            return {request: self._savepoints.write(request, metadata) for request in drains}
        except SavepointError as error:
            for request in drains:
                request.fail(str(error), error)
            raise

    def _make_savepoints(
        self,
        pending: PendingCheckpoint,
        metadata: CheckpointMetadata,
        drained: Mapping[SavepointRequest, DraftSavepoint],
    ) -> None:
        for request in pending.savepoints:
            assert self._savepoints is not None
            if request in drained:
                try:
                    self._savepoints.publish(request, drained[request])
                except SavepointError as error:  # all output is committed, so the job has ended as it was to
                    request.fail(str(error), error)
                continue
            self._completed.pin(metadata.checkpoint)
            self._savepoints.start(request, metadata, lambda: self._completed.unpin(metadata.checkpoint))

    def _await_durability(self, pending: PendingCheckpoint) -> str | None:
        """Wait for every slot; the reason why the checkpoint has to be dropped, if it has."""
        timeout = self._settings.timeout_ms / 1000
        while True:
            try:
                if pending.wait(min(_POLL_S, timeout)):
                    return None
            except OSError as error:
                return str(error)
            if self._abandoned.is_set():
                return "the job is rolling back"
            if pending.age() > timeout and not pending.final:  # no later one could carry the last one's output
                return f"it took longer than {timeout:g} s"

    def _drop(self, pending: PendingCheckpoint, why: str) -> None:
        self._incarnation.drop_pending(pending.checkpoint)
        self._completed.dropped_pending()
        self._carried = pending.committables
        for request in pending.savepoints:
            request.fail(f"checkpoint {pending.checkpoint}, of which it was to be made, was dropped: {why}")
        self._history.dropped(pending.checkpoint, why)
        if pending.final:
            raise CheckpointError(f"the final checkpoint {pending.checkpoint} was dropped: {why}")
        if not self._abandoned.is_set():
            self._failures.failed(pending.checkpoint, why)

    def _confirm(self, completed: Completed) -> None:
        confirm(completed)
        crash_point("after-confirm")
        self._committers.sweep()
        self._on_completed(completed.metadata)

    def _metadata(self, pending: PendingCheckpoint) -> CheckpointMetadata:
        return CheckpointMetadata(
            job_id=self._incarnation.directory.job_id,
            job_name=self._job_name,
            checkpoint=pending.checkpoint,
            incarnation=self._incarnation.number,
            created_ms=int(time.time() * 1000),
            final=pending.final,
            operators=operator_infos(self._plan),
            positions=pending.positions,
            state=pending.state(),
            committables=pending.committables,
            statistics={"duration_ms": int(pending.age() * 1000)},
            given_up=self._given_up,
        )


def operator_infos(plan: JobPlan) -> dict[str, OperatorInfo]:
    return {
        operator.uid: OperatorInfo(
            operator.name,
            operator.kind,
            operator.parallelism,
            operator.max_parallelism,
            operator.keyed,
        )
        for operator in plan.operators
    }


def given_up(start: Completed | None, plan: JobPlan) -> list[str]:
    """Operators that had state once and are not in the program any more."""
    if start is None:
        return []
    return sorted({*start.metadata.given_up, *_without_operator(start, plan)})


def _has_state(uid: str, metadata: CheckpointMetadata) -> bool:
    return metadata.operators[uid].keyed or uid in metadata.positions or uid in metadata.operator_state()


def restore_point(
    start: Completed, plan: JobPlan, allow_non_restored_state: bool = False
) -> dict[int, list[dict[str, Any]]]:
    """Which state files each slot starts with, checking that the program fits the checkpoint.

    With another parallelism keyed state is in other slots than it was (rescaling.py), and operator state may be another
    subtask's (origin.py).

    :raises RestoreError: it does not fit, see `check_fits`.
    """
    check_fits(start, plan, allow_non_restored_state)
    for operator in plan.operators:
        info = start.metadata.operators.get(operator.uid)
        if info is not None and info.keyed and info.max_parallelism != operator.max_parallelism:
            raise RestoreError(
                f"the job got ready for another checkpoint than {start.path}, which became its newest meanwhile: there "
                f"{operator} has the maximum parallelism {info.max_parallelism}, and not {operator.max_parallelism}. Start it "
                f"again"
            )
    for uid, name in _without_operator(start, plan).items():
        log.warning("the state of operator '%s' (uid %s) is given up: it is not in the program", name, uid)
    for uid, before in rescaled_operators(start.metadata, plan).items():
        name, now = next((each.name, each.parallelism) for each in plan.operators if each.uid == uid)
        log.info("operator '%s' (uid %s) goes on with parallelism %d, and had %d", name, uid, now, before)
    return chains_of(start.metadata, plan)


def check_fits(start: Completed, plan: JobPlan, allow_non_restored_state: bool = False) -> None:
    """Check that the program can go on from a checkpoint, changing nothing.

    :raises RestoreError: operators with state are gone, or one with keyed state has another number of key groups.
    """
    metadata, now = start.metadata, operator_infos(plan)
    for uid in metadata.given_up:
        if uid in now:
            raise RestoreError(
                f"operator '{now[uid].name}' (uid {uid}) is in the program again, but its state was given up when the program "
                f"ran without it. Give it another uid(...), with which it starts without state, or start from a checkpoint "
                f"from before that"
            )
    gone = _without_operator(start, plan)
    if gone and not allow_non_restored_state:
        lost = ", ".join(f"'{name}' (uid {uid})" for uid, name in gone.items())
        new = ", ".join(f"'{info.name}' (uid {uid})" for uid, info in now.items() if uid not in metadata.operators)
        raise RestoreError(
            f"checkpoint {start.path} of job '{metadata.job_name}' holds state of operators that are not in the program, and "
            f"would be lost: {lost}. The program's operators that are new to it: {new or 'none'}. If this is another program, "
            f"give it another name; if operators were renamed or moved, give them the uid(...) that they had; or give that "
            f"state up with --allow-non-restored-state"
        )
    for operator in plan.operators:
        before = metadata.operators.get(operator.uid)
        if before is not None and before.keyed:
            _check_key_groups(start, operator, before.max_parallelism)


def _check_key_groups(start: Completed, operator: PlannedOperator, before: int) -> None:
    if operator.max_parallelism_given and operator.max_parallelism != before:
        raise RestoreError(
            f"{operator} has the maximum parallelism {operator.max_parallelism}, and {before} in checkpoint {start.path}: its "
            f"state is divided into so many key groups, and cannot be divided anew. Call set_max_parallelism({before}), or "
            f"leave it out, which takes the checkpoint's; or give the operator another uid(...), with which it starts "
            f"without state"
        )
    if operator.parallelism > before:
        raise RestoreError(
            f"{operator} has parallelism {operator.parallelism}, above its maximum parallelism {before} in checkpoint "
            f"{start.path}: its state is divided into so many key groups, and cannot be divided anew. Lower the parallelism to "
            f"{before} at most, or give the operator another uid(...), with which it starts without state"
        )


def _without_operator(start: Completed, plan: JobPlan) -> dict[str, str]:
    """uid -> name of operators that have state in a checkpoint and are not in the program."""
    metadata, now = start.metadata, {operator.uid for operator in plan.operators}
    return {uid: info.name for uid, info in metadata.operators.items() if uid not in now and _has_state(uid, metadata)}
