"""Object stores, and whatever other file system pyarrow knows by a URI.

Used as an object store is: nothing is renamed, a folder is only the beginning of names, and writing a file is one PUT,
after which the file is there, whole, and every listing has it. S3 (since 2020), Google Cloud Storage and Azure keep that
promise. File systems with folders, HDFS for one, show files while they are being written: there a file is written under
a temporary name first and then moved.
"""

from __future__ import annotations

import contextlib
import io
import posixpath
import shutil
import uuid
from typing import Any, BinaryIO, cast
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit

import pyarrow
from pyarrow.fs import FileSelector, FileSystem, FileType

from firesteel.common.storage.base import Storage
from firesteel.errors import ConfigurationError

_OBJECT_STORES = ("s3", "gcs", "abfs")
_BUFFER = 4 * 1024 * 1024
_SECRET = ("key", "secret", "token", "password", "signature")
_NEEDS = {
    "hdfs": "HDFS takes a JVM and Hadoop's libraries: set JAVA_HOME, HADOOP_HOME and CLASSPATH (`hadoop classpath --glob`)",
    "viewfs": "HDFS takes a JVM and Hadoop's libraries: set JAVA_HOME, HADOOP_HOME and CLASSPATH (`hadoop classpath --glob`)",
    "s3": "A checkpoint directory in S3 is s3://<bucket>/<path>; options go behind it, as in ?region=eu-west-1",
}


class ObjectStorage(Storage):
    """Files in a pyarrow file system.

    :param root: as `system` knows it.
    :param uri: what stands for system and root in another process.
    """

    def __init__(self, system: Any, root: str, uri: str) -> None:
        self._system, self._root, self.uri = system, root.rstrip("/"), uri
        self._has_folders = system.type_name not in _OBJECT_STORES

    def __str__(self) -> str:
        return shown(self.uri)

    def at(self, name: str) -> str:
        return shown(_joined(self.uri, name)) if name else str(self)

    def below(self, folder: str) -> ObjectStorage:
        return ObjectStorage(self._system, self._path(folder), _joined(self.uri, folder))

    @property
    def name(self) -> str:
        return posixpath.basename(self._root)

    def above(self) -> ObjectStorage:
        parts = urlsplit(self.uri)
        above = parts._replace(path=posixpath.dirname(parts.path.rstrip("/")))
        return ObjectStorage(self._system, posixpath.dirname(self._root), above.geturl())

    def within(self, other: Storage) -> bool:
        if not isinstance(other, ObjectStorage) or not other._system.equals(self._system):
            return False
        return f"{self._root}/".startswith(f"{other._root}/")

    def check_readable(self) -> None:
        kind = self._system.get_file_info(self._root).type
        if kind == FileType.NotFound:
            raise FileNotFoundError(f"there is no {self}")
        if kind == FileType.File:
            raise NotADirectoryError(f"{self} is a file")

    def check_writable(self) -> None:
        probe = f"new-{uuid.uuid4().hex}"
        try:
            self.write(probe, b"firesteel was here")
            if probe not in self.names():
                raise OSError("a file that was just written is not listed, which checkpoints depend on")
        finally:
            with contextlib.suppress(OSError):
                self.delete(probe)

    # ---- reading

    def read(self, name: str) -> bytes:
        with self._system.open_input_stream(self._path(name), compression=None) as file:
            return cast(bytes, file.read())

    def open(self, name: str) -> BinaryIO:
        """Read ahead, since every read is a request otherwise."""
        return cast(BinaryIO, io.BufferedReader(self._system.open_input_file(self._path(name)), _BUFFER))

    def size(self, name: str) -> int:
        info = self._system.get_file_info(self._path(name))
        if info.type != FileType.File:
            raise FileNotFoundError(f"there is no {self.at(name)}")
        return cast(int, info.size)

    def exists(self, name: str) -> bool:
        return bool(self._system.get_file_info(self._path(name)).type == FileType.File)

    def names(self, folder: str = "") -> list[str]:
        return [info.base_name for info in self._list(folder)]

    def folders(self, folder: str = "") -> list[str]:
        return [info.base_name for info in self._list(folder) if info.type == FileType.Directory]

    def _list(self, folder: str) -> list[Any]:
        selector = FileSelector(self._path(folder), allow_not_found=True)
        try:
            return list(self._system.get_file_info(selector))
        except NotADirectoryError:
            return []

    # ---- writing: durable when it is there

    def write(self, name: str, data: bytes) -> None:
        self.replace(name, data)

    def create(self, name: str, data: bytes) -> None:
        """Two who do this at the same moment may both succeed, and the later one's data stays."""
        if self.exists(name):
            raise FileExistsError(f"there is already a {self.at(name)}")
        self.replace(name, data)

    def replace(self, name: str, data: bytes) -> None:
        with self.stream(name) as file:
            file.write(data)

    def stream(self, name: str) -> BinaryIO:
        path = self._path(name)
        if not self._has_folders:
            return cast(BinaryIO, self._system.open_output_stream(path, compression=None))
        self._system.create_dir(posixpath.dirname(path), recursive=True)
        return cast(BinaryIO, _Moved(self._system, path))

    def persist(self, name: str) -> None: ...

    def sync(self, folder: str = "") -> None: ...

    def make_folder(self, folder: str) -> None: ...

    def take(self, name: str, source: Storage, source_name: str) -> None:
        if isinstance(source, ObjectStorage) and not self._has_folders and source._system.equals(self._system):
            self._system.copy_file(source._path(source_name), self._path(name))
            return
        with source.open(source_name) as original, self.stream(name) as copy:
            shutil.copyfileobj(original, copy, _BUFFER)

    # ---- deleting

    def delete(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._system.delete_file(self._path(name))

    def delete_folder(self, folder: str = "") -> None:
        with contextlib.suppress(OSError):
            self._system.delete_dir(self._path(folder))

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}" if name else self._root


class _Moved(io.BufferedIOBase):
    """A file that gets its name when it is closed. One that is left with an error never does."""

    def __init__(self, system: Any, path: str) -> None:
        self._system, self._path = system, path
        self._temporary = f"{posixpath.dirname(path)}/.{posixpath.basename(path)}.{uuid.uuid4().hex}"
        self._file = system.open_output_stream(self._temporary, compression=None)

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return cast(int, self._file.write(data))

    def close(self) -> None:
        if not self.closed:
            self._file.close()
            if self._system.get_file_info(self._path).type == FileType.File:
                self._system.delete_file(self._path)  # HDFS moves onto nothing that is there
            self._system.move(self._temporary, self._path)
        super().close()

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.close()


def open_objects(location: str) -> ObjectStorage:
    """
    :raises ConfigurationError: pyarrow knows no such file system, or cannot connect to it.
    """
    scheme = urlsplit(location).scheme
    try:
        system, root = FileSystem.from_uri(location)
    except (pyarrow.ArrowException, OSError, ImportError, ValueError) as error:
        known = f"Known are paths, {', '.join(f'{name}://' for name in ('file', 's3', 'gs', 'abfs', 'hdfs'))}"
        raise ConfigurationError(
            f"checkpoints cannot be kept in {shown(location)}: {str(error).splitlines()[0]}. {_NEEDS.get(scheme, known)}"
        ) from error
    if not root.strip("/"):
        raise ConfigurationError(
            f"checkpoints cannot be kept in {shown(location)}: it names no bucket or directory. Write {scheme}://<bucket>/<path>"
        )
    return ObjectStorage(system, root, location)


def shown(uri: str) -> str:
    """A URI as messages may show it: without passwords and keys."""
    parts = urlsplit(uri)
    user, at, host = parts.netloc.rpartition("@")
    netloc = host if ":" in user else f"{user}{at}{host}"  # in abfs://container@account it is no user
    query = [(name, value) for name, value in parse_qsl(parts.query) if not any(s in name.lower() for s in _SECRET)]
    return SplitResult(parts.scheme, netloc, parts.path, urlencode(query, safe=":/"), "").geturl()


def _joined(uri: str, name: str) -> str:
    parts = urlsplit(uri)
    return parts._replace(path=f"{parts.path.rstrip('/')}/{name}").geturl()
