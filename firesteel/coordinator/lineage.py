"""Incarnations: which driver may write, and from which checkpoint a job goes on.

Every start of a job, restarts in process included, is a new **incarnation** k. It owns the folder `inc-k/` and writes
nowhere else. It is claimed, and fences all older ones, so that none of them can complete a checkpoint any more, however
late its driver wakes up; how, depends on the storage (`fencing.py`). Only then the restore point is chosen, and recorded.

    <checkpoints>/<job>/_job            the job's id and name
                       /inc-3/_start     the checkpoint incarnation 3 started from
                             /pending/   checkpoints being written, one directory each (in a local directory)
                             /chk-17/    completed checkpoint: _metadata, and _confirmed once its output is committed
                             /state/     state files
"""

from __future__ import annotations

import contextlib
import logging
import re
import uuid

from firesteel.common.crashpoints import crash_point
from firesteel.common.storage import LocalStorage, Storage, open_storage, reason
from firesteel.coordinator.completed import CONFIRMED, Completed, locate, read_completed
from firesteel.coordinator.documents import encode_document, read_document
from firesteel.coordinator.fencing import Fencing, folder_of
from firesteel.coordinator.importing import check_importable, import_checkpoint
from firesteel.coordinator.list_fencing import ListFencing
from firesteel.coordinator.metadata import CheckpointMetadata, encode
from firesteel.coordinator.rename_fencing import RenameFencing
from firesteel.errors import ConfigurationError, RestoreError, SupersededError

log = logging.getLogger("firesteel")

_JOB = "_job"


class JobDirectory:
    """A job's checkpoints.

    :param workspace: where sinks keep files of their own, a path or URI. Beside the checkpoints, unless those are in memory.
    """

    def __init__(self, storage: Storage, job_id: str, job_name: str = "", workspace: str | None = None) -> None:
        self.storage = storage
        self.workspace = workspace or storage.uri
        self.job_id = job_id
        self.job_name = job_name
        self.fencing = fencing_of(storage)

    @classmethod
    def open(cls, checkpoints: str | Storage, job_name: str, workspace: str | None = None) -> JobDirectory:
        """The directory of the job of that name below the checkpoint directory, made when it is new.

        :raises ConfigurationError: it cannot be made, or not be written to.
        :raises RestoreError: it belongs to another job or a newer firesteel.
        """
        storage = cls.storage_of(checkpoints, job_name)
        try:
            storage.check_writable()
            if not storage.exists(_JOB):
                if fencing_of(storage).incarnations():
                    raise RestoreError(f"{storage} holds checkpoints but no _job file. Restore that file from a copy")
                content = {"job_id": uuid.uuid4().hex, "job_name": job_name}
                with contextlib.suppress(FileExistsError):  # another driver was faster, and its id counts
                    storage.create(_JOB, encode_document("job", content))
        except OSError as error:
            raise _unusable(storage, error) from error
        return cls(storage, cls._job_id(storage, job_name), job_name, workspace)

    @classmethod
    def find(cls, checkpoints: str | Storage, job_name: str) -> JobDirectory | None:
        """The same, if there is one: nothing is made."""
        storage = cls.storage_of(checkpoints, job_name)
        try:
            return cls(storage, cls._job_id(storage, job_name), job_name) if storage.exists(_JOB) else None
        except OSError as error:
            raise _unusable(storage, error) from error

    @staticmethod
    def storage_of(checkpoints: str | Storage, job_name: str) -> Storage:
        slug = re.sub(r"[^A-Za-z0-9._-]+", "-", job_name).strip("-.") or "job"
        return (open_storage(checkpoints) if isinstance(checkpoints, str) else checkpoints).below(slug)

    @staticmethod
    def _job_id(storage: Storage, job_name: str) -> str:
        content = read_document(
            storage, _JOB, "job", "Restore it from a copy; without it nobody knows whose checkpoints these are"
        )
        if content["job_name"] != job_name:
            raise RestoreError(
                f"{storage} belongs to the job {content['job_name']!r}, not to {job_name!r}. Give this job another name or "
                f"another checkpoint directory"
            )
        return str(content["job_id"])

    @property
    def path(self) -> str:
        """As people write it."""
        return str(self.storage)

    @property
    def sinks_storage(self) -> Storage:
        return self.storage if self.workspace == self.storage.uri else open_storage(self.workspace)

    def incarnations(self) -> list[int]:
        """All there are, newest first."""
        return self.fencing.incarnations()

    def claim(self, start_from: str | None = None, *, leave_output: bool = False, claimed: str = "") -> Incarnation:
        """Become the newest incarnation, fence all older ones, and find the checkpoint to go on from.

        :param start_from: a checkpoint to start from, of this or of any other job; None: the newest one there is.
        :param leave_output: even if output of that one is not committed yet, and never will be.
        :param claimed: where that one is, if it is a savepoint that this job has claimed.
        """
        number = self.fencing.claim()
        crash_point("after-claim")
        if self._job_id(self.storage, self.job_name) != self.job_id:
            raise SupersededError(
                f"another driver made the job {self.job_name!r} in {self.path} anew. Start this one again"
            )
        for older in self.incarnations():
            if older < number:
                self.fencing.fence(older, number)
        crash_point("after-fence")
        start = self.latest(number) if start_from is None else self._chosen(start_from, number, leave_output, claimed)
        record = {"restored_from": start.folder if start else None}
        self.storage.replace(_start_of(number), encode_document("start", record))
        crash_point("after-lineage")
        incarnation = Incarnation(self, number, start)
        incarnation.check()  # a driver that slept above may have looked at checkpoints its successor was removing
        return incarnation

    def latest(self, before: int | None = None) -> Completed | None:
        """The checkpoint that incarnations older than `before` got to."""
        folder = self._latest_folder(before)
        return self._completed_at(folder) if folder else None

    def _latest_folder(self, before: int | None) -> str | None:
        for number in self.incarnations():
            if before is not None and number >= before:
                continue
            checkpoints = self.fencing.checkpoints(number)
            if checkpoints:
                return folder_of(number, checkpoints[-1])
            start = self._started_from(number)
            if start is not None:  # else it died before it did anything: look further back
                return start or None
        return None

    def _chosen(self, location: str, number: int, leave_output: bool, claimed: str) -> Completed:
        found = locate(location)
        latest = self._latest_folder(number)
        if latest is not None and self.storage.same(latest, found.storage, found.folder):
            return self._completed_at(latest)  # as if it had not been named
        check_importable(found, leave_output=leave_output)
        return import_checkpoint(found, Incarnation(self, number, None), claimed)

    def is_latest(self, found: Completed) -> bool:
        """Whether that is the checkpoint the job would go on from by itself."""
        latest = self._latest_folder(None)
        return latest is not None and self.storage.same(latest, found.storage, found.folder)

    def newest_number(self) -> int:
        """Of all checkpoints there are; 0 for none."""
        return max((n for number in self.incarnations() for n in self.fencing.checkpoints(number)), default=0)

    def _started_from(self, number: int) -> str | None:
        """The checkpoint an incarnation started from, "" for none, None when it never got that far."""
        name = _start_of(number)
        if not self.storage.exists(name):
            return None
        advice = "Restore it from a copy; it says from which checkpoint the job went on"
        return str(read_document(self.storage, name, "start", advice)["restored_from"] or "")

    def completed(self, incarnation: int) -> list[Completed]:
        """An incarnation's completed checkpoints, oldest first, as far as they can be read."""
        found = []
        for checkpoint in self.fencing.checkpoints(incarnation):
            try:
                found.append(self._completed_at(folder_of(incarnation, checkpoint)))
            except RestoreError as error:
                log.warning("an older checkpoint cannot be used any more: %s", error)
        return found

    def _completed_at(self, folder: str) -> Completed:
        completed = read_completed(self.storage, folder)
        metadata = completed.metadata
        if metadata.job_id != self.job_id:
            raise RestoreError(
                f"checkpoint {completed.path} belongs to the job {metadata.job_name!r} with id {metadata.job_id}, not to "
                f"{self.job_id}, in whose directory it is. Move it away if it was copied here by mistake"
            )
        return completed


class Incarnation:
    """The right to write: one start of a job."""

    def __init__(self, directory: JobDirectory, number: int, start: Completed | None) -> None:
        self.directory = directory
        self.number = number
        self.start = start
        self._fencing = directory.fencing

    @property
    def folder(self) -> str:
        return f"inc-{self.number}"

    @property
    def path(self) -> str:
        """As people write it."""
        return self.directory.storage.at(self.folder)

    def begin(self, checkpoint: int) -> str:
        """The folder for what belongs to a checkpoint and is there as soon as it is complete.

        :raises SupersededError: a newer incarnation has fenced this one.
        """
        try:
            return self._fencing.begin(self.number, checkpoint)
        except FileNotFoundError:
            raise self.superseded() from None

    def complete(self, metadata: CheckpointMetadata) -> Completed:
        """The commit point: the checkpoint exists from here on, and not before.

        :raises SupersededError: a newer incarnation has fenced this one; the checkpoint does not exist.
        """
        try:
            self._fencing.complete(self.number, metadata.checkpoint, encode(metadata))
        except FileNotFoundError:
            raise self.superseded() from None
        folder = folder_of(self.number, metadata.checkpoint)
        return Completed(self.directory.storage, folder, metadata, confirmed=False)

    def drop_pending(self, checkpoint: int) -> None:
        self._fencing.drop_pending(self.number, checkpoint)

    def check(self) -> None:
        """Raise SupersededError when a newer incarnation has fenced this one."""
        if self._fencing.fenced(self.number):
            raise self.superseded()

    def superseded(self) -> SupersededError:
        newest = max(self.directory.incarnations(), default=self.number)
        return SupersededError(
            f"incarnation {self.number} of this job was superseded by incarnation {newest} in {self.directory.path}: another "
            f"driver has taken the job over, and this one must not go on"
        )


def fencing_of(storage: Storage) -> Fencing:
    return RenameFencing(storage) if isinstance(storage, LocalStorage) else ListFencing(storage)


def confirm(completed: Completed) -> None:
    """Note that a checkpoint's output is committed, so that recovery need not commit it again."""
    with contextlib.suppress(FileNotFoundError):  # a successor has dropped the checkpoint meanwhile
        completed.storage.replace(f"{completed.folder}/{CONFIRMED}", b"")


def _unusable(storage: Storage, error: OSError) -> ConfigurationError:
    return ConfigurationError(
        f"the checkpoint directory {storage} cannot be made or used: {reason(error)}. Check its path and permissions, and that "
        f"there is room"
    )


def _start_of(number: int) -> str:
    return f"inc-{number}/_start"
