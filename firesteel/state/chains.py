"""A slot's state of one checkpoint: the files that its chain is made of, whatever kind they are.

A chain of a hashmap store is state files. One of a RocksDB store is the files of a database, then state files with what is in
memory whatever the store, and with timers that are due soon. No entry is in both. But a timer that went from memory to the
database is removed in a state file, and is in the database: so state files are applied first, and databases to what they give.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from types import ModuleType

from firesteel.common.storage import Storage
from firesteel.errors import RestoreError
from firesteel.state.files import Delta, StateFile
from firesteel.state.origin import FileHandle
from firesteel.state.parts import PART, Part, wanted_of

ROCKSDB = "rocksdb"
"""The kind of a file handle that is part of a database; its `name` is what the file is called there."""


def is_native(handle: FileHandle) -> bool:
    """Whether a file is part of a database, and not a state file.

    :raises RestoreError: it is something that this firesteel does not know.
    """
    kind = handle.get("kind")
    if kind not in (None, ROCKSDB):
        raise RestoreError(
            f"state file {handle['file']} is of kind {kind!r}, which this firesteel does not know; install the one that "
            f"wrote the checkpoint, or a later one"
        )
    return kind == ROCKSDB


def native_part(chain: Sequence[FileHandle]) -> list[FileHandle]:
    """The files of databases; none of a hashmap store's chain."""
    return [handle for handle in chain if is_native(handle)]


def databases(chain: Sequence[FileHandle]) -> list[list[FileHandle]]:
    """The same, by database. After a change of parallelism there may be several, each with a part of its own, since no key
    group is in two."""
    return [list(files) for _, files in groupby(native_part(chain), lambda handle: handle.get(PART))]


def state_files(chain: Sequence[FileHandle]) -> list[FileHandle]:
    """The state files, oldest first."""
    return [handle for handle in chain if not is_native(handle)]


def units(chain: Sequence[FileHandle]) -> list[list[FileHandle]]:
    """What is read as one, in the order it is applied in: state files, oldest first, then databases. All handles of a unit have
    the same part."""
    return [*([handle] for handle in state_files(chain)), *databases(chain)]


def rocksdb_reading(storage: Storage, files: Sequence[FileHandle]) -> ModuleType:
    """What reads databases. Its package is an optional one.

    :raises RestoreError: it is not installed.
    """
    try:
        from firesteel.state.rocksdb import reading
    except ModuleNotFoundError as error:
        raise RestoreError(f"{storage.at(files[0]['file'])} is of a RocksDB: pip install firesteel[rocksdb]") from error
    return reading


def deltas(
    storage: Storage,
    chain: Sequence[FileHandle],
    mine: Part | None = None,
    on_read: Callable[[int], None] | None = None,
) -> Iterator[Delta]:
    """What a chain holds, to be applied one after the other.

    :param mine: read no more than that of it.
    :param on_read: told how much was read, piece by piece.
    :raises RestoreError: a file is missing, damaged or of a newer format.
    """
    for handle in state_files(chain):
        with StateFile(handle["file"], handle["checksum"], storage) as file:
            yield from file.deltas(_wanted(handle, mine))
        if on_read is not None:
            on_read(file.bytes_read)
    for files in databases(chain):
        yield from rocksdb_reading(storage, files).native_deltas(storage, files, _wanted(files[0], mine), on_read)


def _wanted(handle: FileHandle, mine: Part | None) -> Callable[[str, int], bool]:
    return wanted_of(handle) if mine is None else mine.within(handle).has


def verify(storage: Storage, handle: FileHandle) -> None:
    """Compare all of a file with its checksums.

    :raises RestoreError: it is missing or damaged.
    """
    if is_native(handle):
        from firesteel.state.rocksdb import files

        files.verify(storage, handle)
        return
    with StateFile(handle["file"], handle["checksum"], storage) as file:
        file.verify()
