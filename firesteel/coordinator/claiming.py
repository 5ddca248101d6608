"""Claiming a savepoint: the job that starts from it becomes its owner, and takes the place of the job that made it.

So it is deleted when the copy that the job started from is dropped, because newer checkpoints are there. And since an
owner is a successor, the other job must not go on beside it, writing the same output: it is refused while that job runs, and
else that job is fenced, as by a successor of its own, in case it runs where nobody sees it.

Without a claim nothing of this happens. Any number of jobs can start from a savepoint that is not claimed, and it is the
user's to delete.
"""

from __future__ import annotations

import logging
import posixpath

from firesteel.common.storage import MemoryStorage, open_storage, reason
from firesteel.coordinator.completed import Completed
from firesteel.coordinator.documents import encode_document, read_document
from firesteel.coordinator.driver_lock import DriverLock
from firesteel.coordinator.lineage import JobDirectory
from firesteel.coordinator.metadata import CheckpointMetadata, read
from firesteel.coordinator.savepoint import CLAIMED, remove
from firesteel.errors import ConfigurationError, FiresteelError, JobRunningError, RestoreError

log = logging.getLogger("firesteel")


def check_claimable(found: Completed, own: JobDirectory | None, job_name: str) -> None:
    """Whether a job may claim it, changing nothing.

    :param own: the job's directory, if it has one already.
    :raises FiresteelError: it may not.
    """
    if not found.metadata.savepoint:
        if own is not None and found.metadata.job_id == own.job_id:
            return  # they are its own
        raise RestoreError(
            f"{found.path} cannot be claimed: it is a checkpoint of job {found.metadata.job_name!r}, which shares state files "
            f"with others of that job. Start from it without a claim (NO_CLAIM), or claim a savepoint"
        )
    claimant = _claimant(found)
    if claimant is not None and (own is None or claimant["job_id"] != own.job_id):
        raise RestoreError(
            f"savepoint {found.path} cannot be claimed: it is claimed by job {claimant['job_name']!r} with id "
            f"{claimant['job_id']}, which will delete it. Use another savepoint or a copy of it"
        )
    maker = _maker(found, own)
    if maker is not None:
        with _locked(maker, found, job_name):
            pass


def claim(found: Completed, own: JobDirectory) -> str:
    """Become its owner. Done again by a start after one that died half way.

    :returns: what its copy notes, to be deleted by.
    :raises FiresteelError: the job may not.
    """
    check_claimable(found, own, own.job_name)
    if not found.metadata.savepoint:
        return ""
    maker = _maker(found, own)
    if maker is not None:
        with _locked(maker, found, own.job_name):
            number = maker.fencing.claim()
            for older in maker.incarnations():
                if older < number:
                    maker.fencing.fence(older, number)
    content = {"job_id": own.job_id, "job_name": own.job_name}
    try:
        found.storage.create(CLAIMED, encode_document("claim", content))
    except FileExistsError:
        check_claimable(found, own, own.job_name)  # it is this job's, or somebody was faster
    except OSError as error:
        raise ConfigurationError(
            f"savepoint {found.path} cannot be claimed, because it could not be deleted later: {reason(error)}. Start from it "
            f"without a claim (NO_CLAIM)"
        ) from error
    return found.path


def delete_claimed(metadata: CheckpointMetadata) -> None:
    """A copy of a claimed savepoint is about to be dropped, so nobody needs the original. Nothing depends on its going."""
    if not metadata.claimed:
        return
    try:
        storage = open_storage(metadata.claimed)
        found = read(storage, "")
        if not found.savepoint or _names(found) != _names(metadata):
            raise RestoreError("something else is there now")
        remove(storage)
    except (OSError, FiresteelError) as error:
        log.warning("the claimed savepoint %s is not needed any more, but was not deleted: %s", metadata.claimed, error)


def _names(metadata: CheckpointMetadata) -> set[str]:
    """State files' names are unique and stay with them."""
    return {posixpath.basename(file) for file in metadata.files()}


def _claimant(found: Completed) -> dict[str, str] | None:
    if not found.storage.exists(CLAIMED):
        return None
    content: dict[str, str] = read_document(
        found.storage, CLAIMED, "claim", "Delete it if nobody has claimed the savepoint"
    )
    return content


def _maker(found: Completed, own: JobDirectory | None) -> JobDirectory | None:
    """The job that made a savepoint, if it is another one and still there."""
    metadata = found.metadata
    if not metadata.job_directory or (own is not None and metadata.job_id == own.job_id):
        return None
    storage = open_storage(metadata.job_directory)
    try:
        if not storage.exists("_job"):
            return None
        job = read_document(storage, "_job", "job", "Restore it from a copy")
    except OSError as error:
        raise RestoreError(
            f"savepoint {found.path} cannot be claimed: nobody can tell if the job that made it still runs, since its "
            f"directory {storage} cannot be read: {reason(error)}. Start from it without a claim (NO_CLAIM)"
        ) from error
    if job["job_id"] != metadata.job_id or isinstance(storage, MemoryStorage):
        return None
    return JobDirectory(storage, job["job_id"], job["job_name"])


def _locked(maker: JobDirectory, found: Completed, job_name: str) -> DriverLock:
    """Nobody can start it meanwhile."""
    lock = DriverLock()
    try:
        lock.acquire(maker)
    except JobRunningError as error:
        raise JobRunningError(
            f"savepoint {found.path} cannot be claimed by job {job_name!r} while the job that made it runs: both would go on "
            f"from there and write the same output. End that one first (stop, or cancel), or start beside it without a claim "
            f"(NO_CLAIM). {error}"
        ) from None
    return lock
