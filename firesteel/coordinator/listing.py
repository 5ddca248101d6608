"""Which checkpoints and savepoints there are below a directory, for people and scripts. Nothing is changed, and nothing
unpickled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from firesteel.common.storage import Storage, open_storage, reason
from firesteel.coordinator.completed import Completed, read_completed
from firesteel.coordinator.documents import read_document
from firesteel.coordinator.fencing import folder_of
from firesteel.coordinator.importing import IMPORTED_FROM
from firesteel.coordinator.lineage import fencing_of
from firesteel.coordinator.savepoint import is_savepoint
from firesteel.errors import ConfigurationError, RestoreError
from firesteel.state.chains import verify as verify_file

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
    kind: str | None = None  # checkpoint, final, savepoint, or imported: it was started from
    size: int | None = None
    duration_ms: int | None = None
    confirmed: bool | None = None  # its output is committed
    problem: str | None = None  # why it cannot be restored


def list_checkpoints(location: str, *, verify: bool = False) -> list[ListedCheckpoint]:
    """All checkpoints below a directory: of all jobs, of one, of one incarnation, or a single one. Oldest first. And all
    savepoints, after them.

    :param verify: read every state file and compare its checksums; without that only their sizes.
    :raises ConfigurationError: there is no such directory, or it cannot be read.
    """
    storage = open_storage(location)
    try:
        storage.check_readable()
        found = list(_directories(storage, 0))
        jobs = [(each, "") for each in found if each.exists("_job")] or ([] if found else _job_above(storage))
        checkpoints = [one for job, within in jobs for one in _of_job(job, within, verify)]
        savepoints = [_savepoint(each, verify) for each in found if not each.exists("_job")]
        return checkpoints + sorted(savepoints, key=lambda one: (one.job_name, one.job_id, one.created_ms or 0))
    except OSError as error:
        raise ConfigurationError(f"{error.filename or storage} cannot be read: {reason(error)}") from None


def _directories(storage: Storage, depth: int) -> Iterator[Storage]:
    """Those of jobs, and savepoints."""
    if storage.exists("_job") or is_savepoint(storage):
        yield storage
    elif depth < _DEEPEST:
        for folder in sorted(storage.folders()):
            yield from _directories(storage.below(folder), depth + 1)


def _savepoint(storage: Storage, verify: bool) -> ListedCheckpoint:
    try:
        found = read_completed(storage, "")
    except RestoreError as error:
        return ListedCheckpoint("", "", 0, 0, str(storage), kind="savepoint", problem=str(error))
    metadata = found.metadata
    listed = ListedCheckpoint(
        metadata.job_name, metadata.job_id, metadata.incarnation, metadata.checkpoint, str(storage)
    )
    return replace(_described(listed, found, verify), kind="savepoint")


def _job_above(storage: Storage) -> list[tuple[Storage, str]]:
    """The job that this is an incarnation or a checkpoint of, and which."""
    above = storage.above()
    if above.exists("_job"):
        return [(above, f"{storage.name}/")]
    if above.above().exists("_job"):
        return [(above.above(), f"{above.name}/{storage.name}/")]
    return []


def _of_job(storage: Storage, within: str, verify: bool) -> Iterator[ListedCheckpoint]:
    try:
        job = read_document(storage, "_job", "job", "")
    except RestoreError:
        job = {"job_name": storage.name, "job_id": ""}
    fencing = fencing_of(storage)
    for incarnation in reversed(fencing.incarnations()):
        for number in fencing.checkpoints(incarnation):
            folder = folder_of(incarnation, number)
            if not f"{folder}/".startswith(within):
                continue
            listed = ListedCheckpoint(job["job_name"], job["job_id"], incarnation, number, storage.at(folder))
            try:
                yield _described(listed, read_completed(storage, folder), verify)
            except RestoreError as error:
                yield replace(listed, problem=str(error))


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
                verify_file(found.storage, handle)
            except RestoreError as error:
                return str(error)
    return None
