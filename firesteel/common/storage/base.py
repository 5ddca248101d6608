"""What a job asks of the place its checkpoints are in, and no more.

Nothing here renames, and a folder is only the beginning of a name, so that an object store can do all of it. What a local
directory can do better (one driver keeping another from completing a checkpoint, by a rename) is in
`coordinator/fencing.py`, beside what others do instead.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import BinaryIO


class Storage(ABC):
    """Files below a root. Names have `/` between their parts. Any thread may use it.

    Whatever cannot be done raises an OSError, FileNotFoundError if there is no such file.
    """

    uri: str
    """What `open_storage` makes this storage of again, in another process. It may hold credentials: `str()` never does."""

    @abstractmethod
    def __str__(self) -> str:
        """The root, as people write it."""

    @abstractmethod
    def at(self, name: str) -> str:
        """A file or folder, as people write it."""

    @abstractmethod
    def below(self, folder: str) -> Storage:
        """The same storage with a folder as its root."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The last part of the root."""

    @abstractmethod
    def above(self) -> Storage:
        """The same storage with the folder above as its root."""

    def resolved(self) -> Storage:
        """The same storage, by a root without links in it."""
        return self

    def same(self, name: str, other: Storage, other_name: str) -> bool:
        """Whether both are one and the same file or folder, however it is written."""
        return type(self) is type(other) and self.at(name) == other.at(other_name)

    def within(self, other: Storage) -> bool:
        """Whether this root is the other one, or somewhere below it."""
        return False

    @abstractmethod
    def check_readable(self) -> None:
        """Raise an OSError that says why not, if there is nothing here or it cannot be listed."""

    @abstractmethod
    def check_writable(self) -> None:
        """Make the root if it is new, and try it out: what is wrong should be heard before a job starts, and not at its
        first checkpoint. Raises an OSError that says why not."""

    # ---- reading

    @abstractmethod
    def read(self, name: str) -> bytes: ...

    @abstractmethod
    def open(self, name: str) -> BinaryIO:
        """For reading from any position."""

    @abstractmethod
    def size(self, name: str) -> int: ...

    @abstractmethod
    def exists(self, name: str) -> bool:
        """Whether there is a file of that name."""

    @abstractmethod
    def names(self, folder: str = "") -> list[str]:
        """The names of files and folders directly below, in no order. Every file that was written before the call is
        among them. There is no such folder: none."""

    @abstractmethod
    def folders(self, folder: str = "") -> list[str]:
        """The same, folders only."""

    # ---- writing

    @abstractmethod
    def write(self, name: str, data: bytes) -> None:
        """A new file under a name that nobody else uses. Durable when this returns; until then it may be half there."""

    @abstractmethod
    def create(self, name: str, data: bytes) -> None:
        """The same, but at once or not at all, and only if there is none of that name: else FileExistsError."""

    @abstractmethod
    def replace(self, name: str, data: bytes) -> None:
        """Give a file this content, durably, at once or not at all."""

    @abstractmethod
    def stream(self, name: str) -> BinaryIO:
        """A new file to be written piece by piece. Nothing of it is sure to be there before it is closed and `persist`ed."""

    @abstractmethod
    def persist(self, name: str) -> None:
        """Make what was written to a stream durable, apart from its name, for which there is `sync`."""

    @abstractmethod
    def sync(self, folder: str = "") -> None:
        """Make durable which names there are in a folder."""

    @abstractmethod
    def make_folder(self, folder: str) -> None:
        """So that files can be written into it; durable."""

    @abstractmethod
    def take(self, name: str, source: Storage, source_name: str) -> None:
        """A durable copy (its name after a `sync`) of a file of this or another storage, which is not going to change."""

    # ---- deleting: what is gone already is no error

    @abstractmethod
    def delete(self, name: str) -> None: ...

    @abstractmethod
    def delete_folder(self, folder: str = "") -> None:
        """With everything in it, as far as that is possible."""


def reason(error: OSError) -> str:
    """Why something could not be done, without the name, which the message has already."""
    return error.strerror or str(error) or type(error).__name__
