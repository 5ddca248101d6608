"""Records in a file that is written once and read once or a few times.

    header   8 bytes "FSTLOG01"
    block    4 bytes length, 8 bytes xxh3-64 of the data, the data: a pickled list of up to some thousand records
    ...

Numbers are big endian. How long the file is, and so how many blocks it has, is in the committable.
"""

from __future__ import annotations

import io
import pickle
import struct
from collections.abc import Iterator, Sequence
from typing import Any

from xxhash import xxh3_64_intdigest

from firesteel.common.durable import naming
from firesteel.common.storage import Storage
from firesteel.connectors.base import CHUNK
from firesteel.errors import CheckpointError

MAGIC = b"FSTLOG01"

_BLOCK = struct.Struct(">IQ")


class LogFile:
    """A log being written."""

    def __init__(self, storage: Storage, name: str) -> None:
        self.name = name
        self._path = storage.at(name)
        self._file = storage.stream(name)
        self._file.write(MAGIC)
        self.size = len(MAGIC)
        self.records = 0

    def append(self, values: Sequence[Any]) -> None:
        for start in range(0, len(values), CHUNK):
            chunk = list(values[start : start + CHUNK])
            data = pickle.dumps(chunk, protocol=pickle.HIGHEST_PROTOCOL)
            with naming(self._path):
                self._file.write(_BLOCK.pack(len(data), xxh3_64_intdigest(data)))
                self._file.write(data)
            self.size += _BLOCK.size + len(data)
            self.records += len(chunk)

    def close(self) -> None:
        with naming(self._path):
            self._file.close()


def check_log(storage: Storage, name: str, size: int) -> None:
    """Read all of it once, so that nothing of a damaged file is sent.

    :raises CheckpointError: it is gone or is not what was written.
    """
    for _ in _blocks(storage, name, size):
        pass


def read_log(storage: Storage, name: str, size: int) -> Iterator[Any]:
    """The records, with no more than a block of them in memory."""
    for data in _blocks(storage, name, size):
        yield from pickle.loads(data)


def _blocks(storage: Storage, name: str, size: int) -> Iterator[bytes]:
    path = storage.at(name)
    try:
        file = storage.open(name)
    except FileNotFoundError:
        raise CheckpointError(f"the log {path!r} is gone; did another program delete it?") from None
    with file:
        found = file.seek(0, io.SEEK_END)
        file.seek(0)
        if found != size:
            raise CheckpointError(f"the log {path!r} should have {size} bytes and has {found}")
        if file.read(len(MAGIC)) != MAGIC:
            raise CheckpointError(f"{path!r} is no log of records, or one of a newer firesteel")
        while header := file.read(_BLOCK.size):
            start = file.tell() - len(header)
            length, checksum = _BLOCK.unpack(header) if len(header) == _BLOCK.size else (-1, 0)
            data = file.read(length) if length >= 0 else b""
            if len(data) != length or xxh3_64_intdigest(data) != checksum:
                raise CheckpointError(f"the log {path!r} is damaged at byte {start}. Restore it from a copy")
            yield data
