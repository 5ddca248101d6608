"""Files in this process's memory: they are gone when it ends.

The driver keeps a job's checkpoints in one, if it is told to. Slots have no access to it. What a slot writes it sends to the
driver (`runtime/whole_state.py`), up to a limit, and what it is to restore comes to it inside the handles
(`coordinator/carrying.py`).
"""

from __future__ import annotations

import io
import threading
from typing import BinaryIO

from firesteel.common.storage.base import Storage


class MemoryStorage(Storage):
    """A dictionary of files.

    :param limit: how many bytes of state each slot may have in a checkpoint here.
    """

    uri = "memory:"  # of no use to another process, and refused there

    def __init__(self, limit: int = 5 * 1024 * 1024) -> None:
        self.limit = limit
        self._files: dict[str, bytes] = {}
        self._lock = threading.RLock()
        self._root = ""

    def __str__(self) -> str:
        return "the driver's memory"

    def at(self, name: str) -> str:
        return f"{self._root}{name} in {self}"

    def below(self, folder: str) -> MemoryStorage:
        return self._view(self._root + folder)

    def _view(self, root: str) -> MemoryStorage:
        view = MemoryStorage(self.limit)
        view._files, view._lock, view._root = self._files, self._lock, f"{root}/" if root else ""
        return view

    @property
    def name(self) -> str:
        return self._root.rstrip("/").rpartition("/")[2]

    def above(self) -> MemoryStorage:
        return self._view(self._root.rstrip("/").rpartition("/")[0])

    def same(self, name: str, other: Storage, other_name: str) -> bool:
        mine = isinstance(other, MemoryStorage) and other._files is self._files
        return mine and self.at(name) == other.at(other_name)

    def check_readable(self) -> None:
        """It is."""

    def check_writable(self) -> None:
        """It is."""

    # ---- reading

    def read(self, name: str) -> bytes:
        try:
            return self._files[self._root + name]
        except KeyError:
            raise FileNotFoundError(f"there is no {self.at(name)}") from None

    def open(self, name: str) -> BinaryIO:
        return io.BytesIO(self.read(name))

    def size(self, name: str) -> int:
        return len(self.read(name))

    def exists(self, name: str) -> bool:
        return self._root + name in self._files

    def names(self, folder: str = "") -> list[str]:
        return list({name.partition("/")[0] for name in self._below(folder)})

    def folders(self, folder: str = "") -> list[str]:
        return list({name.partition("/")[0] for name in self._below(folder) if "/" in name})

    def _below(self, folder: str) -> list[str]:
        prefix = f"{self._root}{folder}/" if folder else self._root
        with self._lock:
            return [name[len(prefix) :] for name in self._files if name.startswith(prefix)]

    # ---- writing: there is nothing to make durable

    def write(self, name: str, data: bytes) -> None:
        self.create(name, data)

    def create(self, name: str, data: bytes) -> None:
        with self._lock:
            if self.exists(name):
                raise FileExistsError(f"there is already a {self.at(name)}")
            self.replace(name, data)

    def replace(self, name: str, data: bytes) -> None:
        with self._lock:
            self._files[self._root + name] = data

    def stream(self, name: str) -> BinaryIO:
        return _Stream(self, name)

    def persist(self, name: str) -> None: ...

    def sync(self, folder: str = "") -> None: ...

    def make_folder(self, folder: str) -> None: ...

    def take(self, name: str, source: Storage, source_name: str) -> None:
        self.write(name, source.read(source_name))

    # ---- deleting

    def delete(self, name: str) -> None:
        with self._lock:
            self._files.pop(self._root + name, None)

    def delete_folder(self, folder: str = "") -> None:
        for name in self._below(folder):
            self.delete(f"{folder}/{name}" if folder else name)


class _Stream(io.BytesIO):
    def __init__(self, storage: MemoryStorage, name: str) -> None:
        super().__init__()
        self._storage, self._name = storage, name

    def close(self) -> None:
        if not self.closed:
            self._storage.write(self._name, self.getvalue())
        super().close()
