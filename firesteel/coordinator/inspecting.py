"""Which states there are in a checkpoint or savepoint, told from the footers of its files and the rows of its databases.

Nothing is unpickled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeVar

from firesteel.coordinator.completed import Completed, locate
from firesteel.errors import StateError
from firesteel.graph.keys import subtask_of
from firesteel.state.chains import units
from firesteel.state.files import BROADCAST, NO_GROUP
from firesteel.state.origin import FileHandle
from firesteel.state.reading import Slice, StateId, open_footer, states_in

_SMALLEST_PART, _LARGEST_PART = 1 << 20, 64 << 20
"""Bytes in files."""


@dataclass(frozen=True)
class StateInfo:
    """One state of one operator in a checkpoint."""

    uid: str
    """The operator's uid."""
    operator: str
    """The operator's name."""
    name: str
    """The state's name. Those that begin with `/` are firesteel's own."""
    kind: str
    """value, list, map, reducing, aggregating, timers, operator-list, operator-union, broadcast, raw or subtask; with
    `+ttl` if it has time-to-live and `+windows` if there is a value for each window."""
    entries: int
    """How many keys, elements of an operator's list, or entries of broadcast state are stored. One that is in a base and in
    deltas on it counts for each, and of lists, maps and timers in RocksDB each row does; in a savepoint of a job that has
    its state in memory the number is exact."""
    size: int
    """Bytes in files, of which deltas may replace some. Of RocksDB: of rows, before they are compressed."""


@dataclass
class Counted:
    entries: int = 0
    size: int = 0


@dataclass
class StateCounts:
    """What is stored of one state, over all slots and files."""

    state: StateId
    groups: dict[int, Counted] = field(default_factory=dict)  # NO_GROUP: of subtasks and not of keys
    files: int = 0  # a database is one
    exact: bool = True  # no key group is in two places of a chain, where a key could be counted twice

    @property
    def entries(self) -> int:
        return sum(counted.entries for counted in self.groups.values())

    @property
    def size(self) -> int:
        return sum(counted.size for counted in self.groups.values())


class CheckpointStates:
    """The states of one checkpoint, as far as its operators own them.

    A slot's files may hold key groups, and operators, that are not the slot's any more; they are left out.
    """

    def __init__(self, checkpoint: Completed) -> None:
        self.checkpoint = checkpoint
        self.metadata = checkpoint.metadata
        self._footers: dict[tuple[str, ...], dict[str, Any]] = {}
        for chain in self.metadata.state:
            for handles in units(chain):
                if _name(handles) not in self._footers:
                    self._footers[_name(handles)] = open_footer(checkpoint.storage, handles)

    def infos(self) -> list[StateInfo]:
        operators = self.metadata.operators
        return [
            StateInfo(uid, operators[uid].name, name, kind, each.entries, each.size)
            for each in self.counts()
            for uid, name, kind in [each.state.table]
        ]

    def counts(self) -> list[StateCounts]:
        """By operator and name."""
        found: dict[StateId, StateCounts] = {}
        for subtask, chain in enumerate(self.metadata.state):
            seen: set[tuple[StateId, int]] = set()
            for handles in units(chain):
                for state, blocks in states_in(self._footers[_name(handles)], handles[0]):
                    mine = [block for block in blocks if self._owns(state.uid, subtask, block[0])]
                    if mine:
                        counts = found.setdefault(state, StateCounts(state))
                        counts.files += 1
                        for group, _, _, size, entries, _ in mine:
                            counted = counts.groups.setdefault(group, Counted())
                            counted.size += size
                            counted.entries += 0 if _is_copy(state, subtask) else entries
                            counts.exact &= (state, group) not in seen
                            seen.add((state, group))
        return sorted(found.values(), key=lambda each: each.state.table)

    def _owns(self, uid: str, subtask: int, group: int) -> bool:
        info = self.metadata.operators.get(uid)
        if info is None or subtask >= info.parallelism:
            return False
        return group == NO_GROUP or subtask_of(group, info.parallelism, info.max_parallelism) == subtask

    @cached_property
    def states(self) -> list[StateId]:
        return [each.state for each in self.counts()]

    def find(self, uid: str, name: str) -> StateId:
        """
        :raises StateError: there is no such operator, or no such state of it; the message says which there are.
        """
        for state in self.states:
            if (state.uid, state.name) == (uid, name):
                return state
        mine = [state for state in self.states if state.uid == uid]
        if mine:
            there = ", ".join(f"{state.name!r} ({state.kind})" for state in mine)
            raise StateError(
                f"operator {uid} has no state {name!r} in {self.checkpoint.path}. It has: {there}. A state that was never "
                f"written is not stored"
            )
        known = self.metadata.operators.get(uid)
        what = (
            f"operator '{known.name}' (uid {uid}) has no state" if known else f"there is no operator with uid {uid!r}"
        )
        uids = ", ".join(sorted({state.uid for state in self.states})) or "none"
        raise StateError(f"{what} in {self.checkpoint.path}. Operators with state: {uids}")

    def slices(self, state: StateId, *, copies: bool = False) -> list[Slice]:
        """Where a state is: a slice for each subtask that has some of it, one for all where they have the same.

        :param copies: a slice for each of these too.
        """
        found = []
        for subtask, chain in enumerate(self.metadata.state):
            groups = sorted(group for group in self._sizes(state, chain) if self._owns(state.uid, subtask, group))
            if groups and (copies or not _is_copy(state, subtask)):
                files = [handle for handles in units(chain) if self._sizes(state, handles) for handle in handles]
                found.append(Slice(self.checkpoint.storage.uri, files, subtask, groups))
        return found

    def parts(self, state: StateId, at_least: int) -> list[list[Slice]]:
        """Everything of a state in parts of about equal size, for as many processes.

        :param at_least: so many, if it is large enough for that.
        """
        slices = self.slices(state)
        sizes = {
            (index, group): size
            for index, piece in enumerate(slices)
            for group, size in self._sizes(state, piece.chain).items()
        }
        places = [(index, group) for index, piece in enumerate(slices) for group in piece.groups]
        return [
            [replace(slices[index], groups=[group for _, group in mine]) for index, mine in groupby(run, itemgetter(0))]
            for run in split(places, sizes, at_least)
        ]

    def group_sizes(self, state: StateId) -> dict[int, int]:
        """Key group -> bytes in files."""
        sizes: dict[int, int] = {}
        for piece in self.slices(state):
            found = self._sizes(state, piece.chain)
            for group in piece.groups:
                sizes[group] = sizes.get(group, 0) + found[group]
        return sizes

    def _sizes(self, state: StateId, chain: Sequence[FileHandle]) -> dict[int, int]:
        """Key group -> bytes in these files."""
        sizes: dict[int, int] = {}
        for handles in units(chain):
            for other, blocks in states_in(self._footers[_name(handles)], handles[0]):
                if other == state:
                    for block in blocks:
                        sizes[block[0]] = sizes.get(block[0], 0) + block[3]
        return sizes


def _name(handles: Sequence[FileHandle]) -> tuple[str, ...]:
    """Of one of a chain's units: databases may share files."""
    return tuple(handle["file"] for handle in handles)


def _is_copy(state: StateId, subtask: int) -> bool:
    """Every subtask has the same broadcast state, which counts once."""
    return state.kind == BROADCAST and subtask > 0


_T = TypeVar("_T")


def split(items: Sequence[_T], sizes: Mapping[_T, int], at_least: int) -> list[list[_T]]:
    """Runs of about equal size: as many as asked for, unless they would be too small to be worth a task, or too large."""
    goal = sum(sizes[item] for item in items) // max(at_least, 1)
    goal = min(max(goal, _SMALLEST_PART), _LARGEST_PART)
    runs: list[list[_T]] = []
    filled = goal
    for item in items:
        if not runs or filled + sizes[item] > goal:
            runs.append([])
            filled = 0
        runs[-1].append(item)
        filled += sizes[item]
    return runs


def open_states(path: str) -> CheckpointStates:
    """The states of the checkpoint or savepoint that a person means: its directory or its `_metadata` file.

    :raises RestoreError: it is none, or a file of it is missing, damaged or of a newer format.
    """
    return CheckpointStates(locate(path))


def list_states(path: str) -> list[StateInfo]:
    """See `firesteel.state.list_states`."""
    return open_states(path).infos()
