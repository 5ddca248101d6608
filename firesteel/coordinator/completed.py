"""A completed checkpoint and where it is."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from urllib.parse import unquote, urlparse

from firesteel.coordinator.engine import FileHandle
from firesteel.coordinator.metadata import METADATA, CheckpointMetadata, read
from firesteel.errors import ConfigurationError, RestoreError

CONFIRMED = "_confirmed"
INCARNATION = re.compile(r"inc-(\d+)")
CHECKPOINT = re.compile(r"chk-(\d+)")


@dataclass(frozen=True)
class Completed:
    """A checkpoint that a job can go on from."""

    path: str
    metadata: CheckpointMetadata
    confirmed: bool  # its output is committed

    @property
    def job_directory(self) -> str:
        """What the paths of its state files are relative to."""
        return os.path.dirname(os.path.dirname(self.path))

    def file_path(self, handle: FileHandle) -> str:
        return os.path.join(self.job_directory, handle["file"])

    def owes_output(self) -> bool:
        """Whether there is output that it promised and nobody has committed yet."""
        return not self.confirmed and any(self.metadata.committables.values())

    def problem(self) -> str | None:
        """Why it cannot be restored, as far as its files' sizes tell; None if they are all there."""
        for chain in self.metadata.state:
            for handle in chain:
                path = self.file_path(handle)
                try:
                    size = os.stat(path).st_size
                except OSError as error:
                    return f"state file {path} cannot be read: {error.strerror}"
                if size != handle["size"]:
                    return f"state file {path} has {size} bytes instead of {handle['size']}"
        return None


def read_completed(path: str) -> Completed:
    """The checkpoint in that directory.

    :raises RestoreError: missing, damaged, or of a newer format.
    """
    return Completed(path, read(path), os.path.exists(os.path.join(path, CONFIRMED)))


def locate(location: str) -> Completed:
    """The checkpoint that a person means: its directory or its `_metadata` file, as a path or `file://` URI.

    :raises RestoreError: there is none, or it cannot be restored.
    """
    path = local_path(location)
    if os.path.basename(path) == METADATA:
        path = os.path.dirname(path)
    if not os.path.exists(path):
        raise RestoreError(f"there is no checkpoint {path}: no such file or directory")
    if not os.path.isdir(path) or (os.access(path, os.X_OK) and not os.path.exists(os.path.join(path, METADATA))):
        raise RestoreError(
            f"{path} is no checkpoint: that is a directory with a {METADATA} file in it, such as "
            f"<checkpoints>/<job>/inc-1/chk-5. See which there are with: firesteel checkpoints <checkpoints>"
        )
    found = read_completed(os.path.realpath(path))  # files are found from where it really is
    problem = found.problem()
    if problem is not None:
        raise RestoreError(
            f"checkpoint {path} cannot be restored: {problem}. Checkpoints share state files with each other, so they are "
            f"copied and moved together with their job's directory"
        )
    return found


def local_path(location: str) -> str:
    """A directory given as a path or `file://` URI."""
    parsed = urlparse(location)
    if parsed.scheme in ("", "file"):
        return os.path.abspath(unquote(parsed.path) if parsed.scheme else location)
    raise ConfigurationError(f"{location}: only paths and file:// URIs can hold checkpoints in this version")
