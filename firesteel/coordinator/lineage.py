"""Incarnations: which driver may write, and from which checkpoint a job goes on.

Every start of a job, restarts in process included, is a new **incarnation** k. It owns the directory `inc-k/` and writes
nowhere else. It is claimed by an exclusive create; the claim also *fences* all older incarnations, by renaming their
`pending/` directory. A checkpoint completes by a rename out of `pending/`, so from that moment on no older incarnation can
complete one, however late its driver wakes up. Only then the restore point is chosen, and recorded.

    <checkpoints>/<job>/_job            the job's id and name
                       /inc-3/_start     the checkpoint incarnation 3 started from
                             /pending/   checkpoints being written, one directory each
                             /chk-17/    completed checkpoint: _metadata, and _confirmed once its output is committed
                             /state/     state files
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import re
import shutil
import time
import uuid

from firesteel.common.crashpoints import crash_point
from firesteel.common.durable import replace_durable, sync_directory, write_durable
from firesteel.coordinator.completed import (
    CHECKPOINT,
    CONFIRMED,
    INCARNATION,
    Completed,
    local_path,
    locate,
    read_completed,
)
from firesteel.coordinator.documents import encode_document, read_document
from firesteel.coordinator.importing import check_importable, import_checkpoint
from firesteel.coordinator.metadata import METADATA, CheckpointMetadata, encode
from firesteel.errors import ConfigurationError, RestoreError, SupersededError

log = logging.getLogger("firesteel")

_DRAFT_S = 600


class JobDirectory:
    """A job's directory of checkpoints."""

    def __init__(self, path: str, job_id: str, job_name: str = "") -> None:
        self.path = path
        self.job_id = job_id
        self.job_name = job_name

    @classmethod
    def open(cls, checkpoints: str, job_name: str) -> JobDirectory:
        """The directory of the job of that name below the checkpoint directory, made when it is new.

        :raises RestoreError: it belongs to another job or a newer firesteel.
        """
        path = cls.path_of(checkpoints, job_name)
        marker = os.path.join(path, "_job")
        try:
            os.makedirs(path, exist_ok=True)
            if not os.path.exists(marker):
                if any(INCARNATION.fullmatch(name) for name in os.listdir(path)):
                    raise RestoreError(f"{path} holds checkpoints but no _job file. Restore that file from a copy")
                content = {"job_id": uuid.uuid4().hex, "job_name": job_name}
                with contextlib.suppress(FileExistsError):  # another driver was faster, and its id counts
                    write_exclusive(marker, encode_document("job", content))
            if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        except OSError as error:
            raise ConfigurationError(
                f"the checkpoint directory {path} cannot be made or used: {error.strerror}. Check its path and permissions"
            ) from error
        return cls(path, cls._job_id(marker, job_name), job_name)

    @classmethod
    def find(cls, checkpoints: str, job_name: str) -> JobDirectory | None:
        """The same, if there is one: nothing is made."""
        path = cls.path_of(checkpoints, job_name)
        marker = os.path.join(path, "_job")
        return cls(path, cls._job_id(marker, job_name), job_name) if os.path.exists(marker) else None

    @staticmethod
    def path_of(checkpoints: str, job_name: str) -> str:
        slug = re.sub(r"[^A-Za-z0-9._-]+", "-", job_name).strip("-.") or "job"
        return os.path.join(local_path(checkpoints), slug)

    @staticmethod
    def _job_id(marker: str, job_name: str) -> str:
        content = read_document(
            marker, "job", "Restore it from a copy; without it nobody knows whose checkpoints these are"
        )
        if content["job_name"] != job_name:
            raise RestoreError(
                f"{os.path.dirname(marker)} belongs to the job {content['job_name']!r}, not to {job_name!r}. Give this job "
                f"another name or another checkpoint directory"
            )
        return str(content["job_id"])

    def incarnations(self) -> list[int]:
        """All there are, newest first."""
        names = (INCARNATION.fullmatch(name) for name in os.listdir(self.path))
        return sorted((int(match[1]) for match in names if match), reverse=True)

    def incarnation_path(self, incarnation: int) -> str:
        return os.path.join(self.path, f"inc-{incarnation}")

    def claim(self, start_from: str | None = None, *, leave_output: bool = False) -> Incarnation:
        """Become the newest incarnation, fence all older ones, and find the checkpoint to go on from.

        :param start_from: a checkpoint to start from, of this or of any other job; None: the newest one there is.
        :param leave_output: even if output of that one is not committed yet, and never will be.
        """
        number = self._claim_number()
        crash_point("after-claim")
        for older in self.incarnations():
            if older < number:
                self._fence(older, number)
        crash_point("after-fence")
        start = self.latest(number) if start_from is None else self._chosen(start_from, number, leave_output)
        record = {"restored_from": os.path.relpath(start.path, self.path) if start else None}
        replace_durable(os.path.join(self.incarnation_path(number), "_start"), encode_document("start", record))
        crash_point("after-lineage")
        claimed = Incarnation(self, number, start)
        claimed.check()  # a driver that slept above may have looked at checkpoints its successor was removing
        return claimed

    def _claim_number(self) -> int:
        """A directory with everything in it appears under the next free number, at once or not at all."""
        draft = os.path.join(self.path, f"new-{uuid.uuid4().hex}")
        for part in ("pending", "state"):
            os.makedirs(os.path.join(draft, part))
        number = max(self.incarnations(), default=0)
        while True:
            number += 1
            try:
                os.rename(draft, self.incarnation_path(number))  # fails when that exists: it is not empty
            except OSError:
                if not os.path.isdir(self.incarnation_path(number)):
                    raise
                continue
            sync_directory(self.path)
            return number

    def abandoned_drafts(self) -> list[str]:
        """What claims that were killed half way left behind; young ones may be claims under way."""
        drafts = [os.path.join(self.path, name) for name in os.listdir(self.path) if name.startswith("new-")]
        return [draft for draft in drafts if time.time() - os.path.getmtime(draft) > _DRAFT_S]

    def _fence(self, older: int, by: int) -> None:
        path = self.incarnation_path(older)
        with contextlib.suppress(FileNotFoundError):  # fenced before, or never more than half made
            os.rename(os.path.join(path, "pending"), os.path.join(path, f"fenced-by-{by}"))
            sync_directory(path)

    def latest(self, before: int | None = None) -> Completed | None:
        """The checkpoint that incarnations older than `before` got to."""
        path = self._latest_path(before)
        return self._completed_at(path) if path else None

    def _latest_path(self, before: int | None) -> str | None:
        for number in self.incarnations():
            if before is not None and number >= before:
                continue
            checkpoints = self.checkpoints(number)
            if checkpoints:
                return checkpoints[-1]
            start = self._start_of(number)
            if start is not None:  # else it died before it did anything: look further back
                return os.path.join(self.path, start) if start else None
        return None

    def _chosen(self, location: str, number: int, leave_output: bool) -> Completed:
        found = locate(location)
        latest = self._latest_path(number)
        if latest is not None and self.is_latest(found, number):
            return self._completed_at(latest)  # as if it had not been named
        check_importable(found, leave_output=leave_output)
        return import_checkpoint(found, Incarnation(self, number, None))

    def is_latest(self, found: Completed, before: int | None = None) -> bool:
        """Whether that is the checkpoint the job would go on from by itself."""
        latest = self._latest_path(before)
        return latest is not None and os.path.exists(latest) and os.path.samefile(found.path, latest)

    def newest_number(self) -> int:
        """Of all checkpoints there are; 0 for none."""
        names = (os.path.basename(path) for number in self.incarnations() for path in self.checkpoints(number))
        return max((_number(name) for name in names), default=0)

    def _start_of(self, number: int) -> str | None:
        """The checkpoint an incarnation started from, "" for none, None when it never got that far."""
        path = os.path.join(self.incarnation_path(number), "_start")
        if not os.path.exists(path):
            return None
        content = read_document(path, "start", "Restore it from a copy; it says from which checkpoint the job went on")
        return str(content["restored_from"] or "")

    def checkpoints(self, incarnation: int) -> list[str]:
        """The paths of an incarnation's completed checkpoints, oldest first."""
        path = self.incarnation_path(incarnation)
        return [os.path.join(path, n) for n in sorted(filter(CHECKPOINT.fullmatch, os.listdir(path)), key=_number)]

    def completed(self, incarnation: int) -> list[Completed]:
        """An incarnation's completed checkpoints, oldest first, as far as they can be read."""
        found = []
        for path in self.checkpoints(incarnation):
            try:
                found.append(self._completed_at(path))
            except RestoreError as error:
                log.warning("an older checkpoint cannot be used any more: %s", error)
        return found

    def _completed_at(self, path: str) -> Completed:
        completed = read_completed(path)
        metadata = completed.metadata
        if metadata.job_id != self.job_id:
            raise RestoreError(
                f"checkpoint {path} belongs to the job {metadata.job_name!r} with id {metadata.job_id}, not to {self.job_id}, "
                f"in whose directory it is. Move it away if it was copied here by mistake"
            )
        return completed


class Incarnation:
    """The right to write: one start of a job."""

    def __init__(self, directory: JobDirectory, number: int, start: Completed | None) -> None:
        self.directory = directory
        self.number = number
        self.start = start
        self.path = directory.incarnation_path(number)

    def begin(self, checkpoint: int) -> str:
        """Make the pending directory of a checkpoint.

        :raises SupersededError: a newer incarnation has fenced this one.
        """
        path = os.path.join(self.path, "pending", str(checkpoint))
        try:
            os.mkdir(path)
        except FileNotFoundError:
            raise self.superseded() from None
        return path

    def complete(self, metadata: CheckpointMetadata) -> Completed:
        """The commit point: the checkpoint exists from the rename on, and not before.

        :raises SupersededError: a newer incarnation has fenced this one; the checkpoint does not exist.
        """
        pending = os.path.join(self.path, "pending", str(metadata.checkpoint))
        final = os.path.join(self.path, f"chk-{metadata.checkpoint}")
        try:
            write_durable(os.path.join(pending, METADATA), encode(metadata))
            crash_point("before-rename")
            os.rename(pending, final)
        except FileNotFoundError:
            raise self.superseded() from None
        sync_directory(self.path)
        crash_point("after-rename")
        return Completed(final, metadata, confirmed=False)

    def drop_pending(self, checkpoint: int) -> None:
        shutil.rmtree(os.path.join(self.path, "pending", str(checkpoint)), ignore_errors=True)

    def check(self) -> None:
        """Raise SupersededError when a newer incarnation has fenced this one."""
        if not os.path.isdir(os.path.join(self.path, "pending")):
            raise self.superseded()

    def superseded(self) -> SupersededError:
        newest = max(self.directory.incarnations(), default=self.number)
        return SupersededError(
            f"incarnation {self.number} of this job was superseded by incarnation {newest} in {self.directory.path}: another "
            f"driver has taken the job over, and this one must not go on"
        )


def confirm(completed: Completed) -> None:
    """Note that a checkpoint's output is committed, so that recovery need not commit it again."""
    with contextlib.suppress(FileNotFoundError):  # a successor has dropped the checkpoint meanwhile
        replace_durable(os.path.join(completed.path, CONFIRMED), b"")


def write_exclusive(path: str, data: bytes) -> None:
    """Create a file with all of its content or not at all; FileExistsError when it is there."""
    temporary = f"{path}.{uuid.uuid4().hex}"
    write_durable(temporary, data)
    try:
        os.link(temporary, path)
    finally:
        os.unlink(temporary)
    sync_directory(os.path.dirname(path))


def _number(name: str) -> int:
    return int(name.rpartition("-")[2])
