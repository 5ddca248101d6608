"""A database as files of a checkpoint, and back.

A checkpoint of the database is a directory of hard links, made in no time. Most of its files were part of the checkpoint
before it and are in the storage already: table files never change. So what is written grows with what changed.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import uuid
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from xxhash import xxh3_64

from firesteel.common.crashpoints import crash_point
from firesteel.common.storage import LocalStorage, Storage, reason
from firesteel.errors import RestoreError
from firesteel.state.chains import ROCKSDB
from firesteel.state.origin import FileHandle

_PIECE = 1 << 20
_THREADS = 4
_CONFIG = "rocksdict-config.json"


def upload(
    local: str, storage: Storage, folder: str, prefix: str, base: Sequence[FileHandle], threads: int = _THREADS
) -> list[FileHandle]:
    """Write a database's checkpoint out, durably.

    :param local: the directory with its hard links.
    :param prefix: what the names of its files begin with in the storage's folder.
    :param base: the handles of the last completed checkpoint, whose files are there already.
    """
    known = {handle["name"]: handle for handle in base if handle.get("kind") == ROCKSDB}
    source = LocalStorage(local)
    new: list[str] = []

    def written(name: str) -> FileHandle:
        if name.endswith(".sst") and name in known and known[name]["size"] == source.size(name):
            return known[name]
        size, checksum = _checksum(source.path(name))
        file = f"{folder}/{prefix}-{uuid.uuid4().hex}{os.path.splitext(name)[1] or '.manifest'}"
        new.append(file)
        if name.endswith(".sst"):  # synced by RocksDB, so that a link to it is as durable as a copy
            storage.take(file, source, name)
        else:
            storage.write(file, source.read(name))
        crash_point("slot-mid-upload")
        return {"file": file, "size": size, "checksum": checksum, "kind": ROCKSDB, "name": name}

    try:
        with ThreadPoolExecutor(threads) as pool:
            handles = list(pool.map(written, sorted(filter(_is_data, source.names()))))
        storage.sync(folder)
    except OSError:  # the disk may be full, and what nobody will refer to would keep it so
        for file in new:
            with contextlib.suppress(OSError):
                storage.delete(file)
        raise
    return handles


def download(
    storage: Storage,
    handles: Iterable[FileHandle],
    target: str,
    local: Sequence[str] = (),
    on_restored: Callable[[int], None] | None = None,
) -> None:
    """Make a directory that a database can be opened in.

    :param local: directories that may have some of the files too.
    :param on_restored: told how large each file was.
    :raises RestoreError: a file is missing or damaged.
    """
    os.makedirs(target, exist_ok=True)
    place = LocalStorage(target)

    def fetch(handle: FileHandle) -> FileHandle:
        name = handle["name"]
        if os.path.basename(name) != name or not _is_data(name):
            raise RestoreError(
                f"state file {storage.at(handle['file'])} is called {name!r}, which no file of a RocksDB is"
            )
        if not _linked(handle, local, place.path(name)):
            _fetch(handle, storage, place, name)
        return handle

    names = []
    with ThreadPoolExecutor(_THREADS) as pool:
        for handle in pool.map(fetch, handles):
            names.append(handle["name"])
            if on_restored is not None:
                on_restored(handle["size"])
    manifests = [name for name in names if name.startswith("MANIFEST-")]
    if len(manifests) != 1:
        raise RestoreError(f"the checkpoint of a RocksDB in {storage} has {len(manifests)} manifests instead of one")
    _point_at(target, manifests[0])


def verify(storage: Storage, handle: FileHandle) -> None:
    """Compare a file in the storage with what the checkpoint recorded.

    :raises RestoreError: it is missing or damaged.
    """
    try:
        with storage.open(handle["file"]) as file:
            hashed = xxh3_64()
            while piece := file.read(_PIECE):
                hashed.update(piece)
    except OSError as error:
        raise _unreadable(storage, handle, error) from error
    _check(storage, handle, hashed.hexdigest())


def _linked(handle: FileHandle, local: Sequence[str], path: str) -> bool:
    """Whether one of these directories has the very file, and it is under that path now."""
    if not handle["name"].endswith(".sst"):
        return False
    for directory in local:
        found = os.path.join(directory, handle["name"])
        try:
            if (handle["size"], handle["checksum"]) == _checksum(found):
                os.link(found, path)
                return True
        except OSError:
            continue
    return False


def _fetch(handle: FileHandle, storage: Storage, place: LocalStorage, name: str) -> None:
    try:
        if name.endswith(".sst"):
            place.take(name, storage, handle["file"])
        else:  # a link would do for table files only: nobody ever changes those
            with storage.open(handle["file"]) as source, open(place.path(name), "xb") as copy:
                shutil.copyfileobj(source, copy)
        checksum = _checksum(place.path(name))[1]
    except OSError as error:
        raise _unreadable(storage, handle, error) from error
    _check(storage, handle, checksum)


def _check(storage: Storage, handle: FileHandle, checksum: str) -> None:
    if checksum != handle["checksum"]:
        raise RestoreError(
            f"state file {storage.at(handle['file'])} is damaged: its checksum {checksum} is not {handle['checksum']}, which "
            f"the checkpoint recorded. Restore it from a copy or use another checkpoint"
        )


def _unreadable(storage: Storage, handle: FileHandle, error: OSError) -> RestoreError:
    return RestoreError(
        f"state file {storage.at(handle['file'])} cannot be read: {reason(error)}. Restore it from a copy or use another "
        f"checkpoint"
    )


def _checksum(path: str) -> tuple[int, str]:
    """A file's size and checksum."""
    hashed, size = xxh3_64(), 0
    with open(path, "rb") as file:
        while piece := file.read(_PIECE):
            hashed.update(piece)
            size += len(piece)
    return size, hashed.hexdigest()


def _is_data(name: str) -> bool:
    """Whether a file of a database is one of those that it is made of again; the others can be made anew."""
    return name.endswith(".sst") or name.startswith("MANIFEST-")


def _point_at(path: str, manifest: str) -> None:
    """Finish a directory with the files of a database, so that it can be opened."""
    with open(os.path.join(path, "CURRENT"), "w") as current:
        current.write(f"{manifest}\n")
    with open(os.path.join(path, _CONFIG), "w") as config:
        json.dump({"raw_mode": True, "prefix_extractors": {}}, config)
