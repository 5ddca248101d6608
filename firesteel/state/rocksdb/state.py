"""A slot's database and everything around it."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence

from firesteel.common.storage import Storage
from firesteel.errors import RestoreError, StateError
from firesteel.graph.keys import KeyGroups
from firesteel.graph.settings import RocksDBSettings
from firesteel.state.origin import FileHandle
from firesteel.state.rocksdb.cache import ObjectCache
from firesteel.state.rocksdb.database import Database
from firesteel.state.rocksdb.directories import LocalDirectory
from firesteel.state.rocksdb.files import download, upload
from firesteel.state.rocksdb.store import RocksDBStore
from firesteel.state.store import Store


class RocksDBState:
    """The NativeState of a slot.

    :param base: the directory on this machine to make one's own in.
    :param restored: the database's files of the checkpoint that the job goes on from, if it had one.
    :param uids: the operators that have state here. What the database has of others is dropped.
    """

    def __init__(
        self,
        settings: RocksDBSettings,
        base: str,
        job_id: str,
        slot: int,
        storage: Storage,
        restored: Sequence[FileHandle],
        uids: Collection[str],
        on_restored: Callable[[int], None] | None = None,
    ) -> None:
        self._slot, self._threads = slot, settings.transfer_threads
        self._completed = -1
        self._directory = LocalDirectory.create(base, job_id, slot)
        try:
            if restored:
                download(storage, restored, self._directory.database, self._left_behind(), on_restored)
            self._directory.sweep()
            self._database = _open(self._directory.database, settings, storage if restored else None)
        except BaseException:
            self._directory.remove()
            raise
        for name in self._database.tables():
            if name[0] not in uids:
                self._database.drop(name)
        self._cache = ObjectCache(self._database, settings.object_cache_size)

    def _left_behind(self) -> list[str]:
        """Where a dead process of this slot may have left files of the checkpoint."""
        found = []
        for directory in self._directory.left_behind:
            names = sorted(os.listdir(directory)) if os.path.isdir(directory) else []
            found += [os.path.join(directory, name) for name in names if name == "db" or name.startswith("chk-")]
        return found

    def store(self, uid: str, key_groups: KeyGroups) -> Store:
        return RocksDBStore(key_groups, self._cache, uid)

    def settle(self) -> None:
        self._cache.settle()

    def barrier(self, checkpoint: int) -> None:
        self._cache.write_back()
        self._cache.settle()
        self._directory.remove_checkpoint(checkpoint)
        self._database.checkpoint(self._directory.checkpoint(checkpoint))

    def write(self, checkpoint: int, storage: Storage, folder: str, base: Sequence[FileHandle]) -> list[FileHandle]:
        local = self._directory.checkpoint(checkpoint)
        prefix = f"slot-{self._slot}-chk-{checkpoint}"
        try:
            handles = upload(local, storage, folder, prefix, base, self._threads)
        except BaseException:
            self._directory.remove_checkpoint(checkpoint)
            raise
        self._forget_before(checkpoint)  # links to files that the database has no more would keep them on the disk
        return handles

    def completed(self, checkpoint: int) -> None:
        self._completed = checkpoint
        self._forget_before(checkpoint)

    def _forget_before(self, checkpoint: int) -> None:
        """Apart from the last completed one, which a successor of this process can use."""
        for number in self._directory.checkpoints():
            if number < checkpoint and number != self._completed:
                self._directory.remove_checkpoint(number)

    def close(self) -> None:
        self._database.close()
        self._directory.remove()

    def discard(self) -> None:
        self._directory.remove()


def _open(path: str, settings: RocksDBSettings, storage: Storage | None) -> Database:
    try:
        return Database(path, settings)
    except StateError as error:
        if storage is None:
            raise
        raise RestoreError(f"the checkpoint's RocksDB files in {storage} are no database: {error}") from error
