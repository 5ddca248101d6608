"""Files that survive a crash: written, synced, and only then given their name."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from firesteel.common.crashpoints import crash_point


def write_durable(path: str, data: bytes) -> None:
    """Create a file that must not exist yet, synced together with its directory."""
    with naming(path), open(path, "xb") as file:
        crash_point("durable-file-empty", file, data)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    sync_directory(os.path.dirname(path))


def replace_durable(path: str, data: bytes) -> None:
    """Give `path` this content at once or not at all."""
    temporary = f"{path}.{os.getpid()}.tmp"
    with naming(temporary), open(temporary, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    crash_point("durable-before-replace")
    os.replace(temporary, path)
    sync_directory(os.path.dirname(path))


@contextlib.contextmanager
def naming(path: str) -> Iterator[None]:
    """Errors of writing, syncing and closing do not say which file it was; a full disk is one of several."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or path
        raise


def sync_directory(path: str) -> None:
    """Make renames and new names in a directory durable."""
    descriptor = os.open(path or ".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_file(path: str) -> None:
    """If it is there."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
