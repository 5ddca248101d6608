"""What is in the state files of a checkpoint, by their indexes: nothing is unpickled."""

from __future__ import annotations

from dataclasses import dataclass, field

from firesteel.coordinator.completed import Completed
from firesteel.state.files import StateFile


@dataclass
class Counted:
    entries: int = 0
    size: int = 0


@dataclass
class InspectedState:
    """One state of one operator, over all slots and files."""

    uid: str
    name: str
    kind: str
    files: int = 0
    groups: dict[int, Counted] = field(default_factory=dict)  # -1: of subtasks and not of keys
    exact: bool = True  # no key group is in two files of a chain, where a key could be counted twice

    @property
    def entries(self) -> int:
        return sum(counted.entries for counted in self.groups.values())

    @property
    def size(self) -> int:
        return sum(counted.size for counted in self.groups.values())

    def count(self) -> str:
        return f"{'' if self.exact else '<= '}{self.entries:,}"


def inspect_states(found: Completed) -> list[InspectedState]:
    """
    :raises RestoreError: a file is missing or its index is damaged.
    """
    states: dict[tuple[str, str], InspectedState] = {}
    for chain in found.metadata.state:
        seen: set[tuple[str, str, int]] = set()
        for handle in chain:
            with StateFile(handle["file"], handle["checksum"], found.storage) as file:
                for each in file.footer["states"]:
                    uid, name = each["uid"], each["name"]
                    state = states.setdefault((uid, name), InspectedState(uid, name, each["kind"]))
                    state.files += 1
                    for group, _, _, length, entries, _ in each["blocks"]:
                        counted = state.groups.setdefault(group, Counted())
                        counted.entries += entries
                        counted.size += length
                        state.exact &= (uid, name, group) not in seen
                        seen.add((uid, name, group))
    return sorted(states.values(), key=lambda state: (state.uid, state.name))
