"""A slot's state of one checkpoint: the files that its chain is made of, whatever kind they are.

A chain of a hashmap store is state files. One of a RocksDB store is the files of a database, then state files with what is in
memory whatever the store, and with timers that are due soon. No entry is in both, so their order does not matter.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from firesteel.common.storage import Storage
from firesteel.errors import RestoreError
from firesteel.state.files import Delta, StateFile
from firesteel.state.origin import FileHandle

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
    """The database's files; none of a hashmap store's chain."""
    return [handle for handle in chain if is_native(handle)]


def state_files(chain: Sequence[FileHandle]) -> list[FileHandle]:
    """The state files, oldest first."""
    return [handle for handle in chain if not is_native(handle)]


def deltas(storage: Storage, chain: Sequence[FileHandle], groups: Container[int] | None = None) -> Iterator[Delta]:
    """What a chain holds of these key groups (all: None), reading no more than that, to be applied one after the other.
    NO_GROUP is one as well.

    :raises RestoreError: a file is missing, damaged or of a newer format.
    """
    native = native_part(chain)
    if native:
        try:
            from firesteel.state.rocksdb.reading import native_deltas
        except ModuleNotFoundError as error:
            raise RestoreError(
                f"{storage.at(native[0]['file'])} is of a RocksDB: pip install firesteel[rocksdb]"
            ) from error
        yield from native_deltas(storage, native, groups)
    for handle in state_files(chain):
        with StateFile(handle["file"], handle["checksum"], storage) as file:
            yield from file.deltas(groups)


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
