"""What is in the state files of a checkpoint, by their indexes: nothing is unpickled."""

from __future__ import annotations

from dataclasses import dataclass, field

from firesteel.coordinator.completed import Completed
from firesteel.state.chains import is_native
from firesteel.state.files import BROADCAST, StateFile
from firesteel.state.parts import wanted_of


@dataclass
class Counted:
    entries: int = 0
    size: int = 0


@dataclass
class StateContents:
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

    def count(self, entries: int) -> str:
        return f"{'' if self.exact else '<= '}{entries:,}"


@dataclass(frozen=True)
class Contents:
    states: list[StateContents]
    databases: Counted  # files of a RocksDB, whose indexes are not read, and their bytes


def contents_of(found: Completed) -> Contents:
    """
    :raises RestoreError: a file is missing or its index is damaged.
    """
    states: dict[tuple[str, str], StateContents] = {}
    databases = Counted()
    for slot, chain in enumerate(found.metadata.state):
        seen: set[tuple[str, str, int]] = set()
        for handle in chain:
            if is_native(handle):
                databases.entries += 1
                databases.size += handle["size"]
                continue
            wanted = wanted_of(handle)
            with StateFile(handle["file"], handle["checksum"], found.storage) as file:
                for each in file.footer["states"]:
                    uid, name = each["uid"], each["name"]
                    blocks = [block for block in each["blocks"] if wanted(uid, block[0])]
                    if not blocks:
                        continue
                    state = states.setdefault((uid, name), StateContents(uid, name, each["kind"]))
                    state.files += 1
                    for group, _, _, length, entries, _ in blocks:
                        counted = state.groups.setdefault(group, Counted())
                        counted.size += length
                        if slot == 0 or each["kind"] != BROADCAST:  # every subtask has the same
                            counted.entries += entries
                        state.exact &= (uid, name, group) not in seen
                        seen.add((uid, name, group))
    return Contents(sorted(states.values(), key=lambda state: (state.uid, state.name)), databases)
