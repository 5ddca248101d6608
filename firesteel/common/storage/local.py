"""A directory of this machine, or one that is mounted on it. Everything is synced before it counts."""

from __future__ import annotations

import errno
import os
import shutil
import uuid
from typing import BinaryIO

from firesteel.common.durable import remove_file, replace_durable, sync_directory, write_durable
from firesteel.common.storage.base import Storage

_BUFFER = 256 * 1024
_CANNOT_LINK = (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.ENOSYS)
_PROBE = bytes(64 * 1024)


class LocalStorage(Storage):
    """Files in a directory."""

    def __init__(self, root: str) -> None:
        self.uri = self.root = root

    def __str__(self) -> str:
        return self.root

    def path(self, name: str = "") -> str:
        """The path of a file or folder."""
        return os.path.join(self.root, name) if name else self.root

    at = path

    def below(self, folder: str) -> LocalStorage:
        return LocalStorage(self.path(folder))

    @property
    def name(self) -> str:
        return os.path.basename(self.root)

    def above(self) -> LocalStorage:
        return LocalStorage(os.path.dirname(self.root))

    def resolved(self) -> LocalStorage:
        return LocalStorage(os.path.realpath(self.root))

    def same(self, name: str, other: Storage, other_name: str) -> bool:
        try:
            return isinstance(other, LocalStorage) and os.path.samefile(self.path(name), other.path(other_name))
        except FileNotFoundError:
            return False

    def within(self, other: Storage) -> bool:
        if not isinstance(other, LocalStorage):
            return False
        above = os.path.realpath(other.root)
        return os.path.commonpath([above, os.path.realpath(self.root)]) == above

    def check_readable(self) -> None:
        os.listdir(self.root)
        self._check_access(os.R_OK | os.X_OK)

    def check_writable(self) -> None:
        os.makedirs(self.root, exist_ok=True)
        self._check_access(os.R_OK | os.W_OK | os.X_OK)
        probe = f"new-{uuid.uuid4().hex}"  # as fencing calls its drafts, so that one is swept that a crash left behind
        try:
            with open(self.path(probe), "xb") as file:
                file.write(_PROBE)
                file.flush()
                os.fsync(file.fileno())
        finally:
            self.delete(probe)

    def _check_access(self, mode: int) -> None:
        if not os.access(self.root, mode):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), self.root)

    # ---- reading

    def read(self, name: str) -> bytes:
        with open(self.path(name), "rb") as file:
            return file.read()

    def open(self, name: str) -> BinaryIO:
        return open(self.path(name), "rb")

    def size(self, name: str) -> int:
        return os.stat(self.path(name)).st_size

    def exists(self, name: str) -> bool:
        return os.path.isfile(self.path(name))

    def names(self, folder: str = "") -> list[str]:
        try:
            return os.listdir(self.path(folder))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def folders(self, folder: str = "") -> list[str]:
        try:
            with os.scandir(self.path(folder)) as entries:
                return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        except (FileNotFoundError, NotADirectoryError):
            return []

    # ---- writing

    def write(self, name: str, data: bytes) -> None:
        write_durable(self.path(name), data)

    def create(self, name: str, data: bytes) -> None:
        path = self.path(name)
        temporary = f"{path}.{uuid.uuid4().hex}"
        write_durable(temporary, data)
        try:
            os.link(temporary, path)
        finally:
            os.unlink(temporary)
        sync_directory(os.path.dirname(path))

    def replace(self, name: str, data: bytes) -> None:
        replace_durable(self.path(name), data)

    def stream(self, name: str) -> BinaryIO:
        return open(self.path(name), "xb", buffering=_BUFFER)

    def persist(self, name: str) -> None:
        with open(self.path(name), "rb") as file:
            os.fsync(file.fileno())

    def sync(self, folder: str = "") -> None:
        sync_directory(self.path(folder))

    def make_folder(self, folder: str) -> None:
        path = self.path(folder)
        if not os.path.isdir(path):
            os.makedirs(path, exist_ok=True)
            while len(path) > len(self.root):
                path = os.path.dirname(path)
                sync_directory(path)

    def take(self, name: str, source: Storage, source_name: str) -> None:
        if isinstance(source, LocalStorage):
            try:
                os.link(source.path(source_name), self.path(name))
            except OSError as error:
                if error.errno not in _CANNOT_LINK:
                    raise
            else:
                return
        with source.open(source_name) as original, open(self.path(name), "xb") as copy:
            shutil.copyfileobj(original, copy, _BUFFER)
            copy.flush()
            os.fsync(copy.fileno())

    # ---- deleting

    def delete(self, name: str) -> None:
        remove_file(self.path(name))

    def delete_folder(self, folder: str = "") -> None:
        shutil.rmtree(self.path(folder), ignore_errors=True)
