"""What a savepoint is: a directory of its own, with everything in it, that can be moved anywhere and restored any number
of times.

    savepoint-1d13d0-5f0c6c3ad1b9/
        _metadata              as a checkpoint's, marked as a savepoint's; there is no savepoint before this is there
        slot-0-<uuid>.state    all state of slot 0; `_metadata` names it by its place in this directory

No output is in doubt in a savepoint, so whoever goes on from it has nothing to commit.
"""

from __future__ import annotations

import re
import secrets
import time
import uuid
from collections.abc import Sequence
from dataclasses import replace

from firesteel.common.crashpoints import crash_point
from firesteel.common.storage import Storage, open_storage, reason
from firesteel.coordinator.engine import FileHandle
from firesteel.coordinator.metadata import METADATA, CheckpointMetadata, encode, read
from firesteel.errors import ConfigurationError, RestoreError

_FOLDER = re.compile(r"savepoint-[0-9a-f]{6}-[0-9a-f]{12}")
_STATE = re.compile(r"\.?slot-\d+-[0-9a-f]{32}\.state(\.[0-9a-f]{32})?")
CLAIMED = "_claimed"


def new_folder(job_id: str) -> str:
    """What a new savepoint's directory is called."""
    return f"savepoint-{job_id[:6]}-{secrets.token_hex(6)}"


def new_state_file(slot: int) -> str:
    """Unique wherever it is taken to, as all names of state files."""
    return f"slot-{slot}-{uuid.uuid4().hex}.state"


def publish(
    storage: Storage,
    metadata: CheckpointMetadata,
    state: Sequence[Sequence[FileHandle]],
    job_directory: str,
    took_s: float,
) -> CheckpointMetadata:
    """State files are there: make a savepoint of them, at once or not at all.

    :param metadata: of the checkpoint that it is made of, whose output is committed.
    :param state: for each slot its file, if it has any state.
    :param job_directory: where the job has its checkpoints, as people write it.
    """
    storage.sync()
    crash_point("savepoint-before-metadata")
    savepoint = replace(
        metadata,
        created_ms=int(time.time() * 1000),
        state=state,
        committables={},
        statistics={"duration_ms": int(took_s * 1000)},
        given_up=[],  # of those nothing is in these files
        savepoint=True,
        job_directory=job_directory,
        claimed="",
    )
    storage.replace(METADATA, encode(savepoint))
    crash_point("savepoint-after-metadata")
    return savepoint


def dispose(location: str) -> None:
    """Delete a savepoint, or what is left of one.

    :param location: its directory or its `_metadata` file, as a path or URI.
    :raises RestoreError: it is none; nothing was deleted.
    :raises ConfigurationError: it cannot be deleted.
    """
    storage = open_storage(location)
    if storage.name == METADATA:
        storage = storage.above()
    try:
        storage.check_readable()
        _check_savepoint(storage)
        remove(storage)
    except FileNotFoundError as error:
        raise RestoreError(f"there is no savepoint {storage}: no such file or directory") from error
    except OSError as error:
        raise ConfigurationError(f"savepoint {storage} cannot be deleted: {reason(error)}") from error


def remove(storage: Storage) -> None:
    """Its metadata first: without that it is no savepoint any more, but one that can be recognised and removed."""
    storage.delete(METADATA)
    crash_point("savepoint-half-removed")
    names = storage.names()
    for name in names:
        storage.delete(name)
    storage.delete_folder()
    left = storage.names()
    if left:
        raise OSError(f"{storage.at(left[0])} is still there")


def is_savepoint(storage: Storage) -> bool:
    """Whether there is one, or what is left of one."""
    try:
        _check_savepoint(storage)
    except RestoreError:
        return False
    return True


def _check_savepoint(storage: Storage) -> None:
    names, folders = storage.names(), storage.folders()
    try:
        metadata = read(storage, "") if METADATA in names else None
    except RestoreError:
        metadata = None  # damaged; what else is there tells what it was
    if metadata is not None and not metadata.savepoint:
        raise RestoreError(
            f"{storage} is a checkpoint of job {metadata.job_name!r} and no savepoint: jobs delete their checkpoints by "
            f"themselves. Nothing was deleted"
        )
    ours = [name for name in names if name.lstrip(".").startswith((METADATA, CLAIMED)) or _STATE.fullmatch(name)]
    known = metadata is not None or _FOLDER.fullmatch(storage.name) or any(map(_STATE.fullmatch, names))
    if folders or len(ours) < len(names) or not known:
        raise RestoreError(
            f"{storage} is no savepoint: that is a directory with a {METADATA} file and state files in it, and nothing else. "
            f"Nothing was deleted"
        )
