"""One state of one operator read from a checkpoint's files, a few key groups at a time and without a store.

Whoever reads states in many processes gives each a few slices, which hold all that it needs to find its part. Of a slice
one key group is in memory at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, NamedTuple

from firesteel.common.storage import Storage, open_storage
from firesteel.errors import RestoreError
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


def contents(state: StateId, piece: Slice) -> Iterator[tuple[int, dict[Any, Any]]]:
    """Key group by key group, what is in a state: key -> content, as `layouts.merge` leaves it.

    :raises RestoreError: a file is missing or damaged, or holds objects of classes that cannot be imported.
    """
    storage = open_storage(piece.storage)
    with ExitStack() as opened:
        files = [opened.enter_context(StateFile(handle["file"], handle["checksum"], storage)) for handle in piece.chain]
        indexes = [_by_group(file, handle, state) for file, handle in zip(files, piece.chain, strict=True)]
        for group in piece.groups:
            content: dict[Any, Any] = {}
            for file, blocks in zip(files, indexes, strict=True):
                for block in blocks.get(group, ()):
                    delta = _read(file, state, block)
                    merge(state.kind, content, delta.keys, delta.values, delta.deleted)
            if content:
                yield group, content


def block_checksums(state: StateId, piece: Slice) -> dict[int, list[str]]:
    """Key group -> the checksums of its blocks. Where they are the same in two checkpoints, so is what is in them."""
    storage = open_storage(piece.storage)
    found: dict[int, list[str]] = {}
    for handle in piece.chain:
        with StateFile(handle["file"], handle["checksum"], storage) as file:
            for group, blocks in _by_group(file, handle, state).items():
                found.setdefault(group, []).extend(block[-1] for block in blocks)
    return found


def states_in(footer: dict[str, Any], handle: FileHandle) -> Iterator[tuple[StateId, list[Block]]]:
    """The states of a file, and their blocks as far as they belong to the chain that the handle is in."""
    wanted = wanted_of(handle)
    for described in footer["states"]:
        state = StateId(described["uid"], described["name"], described["kind"])
        blocks = [block for block in described["blocks"] if wanted(state.uid, block[0])]
        if blocks:
            yield state, blocks


def _by_group(file: StateFile, handle: FileHandle, state: StateId) -> dict[int, list[Block]]:
    found: dict[int, list[Block]] = {}
    for other, blocks in states_in(file.footer, handle):
        if other == state:
            for block in blocks:
                found.setdefault(block[0], []).append(block)
    return found


def _read(file: StateFile, state: StateId, block: Block) -> Delta:
    try:
        return file.delta({"uid": state.uid, "name": state.name, "kind": state.kind}, block)
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


def open_footer(storage: Storage, handle: FileHandle) -> dict[str, Any]:
    """What a state file says about itself, without reading any state."""
    with StateFile(handle["file"], handle["checksum"], storage) as file:
        return file.footer
