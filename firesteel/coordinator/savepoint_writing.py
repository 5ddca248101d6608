"""Making savepoints of completed checkpoints, while the job goes on.

1. **Checkpoint.** A savepoint begins as a checkpoint, n, like any other. It waits until n's output is committed and confirmed.
2. **Merge.** The files of n stay for as long as this takes. Each slot is told to merge its chain of n into one file in the
   savepoint's directory, which a process of its own does; the slot says how far it is, and at last the file's handle.
3. **Publish.** All are there: `_metadata` is written, at once or not at all. Before that there is no savepoint.

One that drains the job swaps 1's end and 2: its windows have fired too early for a job that goes on, so if the files cannot
be written, output must not be committed either, and the job goes back to the checkpoint before.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from firesteel.common.crashpoints import crash_point
from firesteel.common.storage import MemoryStorage, Storage, reason
from firesteel.coordinator.engine import FileHandle, SlotMessage
from firesteel.coordinator.history import CheckpointHistory
from firesteel.coordinator.lineage import JobDirectory
from firesteel.coordinator.metadata import CheckpointMetadata
from firesteel.coordinator.progress import Progress
from firesteel.coordinator.savepoint import new_folder, new_state_file, publish
from firesteel.coordinator.savepoint_requests import SavepointRequest
from firesteel.errors import FiresteelError, SavepointError
from firesteel.state.compaction import compact

log = logging.getLogger("firesteel")

_POLL_S = 0.1
_LEAST_PATIENCE_S = 60.0  # even if checkpoints have less time: processes have to start


class DraftSavepoint:
    """A savepoint between its checkpoint and its publication."""

    def __init__(self, folder: str, storage: Storage, metadata: CheckpointMetadata, patience_s: float) -> None:
        self.folder, self.storage, self.metadata = folder, storage, metadata
        self.started = self._heard = time.monotonic()
        self._patience_s = patience_s
        self._slots = {slot for slot, chain in enumerate(metadata.state) if chain}
        self._read: dict[int, int] = {}  # slot -> bytes of its chain that it has read
        self._handles: dict[int, FileHandle] = {}
        self._failures: dict[int, str] = {}  # the first one is the reason
        self._abandoned = False
        self._changed = threading.Condition()

    def size(self) -> int:
        """Of what has to be read."""
        return sum(handle["size"] for chain in self.metadata.state for handle in chain)

    def done(self, slot: int, handle: FileHandle) -> None:
        with self._changed:
            self._handles[slot] = handle
            self._notify()

    def failed(self, slot: int, why: str) -> None:
        with self._changed:
            self._failures[slot] = why
            self._notify()

    def got_to(self, slot: int, read: int) -> int:
        """A slot has read so many bytes of its chain. All of them together."""
        with self._changed:
            self._read[slot] = read
            self._notify()
            return sum(self._read.values())

    def abandon(self) -> None:
        with self._changed:
            self._abandoned = True
            self._notify()

    def _notify(self) -> None:
        self._heard = time.monotonic()
        self._changed.notify_all()

    def wait(self, drop: Callable[[], None]) -> None:
        """Until every slot has answered. Nobody works on it any more then, unless the slots themselves have ended, or hang.

        :param drop: what tells slots to give it up, when one of them could not do it.
        :raises SavepointError: a slot could not write its file, or none has got any further for too long.
        """
        dropped = False
        with self._changed:
            while not self._abandoned and not self._handles.keys() | self._failures.keys() >= self._slots:
                if self._failures and not dropped:
                    dropped = True
                    drop()
                self._changed.wait(_POLL_S)
                if time.monotonic() - self._heard > self._patience_s:
                    drop()
                    break
            if self._failures:
                slot, why = next(iter(self._failures.items()))
                raise SavepointError(f"slot {slot} could not write its state: {why}")
            if self._handles.keys() >= self._slots:
                return
            if self._abandoned:
                raise SavepointError("the slots that were writing it have ended")
            raise SavepointError(f"no slot has got any further with it for {self._patience_s:g} s")

    def state(self) -> list[list[FileHandle]]:
        """For each slot its file."""
        return [[self._handles[slot]] if slot in self._handles else [] for slot in range(len(self.metadata.state))]


class SavepointWriting:
    """The savepoints of one incarnation.

    :param patience_s: for how long one may not get any further, at least.
    """

    def __init__(
        self,
        directory: JobDirectory,
        tell: Callable[[int, SlotMessage], None],
        progress: Progress,
        patience_s: float,
        history: CheckpointHistory,
    ) -> None:
        self._directory, self._tell, self._progress, self._history = directory, tell, progress, history
        self._patience_s = max(patience_s, _LEAST_PATIENCE_S)
        self._drafts: dict[str, DraftSavepoint] = {}
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._abandoned = False

    # ---- on the thread that has completed the checkpoint

    def start(self, request: SavepointRequest, metadata: CheckpointMetadata, unpin: Callable[[], None]) -> None:
        """Steps 2 and 3, on a thread of their own. `unpin` is called when the checkpoint's files are not needed any more."""

        def run() -> None:
            try:
                draft = self.write(request, metadata)
                self.publish(request, draft)
            except SavepointError as error:
                request.fail(str(error), error)
                log.warning("%s", request.answer.exception())
            finally:
                unpin()

        thread = threading.Thread(target=run, name="savepoint", daemon=True)
        self._threads = [each for each in self._threads if each.is_alive()] + [thread]
        thread.start()

    def write(self, request: SavepointRequest, metadata: CheckpointMetadata) -> DraftSavepoint:
        """Step 2. Nothing is left of it if it fails.

        :raises SavepointError: with the reason.
        """
        folder = new_folder(self._directory.job_id)
        draft = DraftSavepoint(folder, request.target.below(folder), metadata, self._patience_s)
        with self._lock:
            if self._abandoned:
                raise SavepointError("the job is rolling back or ending")
            self._drafts[folder] = draft
        try:
            request.target.make_folder(folder)
            crash_point("savepoint-before-state")
            for slot, chain in enumerate(metadata.state):
                if chain:
                    self._order(draft, slot, list(chain))
            draft.wait(lambda: self._drop(draft))
        except (OSError, FiresteelError) as error:
            draft.storage.delete_folder()
            raise SavepointError(reason(error) if isinstance(error, OSError) else str(error)) from error
        finally:
            with self._lock:
                self._drafts.pop(folder, None)
        return draft

    def _order(self, draft: DraftSavepoint, slot: int, chain: list[FileHandle]) -> None:
        output, uids = new_state_file(slot), list(draft.metadata.operators)
        if isinstance(self._directory.storage, MemoryStorage):  # it is here, and small
            draft.done(slot, compact(self._directory.storage, output, chain, draft.storage, uids))
            return
        order: dict[str, Any] = {"type": "savepoint", "savepoint": draft.folder, "into": draft.storage.uri}
        self._tell(slot, {**order, "output": output, "chain": chain, "uids": uids})

    def _drop(self, draft: DraftSavepoint) -> None:
        for slot in range(len(draft.metadata.state)):
            self._tell(slot, {"type": "savepoint-dropped", "savepoint": draft.folder})

    def publish(self, request: SavepointRequest, draft: DraftSavepoint) -> None:
        """Step 3.

        :raises SavepointError: with the reason.
        """
        took = time.monotonic() - draft.started
        try:
            written = publish(draft.storage, draft.metadata, draft.state(), self._job_directory(), took)
        except OSError as error:
            draft.storage.delete_folder()
            raise SavepointError(f"its metadata could not be written: {reason(error)}") from error
        log.info("savepoint %s of checkpoint %d is complete", draft.storage, draft.metadata.checkpoint)
        self._progress.savepoint(str(draft.storage), written.size(), took)
        self._history.savepoint(written, str(draft.storage), took)
        request.answer.set_result(str(draft.storage))

    def _job_directory(self) -> str:
        return "" if isinstance(self._directory.storage, MemoryStorage) else self._directory.path

    # ---- on the engine's threads

    def on_message(self, slot: int, message: SlotMessage) -> None:
        with self._lock:
            draft = self._drafts.get(message["savepoint"])
        if draft is None:
            return
        if "handle" in message:
            draft.done(slot, message["handle"])
        elif "why" in message:
            draft.failed(slot, message["why"])
        else:
            self._progress.savepointing(str(draft.storage), draft.got_to(slot, message["read"]), draft.size())

    # ---- on the coordinator's thread

    def wait(self, cancelled: threading.Event, check: Callable[[], None]) -> None:
        """Until none is on its way. `check` raises when none of them can come to an end any more."""
        while any(thread.is_alive() for thread in self._threads) and not cancelled.wait(_POLL_S):
            check()

    def abandon(self) -> None:
        """The incarnation ends: what is not complete fails."""
        with self._lock:
            self._abandoned = True
            drafts = list(self._drafts.values())
        for draft in drafts:
            draft.abandon()
        for thread in self._threads:
            thread.join()
