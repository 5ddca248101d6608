"""What a state file stands for in a chain.

The files that a slot wrote itself stand for all that is in them. When the parallelism of an operator changed, a slot goes
on with files of others, in which there is more than it needs: key groups that somebody else has now, and perhaps old ones
that their writer itself had no more when the checkpoint was taken. So a handle then says which part of its file belongs to
the chain, and whoever reads the chain, to restore it or to compact it, takes nothing else. A chain explains itself that
way, whatever changes of parallelism lie behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from firesteel.state.files import NO_GROUP, everything
from firesteel.state.origin import FileHandle

PART = "part"
"""Where a handle has it. Without one, the file stands for everything in it."""


@dataclass(frozen=True)
class Part:
    """Key groups of operators, and the state that belongs to no key of others."""

    groups: Mapping[str, range]
    """Operator uid -> key groups."""
    subtasks: Collection[str]
    """The uids of operators of which it has what is under no key group."""

    def has(self, uid: str, group: int) -> bool:
        return uid in self.subtasks if group == NO_GROUP else group in self.groups.get(uid, ())

    def within(self, handle: FileHandle) -> Part:
        """What of it is in the part that a file stands for."""
        if PART not in handle:
            return self
        other = _read(handle[PART])
        groups = {uid: shared_groups(mine, other.groups.get(uid, range(0))) for uid, mine in self.groups.items()}
        return Part(
            {uid: both for uid, both in groups.items() if both}, [u for u in self.subtasks if u in other.subtasks]
        )


def wanted_of(handle: FileHandle) -> Callable[[str, int], bool]:
    """Which blocks of a file belong to the chain that its handle is in."""
    return _read(handle[PART]).has if PART in handle else everything


def restricted(handle: FileHandle, part: Part) -> FileHandle | None:
    """The handle of a file that stands for no more than this part of what it stood for; None if that is nothing."""
    left = part.within(handle)
    if not left.groups and not left.subtasks:
        return None
    groups = {uid: [groups.start, groups.stop] for uid, groups in left.groups.items()}
    kinds = {uid: kinds for uid, kinds in handle.get("operator_state", {}).items() if uid in left.subtasks}
    plain = {name: value for name, value in handle.items() if name != "operator_state"}
    shared = {"operator_state": kinds} if kinds else {}
    return {**plain, **shared, PART: {"groups": groups, "subtasks": sorted(left.subtasks)}}


def without_part(handle: FileHandle) -> FileHandle:
    """The handle of a file that stands for everything in it."""
    return {name: value for name, value in handle.items() if name != PART}


def shared_groups(one: range, other: range) -> range:
    """The key groups that two ranges have in common."""
    return range(max(one.start, other.start), min(one.stop, other.stop))


def _read(part: Mapping[str, Any]) -> Part:
    return Part({uid: range(*ends) for uid, ends in part["groups"].items()}, frozenset(part["subtasks"]))
