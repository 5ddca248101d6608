"""One state of one operator read from a checkpoint's files, a few key groups at a time and without a store.

Whoever reads states in many processes gives each a few slices, which hold all that it needs to find its part. Of a slice
one key group is in memory at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from firesteel.common.storage import Storage, open_storage
from firesteel.errors import RestoreError
from firesteel.state.chains import is_native, rocksdb_reading, units
from firesteel.state.files import NO_GROUP, OPERATOR_KINDS, Delta, StateFile
from firesteel.state.layouts import TTL, merge
from firesteel.state.origin import FileHandle
from firesteel.state.parts import wanted_of
from firesteel.state.store import WINDOWS

Block = list[Any]
"""A block's entry in a footer."""

SUBTASK_KINDS = OPERATOR_KINDS | {"subtask"}
"""The kinds of state that belong to a subtask and to no key."""


def layout_of(kind: str) -> str:
    """The kind of state without what it has besides: time-to-live, or a value for each window."""
    return kind.removesuffix(WINDOWS).removesuffix(TTL)


@dataclass(frozen=True)
class StateId:
    """One state of one operator."""

    uid: str
    name: str
    kind: str

    @property
    def table(self) -> tuple[str, str, str]:
        return self.uid, self.name, self.kind

    @property
    def layout(self) -> str:
        return layout_of(self.kind)

    @property
    def keyed(self) -> bool:
        return self.kind not in SUBTASK_KINDS

    @property
    def ttl(self) -> bool:
        return self.kind.removesuffix(WINDOWS).endswith(TTL)

    def __str__(self) -> str:
        return f"state {self.name!r} of operator {self.uid}"


@dataclass(frozen=True)
class Slice:
    """Some key groups of one subtask: where they are, and whose."""

    storage: str  # URI
    chain: Sequence[FileHandle]  # oldest first; files without any of it may be left out
    subtask: int
    groups: Sequence[int]


class Entry(NamedTuple):
    """What a state holds in one place.

    `key` is the subtask where there are no keys. `part` is the position in a list, the key in a map, the timestamp of a
    timer, or None where a key has one value. `time` is when the entry was last used, if the state has time-to-live.
    """

    key: Any
    window: Any
    part: Any
    value: Any
    time: int | None
    group: int


class OpenFiles:
    """Files of slices, opened when they are first read and closed together: to open a database means to copy it."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._opened: dict[tuple[str, ...], Any] = {}

    def __enter__(self) -> OpenFiles:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def of(self, piece: Slice) -> list[_Source]:
        """Those of a slice's chain, oldest first."""
        storage, found = open_storage(piece.storage), list[_Source]()
        for handles in units(piece.chain):
            place = piece.storage, *(handle["file"] for handle in handles)
            if place not in self._opened:
                self._opened[place] = self._stack.enter_context(_open(storage, handles))
            kind = _InDatabase if is_native(handles[0]) else _InFile
            found.append(kind(self._opened[place], handles[0]))
        return found


def _open(storage: Storage, handles: Sequence[FileHandle]) -> Any:
    if is_native(handles[0]):
        return rocksdb_reading(storage, handles).open_checkpointed(storage, handles)
    return StateFile(handles[0]["file"], handles[0]["checksum"], storage)


class _Source(Protocol):
    """Something that holds states, as far as it stands for them in a chain."""

    def checksums(self, state: StateId, group: int) -> list[str]:
        """Where they are the same, so is what is in the key group."""

    def deltas(self, state: StateId, group: int) -> Iterator[Delta]: ...


class _InFile:
    def __init__(self, file: StateFile, handle: FileHandle) -> None:
        self._file, self._handle = file, handle
        self._blocks: dict[StateId, dict[int, list[Block]]] = {}

    def checksums(self, state: StateId, group: int) -> list[str]:
        return [block[-1] for block in self._of(state).get(group, ())]

    def deltas(self, state: StateId, group: int) -> Iterator[Delta]:
        for block in self._of(state).get(group, ()):
            yield self._file.delta({"uid": state.uid, "name": state.name, "kind": state.kind}, block)

    def _of(self, state: StateId) -> dict[int, list[Block]]:
        if state not in self._blocks:
            found = self._blocks[state] = {}
            for other, blocks in states_in(self._file.footer, self._handle):
                if other == state:
                    for block in blocks:
                        found.setdefault(block[0], []).append(block)
        return self._blocks[state]


class _InDatabase:
    def __init__(self, database: Any, handle: FileHandle) -> None:
        self._database, self._wanted = database, wanted_of(handle)

    def checksums(self, state: StateId, group: int) -> list[str]:
        found = self._database.block(state.table, group) if self._wanted(state.uid, group) else None
        return [] if found is None else [found[-1]]

    def deltas(self, state: StateId, group: int) -> Iterator[Delta]:
        return iter(self._database.deltas(state.table, group) if self._wanted(state.uid, group) else ())


def contents(state: StateId, piece: Slice, files: OpenFiles | None = None) -> Iterator[tuple[int, dict[Any, Any]]]:
    """Key group by key group, what is in a state: key -> content, as `layouts.merge` leaves it.

    :param files: what is open already, and stays so.
    :raises RestoreError: a file is missing or damaged, or holds objects of classes that cannot be imported.
    """
    with nullcontext(files) if files is not None else OpenFiles() as opened:
        sources = opened.of(piece)
        for group in piece.groups:
            content: dict[Any, Any] = {}
            for source in sources:
                for delta in _read(state, source.deltas(state, group)):
                    merge(state.kind, content, delta.keys, delta.values, delta.deleted)
            if content:
                yield group, content


def block_checksums(state: StateId, piece: Slice, files: OpenFiles) -> dict[int, list[str]]:
    """Key group -> the checksums of its blocks. Where they are the same in two checkpoints, so is what is in them."""
    sources = files.of(piece)
    return {group: [each for source in sources for each in source.checksums(state, group)] for group in piece.groups}


def states_in(footer: dict[str, Any], handle: FileHandle) -> Iterator[tuple[StateId, list[Block]]]:
    """The states of a file, and their blocks as far as they belong to the chain that the handle is in."""
    wanted = wanted_of(handle)
    for described in footer["states"]:
        state = StateId(described["uid"], described["name"], described["kind"])
        blocks = [block for block in described["blocks"] if wanted(state.uid, block[0])]
        if blocks:
            yield state, blocks


def _read(state: StateId, deltas: Iterator[Delta]) -> Iterator[Delta]:
    try:
        yield from deltas
    except (ImportError, AttributeError) as error:
        raise RestoreError(
            f"{state} holds objects of a class that cannot be imported here: {error}. Make its module importable where "
            f"Spark's workers run (PYTHONPATH, spark.submit.pyFiles or sparkContext.addPyFile); a class of the job's main "
            f"script has to be in the main script of whoever reads it"
        ) from error


def entries(state: StateId, piece: Slice) -> Iterator[Entry]:
    """Everything in a slice. Lists and what belongs to subtasks come in their order."""
    for group, content in contents(state, piece):
        yield from entries_of(state, piece.subtask, group, content)


def entries_of(state: StateId, subtask: int, group: int, content: Mapping[Any, Any]) -> Iterator[Entry]:
    """What one key group holds."""
    layout, ttl = state.layout, state.ttl
    if group == NO_GROUP:
        parts = sorted(content) if layout not in ("broadcast", "subtask") else content
        for part in parts:
            yield Entry(subtask, None, part, content[part], None, NO_GROUP)
        return
    for entry_key, found in content.items():
        key, window = split_key(entry_key)
        if layout == "timers":
            for timestamp in found:
                yield Entry(key, window, timestamp, None, None, group)
            continue
        for part, stored in _parts(layout, found):
            value, time = stored if ttl else (stored, None)
            yield Entry(key, window, part, value, time, group)


def _parts(layout: str, found: Any) -> Iterator[tuple[Any, Any]]:
    if layout == "list":
        yield from enumerate(found)
    elif layout == "map":
        yield from found.items()
    else:
        yield None, found


def split_key(entry_key: Any) -> tuple[Any, Any]:
    """The key, and the window that state of a window is under."""
    if type(entry_key) is tuple and len(entry_key) == 3 and entry_key[2] is ...:
        return entry_key[0], entry_key[1]
    return entry_key, None


def open_footer(storage: Storage, handles: Sequence[FileHandle]) -> dict[str, Any]:
    """What one of a chain's units says about itself, without reading any state."""
    with _open(storage, handles) as opened:
        footer: dict[str, Any] = opened.footer() if is_native(handles[0]) else opened.footer
        return footer
