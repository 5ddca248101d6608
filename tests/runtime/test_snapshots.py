"""A slot's chain of state files stays short, and whatever it is made of restores to the same state."""

from __future__ import annotations

import queue
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from firesteel.common.storage import LocalStorage
from firesteel.errors import SerializationError, SlotLostError
from firesteel.graph.keys import KeyGroups
from firesteel.graph.shipping import pack_main_classes
from firesteel.runtime.compacting import COMPACT_FILES
from firesteel.runtime.keyed_state import KeyedState
from firesteel.runtime.snapshots import KeyedStore, Snapshots
from firesteel.state.compaction import compact
from firesteel.state.files import NO_GROUP, UNION, StateFile
from firesteel.state.hashmap import HashMapStore
from tests.support.waiting import PATIENCE_S


class SlotUnderTest:
    def __init__(self, directory: Path) -> None:
        (directory / "inc-1" / "state").mkdir(parents=True)
        self.directory = directory
        self.store = HashMapStore(KeyGroups(128))
        self.table = self.store.table("t", "value")
        self.messages: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        stores = [KeyedStore("op", self.store)]
        self.snapshots = Snapshots(
            LocalStorage(str(directory)), 1, 0, stores, [], pack_main_classes(), self.messages.put
        )

    def checkpoint(self, number: int, completes: bool = True) -> list[dict[str, Any]]:
        self.snapshots.barrier(number, "nonce", lambda: None)
        message = self.messages.get(timeout=30)
        assert message["type"] == "durable"
        if completes:
            self.snapshots.completed(number)
        return message["files"]  # type: ignore[no-any-return]

    def restored(self, chain: list[dict[str, Any]]) -> dict[Any, Any]:
        table = HashMapStore(KeyGroups(128)).table("t", "value")
        for handle in chain:
            with StateFile(str(self.directory / handle["file"]), handle["checksum"]) as file:
                for delta in file.deltas():
                    table.load(delta.keys, delta.values, delta.deleted)
        return dict(table.scan())


def test_long_chains_are_compacted_in_the_background(tmp_path: Path) -> None:
    slot = SlotUnderTest(tmp_path)
    chain: list[dict[str, Any]] = []
    number = 0
    while not any("-base-" in handle["file"] for handle in chain):
        number += 1
        assert number < 2000, "no compaction was ever used"
        slot.table.put(number % 50, number)
        if number % 3 == 0:
            slot.table.delete((number * 7) % 50)
        chain = slot.checkpoint(number)
        compaction = slot.snapshots._compactor._running
        if compaction is not None:
            compaction._process.wait(PATIENCE_S)  # so that the next checkpoint finds it done
    assert len(chain) <= COMPACT_FILES + 3
    assert slot.restored(chain) == dict(slot.table.scan())
    slot.snapshots.close()


def test_a_checkpoint_that_never_completed_leaves_no_hole(tmp_path: Path) -> None:
    slot = SlotUnderTest(tmp_path)
    slot.table.put("a", 1)
    slot.checkpoint(1)
    slot.table.put("b", 2)
    slot.checkpoint(2, completes=False)
    slot.table.put("c", 3)
    chain = slot.checkpoint(3)
    assert len(chain) == 2
    assert slot.restored(chain) == {"a": 1, "b": 2, "c": 3}
    slot.snapshots.close()


def test_every_kind_of_state_is_in_the_files_under_its_key_group(tmp_path: Path) -> None:
    """Entries of maps, lists and timers under that of their key, wherever it moves; what is of the subtask under none."""
    slot = SlotUnderTest(tmp_path)
    key = ("sensor", 7)
    keyed = KeyedState(slot.store)
    keyed.key = key
    slot.table.put(key, "v")
    slot.store.map_table("m").bind(keyed).put("x", 1)
    slot.store.list_table("l").bind(keyed).add("e")
    slot.store.timer_table("/timers").register(key, 5)
    slot.store.subtask_table("/time").put("watermark", 4)
    (handle,) = slot.checkpoint(1)
    with StateFile(str(tmp_path / handle["file"])) as file:
        found = {delta.name: delta for delta in file.deltas()}
        assert [delta.name for delta in file.deltas(lambda uid, group: group == NO_GROUP)] == ["/time"]
    group = slot.store.key_groups.of(key)
    assert {name: (delta.kind, delta.group, delta.keys) for name, delta in found.items()} == {
        "t": ("value", group, [key]),
        "m": ("map", group, [key]),
        "l": ("list", group, [key]),
        "/timers": ("timers", group, [key]),
        "/time": ("subtask", NO_GROUP, ["watermark"]),
    }
    slot.store.map_table("m").bind(keyed).remove("x")
    slot.store.timer_table("/timers").pop(5)
    handle = slot.checkpoint(2)[-1]
    with StateFile(str(tmp_path / handle["file"])) as file:
        assert {delta.name: (delta.group, delta.values, delta.deleted) for delta in file.deltas()} == {
            "m": (group, [], [key]),
            "/timers": (group, [((), (5,))], []),
        }
    slot.snapshots.close()


def test_files_say_which_operators_have_operator_state_in_them(tmp_path: Path) -> None:
    """So that a restore opens other slots' files only where it needs them; a compacted file says it too."""
    slot = SlotUnderTest(tmp_path)
    slot.table.put("a", 1)
    (keyed_only,) = slot.checkpoint(1)
    assert "operator_state" not in keyed_only
    slot.store.operator_list_table("u", UNION).add("x")
    slot.store.broadcast_table("b").put("rule", 1)
    chain = slot.checkpoint(2)
    assert [handle.get("operator_state") for handle in chain] == [None, {"op": ["broadcast", "operator-union"]}]
    compacted = compact(LocalStorage(str(tmp_path)), "compacted.state", chain)
    assert compacted["operator_state"] == {"op": ["broadcast", "operator-union"]}
    slot.snapshots.close()


def test_nothing_changed_means_no_new_file(tmp_path: Path) -> None:
    slot = SlotUnderTest(tmp_path)
    slot.table.put("a", 1)
    chain = slot.checkpoint(1)
    assert slot.checkpoint(2) == chain
    slot.snapshots.close()


def test_a_full_disk_declines_the_checkpoint_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: str, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("firesteel.common.storage.local.write_durable", full)
    slot = SlotUnderTest(tmp_path)
    slot.table.put("a", 1)
    slot.snapshots.barrier(1, "nonce", lambda: None)
    message = slot.messages.get(timeout=30)
    assert (message["type"], message["checkpoint"]) == ("declined", 1)
    assert "No space left" in message["why"]
    slot.snapshots.close()


def test_what_cannot_be_pickled_is_named_with_its_key_state_and_operator(tmp_path: Path) -> None:
    slot = SlotUnderTest(tmp_path)
    slot.table.put("fine", 1)
    slot.table.put("oven", threading.Lock())
    with pytest.raises(SerializationError, match=r"value state 't' of operator op holds .*lock.* under the key 'oven'"):
        slot.snapshots.barrier(1, "nonce", lambda: None)
    slot.snapshots.close()


def test_a_key_that_cannot_be_pickled_is_named(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Local:
        number: int

    slot = SlotUnderTest(tmp_path)
    slot.store.key_groups.of(Local(1))
    slot.table.put(Local(1), 1)
    with pytest.raises(SerializationError, match=r"holds the key .*Local\(number=1\) of type .*top level of a module"):
        slot.snapshots.barrier(1, "nonce", lambda: None)
    slot.snapshots.close()


def test_output_that_cannot_be_made_durable_declines_the_checkpoint_and_rolls_the_slot_back(tmp_path: Path) -> None:
    """Its committables must not be carried into the next checkpoint: nobody knows what of them is on the disk."""

    def broken() -> None:
        raise OSError(5, "Input/output error")

    slot = SlotUnderTest(tmp_path)
    slot.snapshots.barrier(1, "nonce", broken)
    assert slot.messages.get(timeout=30)["type"] == "declined"
    with pytest.raises(SlotLostError, match="Input/output error"):
        slot.snapshots.check()
    slot.snapshots.close()
