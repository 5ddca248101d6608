"""Chains of state files through any number of changes of parallelism, against a dict: no slots, so that many fit in a second.

Two operators that change independently of each other, so that a slot keeps what it has of one and passes on what it has of
the other.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.common.storage import MemoryStorage
from firesteel.coordinator.engine import FileHandle
from firesteel.coordinator.metadata import CheckpointMetadata, OperatorInfo, encode, read
from firesteel.coordinator.rescaling import chains_of
from firesteel.graph.keys import subtask_of
from firesteel.graph.nodes import Map
from firesteel.graph.plan import JobPlan, PlannedOperator
from firesteel.state.compaction import compact
from firesteel.state.files import NO_GROUP, Delta, StateFile, StateFileWriter
from firesteel.state.parts import PART, wanted_of

GROUPS = 12
UIDS = ("a", "b")

Content = dict[tuple[str, int, int], int]
"""What is in state: (operator uid, key group, key) -> value."""

parallelisms = st.tuples(st.integers(1, GROUPS), st.integers(1, GROUPS))
changes = st.dictionaries(
    st.tuples(st.sampled_from(UIDS), st.integers(0, GROUPS - 1), st.integers(0, 1)),
    st.none() | st.integers(0, 999),
    max_size=8,
)
steps = st.lists(
    st.tuples(st.just("write"), changes)
    | st.tuples(st.just("rescale"), parallelisms)
    | st.tuples(st.just("compact"), st.tuples(st.integers(0, GROUPS), st.integers(0, 3))),
    max_size=20,
)


class Job:
    """Slots that write what changed in the groups they own, and a driver that hands their files on."""

    def __init__(self, now: tuple[int, int]) -> None:
        self.now = now
        self.storage = MemoryStorage()
        self.files = 0
        self.chains: list[list[FileHandle]] = [[] for _ in range(max(now))]

    def write(self, changed: dict[tuple[str, int, int], int | None]) -> None:
        by_slot: dict[int, dict[tuple[str, int], Delta]] = {}
        for (uid, group, key), value in changed.items():
            slot = subtask_of(group, self.now[UIDS.index(uid)], GROUPS)
            deltas = by_slot.setdefault(slot, {})
            delta = deltas.setdefault((uid, group), Delta(uid, "s", "value", group, [], [], []))
            if value is None:
                delta.deleted.append(key)
            else:
                delta.keys.append(key)
                delta.values.append(value)
        for slot, deltas in by_slot.items():
            writer = StateFileWriter(slot, 1)
            for delta in deltas.values():
                writer.add(delta)
            writer.add(Delta("a", "/time", "subtask", NO_GROUP, ["slot"], [slot], []))
            data, checksum = writer.finish()
            name = self.name()
            self.storage.write(name, data)
            self.chains[slot].append(writer.handle(name, data, checksum))

    def name(self) -> str:
        self.files += 1
        return f"f{self.files}"

    def compact(self, slot: int, files: int) -> None:
        """The beginning of a chain, as a process does that began some checkpoints ago."""
        chain = self.chains[slot % len(self.chains)]
        first = chain[: len(chain) - files]
        if first:
            chain[: len(first)] = [compact(self.storage, self.name(), first)]

    def rescale(self, now: tuple[int, int]) -> None:
        metadata = CheckpointMetadata(
            "id", "job", 1, 1, 0, False, {uid: OperatorInfo(uid, "Map", p, GROUPS, True) for uid, p in self.by_uid()},
            {}, self.chains, {},
        )  # fmt: skip
        self.storage.replace("_metadata", encode(metadata))
        self.now = now
        operators = tuple(
            PlannedOperator(i, uid, uid, Map(None), 1, p, GROUPS, "here", ())
            for i, (uid, p) in enumerate(self.by_uid())
        )
        chains = chains_of(read(self.storage, ""), JobPlan(operators))
        self.chains = [chains.get(slot, []) for slot in range(max(now))]

    def by_uid(self) -> list[tuple[str, int]]:
        return list(zip(UIDS, self.now, strict=True))

    def content(self) -> Content:
        """What the slots would load, each from its chain alone."""
        found: Content = {}
        for slot, chain in enumerate(self.chains):
            mine: Content = {}
            for handle in chain:
                with StateFile(handle["file"], handle["checksum"], self.storage) as file:
                    for delta in file.deltas(wanted_of(handle)):
                        if delta.group == NO_GROUP:
                            assert delta.values == [slot], "state of a subtask stays with it or is left out"
                            continue
                        assert subtask_of(delta.group, self.now[UIDS.index(delta.uid)], GROUPS) == slot
                        for key in delta.deleted:
                            mine.pop((delta.uid, delta.group, key), None)
                        for key, value in zip(delta.keys, delta.values, strict=True):
                            mine[delta.uid, delta.group, key] = value
            assert not found.keys() & mine.keys()
            found |= mine
        return found


@settings(max_examples=300)
@given(first=parallelisms, steps=steps)
def test_nothing_is_lost_and_nothing_old_comes_back(first: tuple[int, int], steps: list[tuple[str, Any]]) -> None:
    job, expected = Job(first), {}
    for what, how in steps:
        if what == "write":
            job.write(how)
            for key, value in how.items():
                if value is None:
                    expected.pop(key, None)
                else:
                    expected[key] = value
        elif what == "compact":
            job.compact(*how)
        else:
            job.rescale(how)
        assert job.content() == expected


def test_compaction_leaves_out_what_the_slot_does_not_have() -> None:
    job = Job((1, 1))
    job.write({("a", group, 0): group for group in range(GROUPS)})
    (whole,) = job.chains[0]
    job.rescale((2, 1))
    assert [handle[PART]["groups"] for chain in job.chains for handle in chain] == [
        {"a": [0, 6], "b": [0, 12]},
        {"a": [6, 12]},
    ]
    for slot in range(2):
        job.compact(slot, 0)
    assert all(PART not in handle and handle["size"] < whole["size"] for chain in job.chains for handle in chain)
    assert job.content() == {("a", group, 0): group for group in range(GROUPS)}
