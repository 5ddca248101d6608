"""Which checkpoints there are below a directory, for people and scripts. Nothing is changed, and nothing unpickled."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from firesteel.coordinator.completed import CHECKPOINT, INCARNATION, Completed, local_path, read_completed
from firesteel.coordinator.documents import read_document
from firesteel.coordinator.importing import IMPORTED_FROM
from firesteel.errors import ConfigurationError, RestoreError
from firesteel.state.files import StateFile

_DEEPEST = 3  # how far below the given directory a job's may be


@dataclass(frozen=True)
class ListedCheckpoint:
    """What there is to say about a checkpoint. None: it could not be read."""

    job_name: str
    job_id: str
    incarnation: int
    checkpoint: int
    path: str
    created_ms: int | None = None
    kind: str | None = None  # checkpoint, final, or imported: it was started from
    size: int | None = None
    duration_ms: int | None = None
    confirmed: bool | None = None  # its output is committed
    problem: str | None = None  # why it cannot be restored


def list_checkpoints(location: str, *, verify: bool = False) -> list[ListedCheckpoint]:
    """All checkpoints below a directory: of all jobs, of one, of one incarnation, or a single one. Oldest first.

    :param verify: read every state file and compare its checksums; without that only their sizes.
    :raises ConfigurationError: there is no such directory, or it cannot be read.
    """
    root = local_path(location)
    try:
        os.listdir(root)
        jobs = list(_job_directories(root, 0)) or _job_above(root)
        found = [one for job in jobs for one in _of_job(job, verify)]
    except OSError as error:
        raise ConfigurationError(f"{error.filename or root} cannot be read: {error.strerror}") from None
    return [one for one in found if os.path.join(one.path, "").startswith(os.path.join(root, ""))]


def _job_directories(path: str, depth: int) -> Iterator[str]:
    if os.path.exists(os.path.join(path, "_job")):
        yield path
    elif depth < _DEEPEST:
        for entry in sorted(os.scandir(path), key=lambda entry: entry.name):
            if entry.is_dir(follow_symlinks=False):
                yield from _job_directories(entry.path, depth + 1)


def _job_above(path: str) -> list[str]:
    for above in (os.path.dirname(path), os.path.dirname(os.path.dirname(path))):
        if os.path.exists(os.path.join(above, "_job")):
            return [above]
    return []


def _of_job(path: str, verify: bool) -> Iterator[ListedCheckpoint]:
    try:
        job = read_document(os.path.join(path, "_job"), "job", "")
    except RestoreError:
        job = {"job_name": os.path.basename(path), "job_id": ""}
    for incarnation in _numbered(path, INCARNATION):
        folder = os.path.join(path, f"inc-{incarnation}")
        for number in _numbered(folder, CHECKPOINT):
            checkpoint = os.path.join(folder, f"chk-{number}")
            listed = ListedCheckpoint(job["job_name"], job["job_id"], incarnation, number, checkpoint)
            try:
                yield _described(listed, read_completed(checkpoint), verify)
            except RestoreError as error:
                yield replace(listed, problem=str(error))


def _numbered(path: str, pattern: re.Pattern[str]) -> list[int]:
    return sorted(int(match[1]) for match in map(pattern.fullmatch, os.listdir(path)) if match)


def _described(listed: ListedCheckpoint, found: Completed, verify: bool) -> ListedCheckpoint:
    metadata = found.metadata
    kind = "final" if metadata.final else "imported" if IMPORTED_FROM in metadata.statistics else "checkpoint"
    return replace(
        listed,
        created_ms=metadata.created_ms,
        kind=kind,
        size=metadata.size(),
        duration_ms=metadata.statistics.get("duration_ms"),
        confirmed=found.confirmed,
        problem=found.problem() or (_damage(found) if verify else None),
    )


def _damage(found: Completed) -> str | None:
    for chain in found.metadata.state:
        for handle in chain:
            try:
                with StateFile(found.file_path(handle), handle["checksum"]) as file:
                    file.verify()
            except RestoreError as error:
                return str(error)
    return None
