"""State files: what a slot writes at a barrier and reads on restore. docs/formats.md describes the same bytes.

    header    8 bytes magic "FSTATE\\r\\n", 2 bytes format version
    blocks    one for each (operator, state, key group) that has changes: a pickled pair (puts, deletes), where puts is
              (keys, changes); layouts.py says what changes look like
    footer    JSON: {"slot": i, "checkpoint": n, "states": [{"uid", "name", "kind", "blocks": [[group, codec, offset,
              length, entries, checksum], ...]}, ...]}
    trailer   8 bytes footer offset, 4 bytes footer length, 8 bytes xxh3-64 of header and footer, 8 bytes magic "FSTATEND"

All numbers are big endian. Block checksums are xxh3-64 of the block in hex; since the footer holds them, the trailer's
checksum stands for the whole file, and checkpoint metadata records it. Codec "plain" blocks hold only None, bool, int,
float, str, bytes and tuples of those and are read by an unpickler that refuses every class; "pickle" blocks hold
arbitrary objects.
"""

from __future__ import annotations

import io
import json
import pickle
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from xxhash import xxh3_64_hexdigest, xxh3_64_intdigest

from firesteel.common.plain import all_plain, pickle_plain
from firesteel.common.storage import LocalStorage, Storage, reason
from firesteel.errors import RestoreError

MAGIC = b"FSTATE\r\n"
END_MAGIC = b"FSTATEND"
VERSION = 1
NO_GROUP = -1
"""In the place of a key group, for what belongs to a subtask and not to a key."""
LIST, UNION, BROADCAST, RAW = "operator-list", "operator-union", "broadcast", "raw"
OPERATOR_KINDS = frozenset((LIST, UNION, BROADCAST, RAW))
"""The kinds of operator state, which restoring may hand to other subtasks."""
_HEADER = struct.Struct(">8sH")
_TRAILER = struct.Struct(">QIQ8s")
_ANYWHERE = LocalStorage("")


def everything(uid: str, group: int) -> bool:
    """Whoever wants every block of a file."""
    return True


@dataclass(frozen=True)
class Delta:
    """The changes of one key group of one state: keys and what changed under them, and keys deleted."""

    uid: str
    name: str
    kind: str
    group: int
    keys: list[Any]
    values: list[Any]
    deleted: list[Any]


class StateFileWriter:
    """Builds a state file in memory: it is serialised at the barrier and made durable later, by another thread.

    :param out: where it goes instead, piece by piece. Closing that is the giver's business.
    """

    def __init__(self, slot: int, checkpoint: int, out: BinaryIO | None = None) -> None:
        self._out = io.BytesIO() if out is None else out
        self._size = 0
        self._write(_HEADER.pack(MAGIC, VERSION))
        self._footer: dict[str, Any] = {"slot": slot, "checkpoint": checkpoint, "states": []}
        self._blocks: dict[tuple[str, str], list[list[Any]]] = {}

    def add(self, delta: Delta) -> None:
        content = (delta.keys, delta.values), delta.deleted
        if all_plain(delta.keys) and all_plain(delta.values) and all_plain(delta.deleted):
            codec, block = "plain", pickle_plain(content)
        else:
            codec, block = "pickle", pickle.dumps(content, protocol=pickle.HIGHEST_PROTOCOL)
        blocks = self._blocks.get((delta.uid, delta.name))
        if blocks is None:
            blocks = self._blocks[delta.uid, delta.name] = []
            state = {"uid": delta.uid, "name": delta.name, "kind": delta.kind, "blocks": blocks}
            self._footer["states"].append(state)
        entries = len(delta.keys) + len(delta.deleted)
        blocks.append([delta.group, codec, self._size, len(block), entries, xxh3_64_hexdigest(block)])
        self._write(block)

    def _write(self, data: bytes) -> None:
        self._out.write(data)
        self._size += len(data)

    def operator_state(self) -> dict[str, list[str]]:
        """Operator uid -> the kinds of its operator state in this file: it is why other slots may need to read it."""
        found: dict[str, set[str]] = {}
        for state in self._footer["states"]:
            if state["kind"] in OPERATOR_KINDS:
                found.setdefault(state["uid"], set()).add(state["kind"])
        return {uid: sorted(kinds) for uid, kinds in found.items()}

    def handle(self, file: str, data: bytes, checksum: str) -> dict[str, Any]:
        """What checkpoint metadata says about this file."""
        return self.handle_of(file, len(data), checksum)

    def handle_of(self, file: str, size: int, checksum: str) -> dict[str, Any]:
        """The same, of a file that was written piece by piece."""
        handle: dict[str, Any] = {"file": file, "size": size, "checksum": checksum}
        shared = self.operator_state()
        return {**handle, "operator_state": shared} if shared else handle

    def finish(self) -> tuple[bytes, str]:
        """The file's bytes and its checksum."""
        _, checksum = self.end()
        assert isinstance(self._out, io.BytesIO)
        return self._out.getvalue(), checksum

    def end(self) -> tuple[int, str]:
        """Write what comes after the blocks. The file's size and its checksum."""
        footer = json.dumps(self._footer, separators=(",", ":")).encode()
        offset = self._size
        checksum = xxh3_64_intdigest(_HEADER.pack(MAGIC, VERSION) + footer)
        self._write(footer)
        self._write(_TRAILER.pack(offset, len(footer), checksum, END_MAGIC))
        return self._size, f"{checksum:016x}"


class StateFile:
    """A state file opened for reading; checks everything it reads.

    :param name: in the storage; without one, the path of a local file.
    :param checksum: what the checkpoint recorded.
    :raises RestoreError: missing, truncated, damaged, of a newer format, or not the file the checkpoint recorded.
    """

    def __init__(self, name: str, checksum: str | None = None, storage: Storage = _ANYWHERE) -> None:
        self.path = storage.at(name)
        self.bytes_read = 0
        try:
            self._file = storage.open(name)
            size = self._file.seek(0, io.SEEK_END)
            self._file.seek(0)
        except OSError as error:
            raise RestoreError(
                f"state file {self.path} cannot be opened: {reason(error)}. Restore it from a copy or use another checkpoint"
            ) from error
        try:
            self.footer = self._read_footer(size, checksum)
        except BaseException:
            self._file.close()
            raise

    def _read_footer(self, size: int, recorded: str | None) -> dict[str, Any]:
        header = self._file.read(_HEADER.size)
        if len(header) < _HEADER.size or not header.startswith(MAGIC):
            raise self._damaged("it does not start like a state file")
        version = _HEADER.unpack(header)[1]
        if version > VERSION:
            raise RestoreError(
                f"state file {self.path} has format {version}, newer than {VERSION}, the newest this firesteel reads; "
                f"install the firesteel that wrote it, or a later one"
            )
        if size < _HEADER.size + _TRAILER.size:
            raise self._damaged(f"it has only {size} bytes")
        self._file.seek(size - _TRAILER.size)
        offset, length, checksum, magic = _TRAILER.unpack(self._file.read(_TRAILER.size))
        if magic != END_MAGIC or offset + length + _TRAILER.size != size:
            raise self._damaged("its end is missing: the file is torn")
        self._file.seek(offset)
        footer = self._file.read(length)
        self.bytes_read = len(header) + length + _TRAILER.size
        if xxh3_64_intdigest(header + footer) != checksum:
            raise self._damaged("the checksum of its index does not match")
        if recorded is not None and recorded != f"{checksum:016x}":
            raise self._damaged(f"its checksum {checksum:016x} is not {recorded}, which the checkpoint recorded")
        content: dict[str, Any] = json.loads(footer)
        return content

    def _damaged(self, why: str) -> RestoreError:
        return RestoreError(
            f"state file {self.path} is damaged: {why}. Restore it from a copy or use another checkpoint"
        )

    def deltas(self, wanted: Callable[[str, int], bool] = everything) -> Iterator[Delta]:
        """The changes, reading only the blocks of operator uids and key groups that are wanted. NO_GROUP is one as well."""
        for state in self.footer["states"]:
            for entry in state["blocks"]:
                if wanted(state["uid"], entry[0]):
                    yield self.delta(state, entry)

    def delta(self, state: dict[str, Any], entry: list[Any]) -> Delta:
        """The changes in one block, by the footer's entries of its state and of itself."""
        group, codec, offset, length, _, checksum = entry
        self._file.seek(offset)
        block = self._file.read(length)
        self.bytes_read += length
        if xxh3_64_hexdigest(block) != checksum:
            raise self._damaged(
                f"the checksum of key group {group} of state {state['name']!r} of {state['uid']} does not match"
            )
        (keys, values), deleted = self._decode(codec, block)
        return Delta(state["uid"], state["name"], state["kind"], group, keys, values, deleted)

    def _decode(self, codec: str, block: bytes) -> Any:
        if codec == "plain":
            return _PlainUnpickler(io.BytesIO(block)).load()
        if codec == "pickle":
            return pickle.loads(block)
        raise RestoreError(f"state file {self.path} uses codec {codec!r}, which this firesteel does not know")

    def verify(self) -> None:
        """Check every block without decoding it."""
        for state in self.footer["states"]:
            for group, _, offset, length, _, checksum in state["blocks"]:
                self._file.seek(offset)
                if xxh3_64_hexdigest(self._file.read(length)) != checksum:
                    raise self._damaged(f"the checksum of key group {group} of state {state['name']!r} does not match")

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> StateFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        raise RestoreError(f"a state block marked as plain refers to {module}.{name}: the file was tampered with")
