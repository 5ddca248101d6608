"""A completed checkpoint and where it is."""

from __future__ import annotations

from dataclasses import dataclass

from firesteel.common.storage import Storage, open_storage, reason
from firesteel.coordinator.engine import FileHandle
from firesteel.coordinator.metadata import METADATA, CheckpointMetadata, read
from firesteel.errors import RestoreError

CONFIRMED = "_confirmed"


@dataclass(frozen=True)
class Completed:
    """A checkpoint that a job can go on from."""

    storage: Storage  # of its job or, if it is a savepoint, its own: names of its state files are relative to that
    folder: str
    metadata: CheckpointMetadata
    confirmed: bool  # its output is committed

    @property
    def path(self) -> str:
        """As people write it."""
        return self.storage.at(self.folder)

    def owes_output(self) -> bool:
        """Whether there is output that it promised and nobody has committed yet."""
        return not self.confirmed and any(self.metadata.committables.values())

    def problem(self) -> str | None:
        """Why it cannot be restored, as far as its files' sizes tell; None if they are all there."""
        for chain in self.metadata.state:
            for handle in chain:
                path = self.file_path(handle)
                try:
                    size = self.storage.size(handle["file"])
                except OSError as error:
                    return f"state file {path} cannot be read: {reason(error)}"
                if size != handle["size"]:
                    return f"state file {path} has {size} bytes instead of {handle['size']}"
        return None

    def file_path(self, handle: FileHandle) -> str:
        return self.storage.at(handle["file"])


def read_completed(storage: Storage, folder: str) -> Completed:
    """The checkpoint in that folder of a job's storage.

    :raises RestoreError: missing, damaged, or of a newer format.
    """
    metadata = read(storage, folder)
    confirmed = metadata.savepoint or storage.exists(f"{folder}/{CONFIRMED}")
    return Completed(storage, folder, metadata, confirmed)


def locate(location: str) -> Completed:
    """The checkpoint or savepoint that a person means: its directory or its `_metadata` file, as a path or URI.

    :raises RestoreError: there is none, or it cannot be restored.
    """
    storage, folder = _find(location)
    found = read_completed(storage, folder)
    problem = found.problem()
    if problem is not None:
        advice = "Checkpoints share state files, so they are copied and moved together with their job's directory"
        if found.metadata.savepoint:
            advice = "A savepoint is copied and moved with everything in its directory. Use another copy of it, or another one"
        kind = "savepoint" if found.metadata.savepoint else "checkpoint"
        raise RestoreError(f"{kind} {found.path} cannot be restored: {problem}. {advice}")
    return found


def _find(location: str) -> tuple[Storage, str]:
    """The storage of a checkpoint's job, and the checkpoint's folder in it; a savepoint's own storage, and no folder."""
    given = open_storage(location)
    if given.name == METADATA:
        given = given.above()
    try:
        given.check_readable()
        found = given.exists(METADATA)
    except FileNotFoundError as error:
        raise RestoreError(f"there is no checkpoint {given}: no such file or directory") from error
    except NotADirectoryError as error:
        raise _no_checkpoint(given) from error
    except OSError as error:
        raise RestoreError(f"checkpoint {given} cannot be read: {reason(error)}") from error
    if not found:
        raise _no_checkpoint(given)
    given = given.resolved()  # state files are found from where it really is
    if read(given, "").savepoint:
        return given, ""
    return given.above().above(), f"{given.above().name}/{given.name}"


def _no_checkpoint(given: Storage) -> RestoreError:
    return RestoreError(
        f"{given} is no checkpoint: that is a directory with a {METADATA} file in it, such as "
        f"<checkpoints>/<job>/inc-1/chk-5 or <savepoints>/savepoint-1d13d0-5f0c6c3ad1b9. See which checkpoints there are with: "
        f"firesteel checkpoints <checkpoints>"
    )
