"""Starting from a checkpoint of one's choice: it becomes the first checkpoint of the incarnation that starts from it.

Its state files are linked, or copied where links cannot go, into the incarnation's own folder, and its metadata is
written anew with a number higher than any before. So it does not matter whose checkpoint it was: whatever becomes of the
original, and whoever deletes it meanwhile, the job has its own, and every later rule (which checkpoint is the newest, what
is retained, whose files are whose) holds without exceptions.
"""

from __future__ import annotations

import logging
import posixpath
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from firesteel.common.crashpoints import crash_point
from firesteel.common.storage import reason
from firesteel.coordinator.completed import CONFIRMED, Completed
from firesteel.coordinator.engine import FileHandle
from firesteel.errors import RestoreError

if TYPE_CHECKING:
    from firesteel.coordinator.lineage import Incarnation

log = logging.getLogger("firesteel")

IMPORTED_FROM, WAS_SAVEPOINT = "imported_from", "was_savepoint"


def check_importable(found: Completed, *, leave_output: bool) -> None:
    """Output that is not committed yet stays with the job that made it, which alone knows where it is.

    :raises RestoreError: there is such output, and it is not to be left behind.
    """
    if found.owes_output() and not leave_output:
        raise RestoreError(
            f"checkpoint {found.path} holds output of job {found.metadata.job_name!r} that is not committed yet: starting "
            f"elsewhere from it would leave that output out. Run that job once more, which commits it, or start from an "
            f"older checkpoint, or leave it out with --allow-non-restored-state"
        )


def import_checkpoint(found: Completed, incarnation: Incarnation, claimed: str = "") -> Completed:
    """Make a checkpoint the first one of an incarnation that was just claimed.

    :param claimed: where it is, if it is a savepoint that goes when this copy goes.
    """
    directory = incarnation.directory
    number = max(found.metadata.checkpoint, directory.newest_number() + 1)
    state = [[_imported(found, handle, incarnation) for handle in chain] for chain in found.metadata.state]
    directory.storage.sync(f"{incarnation.folder}/state")
    crash_point("import-before-metadata")
    pending = incarnation.begin(number)
    directory.storage.write(f"{pending}/{CONFIRMED}", b"")  # either its output is committed, or it is left behind
    completed = incarnation.complete(
        replace(
            found.metadata,
            job_id=directory.job_id,
            job_name=directory.job_name,
            checkpoint=number,
            incarnation=incarnation.number,
            created_ms=int(time.time() * 1000),
            state=state,
            committables={},
            statistics={IMPORTED_FROM: found.path, WAS_SAVEPOINT: found.metadata.savepoint},
            savepoint=False,
            job_directory="",
            claimed=claimed,
        )
    )
    _warn(found, incarnation, number)
    return replace(completed, confirmed=True)


def _imported(found: Completed, handle: FileHandle, incarnation: Incarnation) -> FileHandle:
    """A state file under this incarnation's directory. Its name has a uuid in it, so it is free, or is this file."""
    storage, source = incarnation.directory.storage, handle["file"]
    name = f"{incarnation.folder}/state/{posixpath.basename(source)}"
    try:
        if not storage.exists(name):  # it may be in the chains of several slots
            storage.take(name, found.storage, source)
    except OSError as error:
        raise RestoreError(
            f"state file {found.file_path(handle)} of checkpoint {found.path} cannot be taken over into {incarnation.path}: "
            f"{reason(error)}"
        ) from error
    return {**handle, "file": name}


def _warn(found: Completed, incarnation: Incarnation, number: int) -> None:
    if found.metadata.job_id != incarnation.directory.job_id:
        kind = "savepoint" if found.metadata.savepoint else "checkpoint"
        log.info("the job starts from %s, a %s of job '%s'", found.path, kind, found.metadata.job_name)
    elif number > found.metadata.checkpoint + 1:
        log.warning(
            "the job goes back to checkpoint %d (%s) from checkpoint %d: what it wrote after checkpoint %d stays where it is, "
            "and what it reads again it will write again",
            found.metadata.checkpoint, found.path, number - 1, found.metadata.checkpoint,
        )  # fmt: skip
