"""What differs between a state in two checkpoints: `firesteel.state.diff`.

Both have a key's entries in the same key group, so a partition compares some groups of both, in Python, with Python's idea
of what is equal; nothing is shuffled, and groups that are stored in the same blocks are not even read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession

from firesteel.coordinator.inspecting import CheckpointStates, open_states, split
from firesteel.engine.state_frames import (
    INT,
    LONG,
    STRING,
    Column,
    first_entry,
    make_frame,
    pickled_bytes,
    place_columns,
    resolve,
)
from firesteel.engine.state_workers import check_session
from firesteel.errors import StateError
from firesteel.state.reading import Entry, OpenFiles, Slice, StateId, block_checksums, contents, entries_of


class Change(NamedTuple):
    """A difference between two states."""

    key: Any
    window: Any
    part: Any
    change: str
    old: Any
    new: Any
    old_time: int | None
    new_time: int | None
    group: int


def diff(
    session: SparkSession,
    old: str,
    new: str,
    uid: str,
    name: str,
    key_type: Any = None,
    map_key_type: Any = None,
    value_type: Any = None,
) -> DataFrame:
    """See `firesteel.state.diff`."""
    check_session(session)
    before, after = open_states(old), open_states(new)
    state = _same_state(before, after, uid, name)
    sides = [states for states in (before, after) if state in states.states]
    samples = (first_entry(states, state) for states in sides)
    columns = place_columns(state, next((sample for sample in samples if sample is not None), None))
    columns.append(Column("change", 3, STRING))
    if state.layout != "timers":
        columns += [Column("old_value", 4, "value"), Column("new_value", 5, "value")]
    if state.ttl:
        columns += [Column("old_last_access", 6, LONG), Column("new_last_access", 7, LONG)]
    if state.keyed:
        columns.append(Column("key_group", 8, INT))
    given = {"key": key_type, "map_key": map_key_type, "value": value_type}
    parts = _pairs(before, after, state, session.sparkContext.defaultParallelism)
    rows = _Comparing(state)
    return make_frame(session, rows, parts, resolve(session, state, rows, parts, columns, given))


def _same_state(before: CheckpointStates, after: CheckpointStates, uid: str, name: str) -> StateId:
    """
    :raises StateError: neither has the state, or they cannot be compared.
    """
    found = [
        next((state for state in states.states if (state.uid, state.name) == (uid, name)), None)
        for states in (before, after)
    ]
    if found[0] is None and found[1] is None:
        return after.find(uid, name)
    if found[0] is None or found[1] is None:
        return found[0] or found[1]  # type: ignore[return-value]
    if found[0].kind != found[1].kind:
        raise StateError(
            f"{found[0]} is of kind {found[0].kind} in {before.checkpoint.path} and of kind {found[1].kind} in "
            f"{after.checkpoint.path}: they hold different things and cannot be compared"
        )
    groups = [states.metadata.operators[uid].max_parallelism for states in (before, after)]
    if found[0].keyed and groups[0] != groups[1]:
        raise StateError(
            f"operator {uid} has maximum parallelism {groups[0]} in {before.checkpoint.path} and {groups[1]} in "
            f"{after.checkpoint.path}, so keys are in other key groups. Read both and join them by key instead"
        )
    return found[0]


_Pair = tuple[list[Slice], list[Slice]]


def _pairs(before: CheckpointStates, after: CheckpointStates, state: StateId, at_least: int) -> list[_Pair]:
    """The same key groups of both, whichever subtasks had them."""
    sides = [states if state in states.states else None for states in (before, after)]
    sizes: Counter[int] = Counter()
    for states in sides:
        sizes.update(states.group_sizes(state) if states is not None else {})
    pairs = []
    for groups in split(sorted(sizes), sizes, at_least):
        old, new = (
            [
                cut
                for piece in (states.slices(state) if states is not None else [])
                if (cut := _only(piece, groups)).groups
            ]
            for states in sides
        )
        pairs.append((old, new))
    return pairs


def _only(piece: Slice, groups: Container[int]) -> Slice:
    return replace(piece, groups=[group for group in piece.groups if group in groups])


@dataclass(frozen=True)
class _Comparing:
    """Gives what differs in a pair of parts, a key group at a time."""

    state: StateId

    def __call__(self, pair: _Pair) -> Iterator[Change]:
        if not self.state.keyed:
            yield from self._changes(*(self._entries(side) for side in pair))
            return
        old, new = ({group: piece for piece in side for group in piece.groups} for side in pair)
        with OpenFiles() as files:
            sums = [
                {group: found for piece in side for group, found in block_checksums(self.state, piece, files).items()}
                for side in pair
            ]
            for group in sorted({*old, *new}):
                if group in old and group in new and sums[0][group] == sums[1][group]:
                    continue  # the same blocks
                pieces = ([replace(by[group], groups=[group])] if group in by else [] for by in (old, new))
                yield from self._changes(*(self._entries(piece, files) for piece in pieces))

    def _entries(self, side: Sequence[Slice], files: OpenFiles | None = None) -> dict[Any, Entry]:
        return {
            entry[:3]: entry
            for piece in side
            for group, content in contents(self.state, piece, files)
            for entry in entries_of(self.state, piece.subtask, group, content)
        }

    def _changes(self, old: dict[Any, Entry], new: dict[Any, Entry]) -> Iterator[Change]:
        for place, entry in old.items():
            if place not in new:
                yield Change(*entry[:3], "removed", entry.value, None, entry.time, None, entry.group)
            elif not _equal(entry.value, new[place].value):
                now = new[place]
                yield Change(*entry[:3], "changed", entry.value, now.value, entry.time, now.time, entry.group)
        for place, entry in new.items():
            if place not in old:
                yield Change(*entry[:3], "added", None, entry.value, None, entry.time, entry.group)


def _equal(one: Any, other: Any) -> bool:
    """Objects that do not say what makes them equal are so if they are stored as the same bytes; NaN is one of them."""
    return bool(one == other) or (type(one) is type(other) and pickled_bytes(one) == pickled_bytes(other))
