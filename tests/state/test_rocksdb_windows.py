"""Values of windows in RocksDB: many windows, of any kind, found by window and by key, also after a restore."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from firesteel.common.storage import LocalStorage
from firesteel.datastream.window import CountWindow, GlobalWindow, TimeWindow
from firesteel.datastream.window.windows import Window
from firesteel.errors import StateError
from firesteel.graph.keys import KeyGroups, namespaced
from firesteel.graph.settings import RocksDBSettings
from firesteel.state.chains import deltas
from firesteel.state.hashmap import HashMapStore
from firesteel.state.rocksdb.state import RocksDBState
from firesteel.state.store import WindowTable
from tests.support.tiny_cache import TinyCache


@dataclass(frozen=True)
class Shift(Window):
    name: str

    def max_timestamp(self) -> int:
        return 7


class Unfindable(Window):
    def __init__(self) -> None:
        self.what = object()

    def max_timestamp(self) -> int:
        return 7


WINDOWS = [TimeWindow(n * 10 - 50, n * 10) for n in range(20)] + [CountWindow(3), GlobalWindow.get(), Shift("night")]
KEYS = ["a", ("b", 1), 2.5]


class Slot:
    def __init__(self, directory: Path) -> None:
        self.directory, self.storage = directory, LocalStorage(str(directory / "storage"))
        os.makedirs(self.storage.path("state"), exist_ok=True)

    def table(self, restored: list[dict[str, Any]], tiny: bool) -> WindowTable:
        self.state = RocksDBState(
            RocksDBSettings(), str(self.directory / "local"), "job", 0, self.storage, restored, {"op"}
        )
        if tiny:
            self.state._cache = TinyCache(self.state._database)
        return self.state.store("op", KeyGroups(16)).window_table("/contents", "reducing")


@pytest.mark.parametrize("tiny", [False, True])
def test_windows_of_every_kind_are_found_again(tiny: bool, tmp_path: Path) -> None:
    slot = Slot(tmp_path)
    table = slot.table([], tiny)
    expected = {}
    for window in WINDOWS:
        for number, key in enumerate(KEYS):
            table.put(namespaced(key, window), (str(window), number))
            expected[namespaced(key, window)] = (str(window), number)
    gone = namespaced("a", WINDOWS[0])
    table.delete(gone)
    del expected[gone]
    for key in KEYS:
        table.pane(WINDOWS[1]).delete(key)
        del expected[namespaced(key, WINDOWS[1])]
    _check(table, expected)
    slot.state.barrier(1)
    handles = slot.state.write(1, slot.storage, "state", [])
    slot.state.close()
    _check(slot.table(handles, tiny), expected)
    hashmap = HashMapStore(KeyGroups(16))
    for delta in deltas(slot.storage, handles):
        hashmap.load(delta.name, delta.kind, delta.keys, delta.values, delta.deleted)
    _check(hashmap.window_table("/contents", "reducing"), expected)


def _check(table: WindowTable, expected: dict[Any, Any]) -> None:
    assert dict(table.scan()) == expected and len(table) == len(expected)
    assert {type(window) for window in table.windows()} == {TimeWindow, CountWindow, GlobalWindow, Shift}
    assert set(table.windows()) == {key[1] for key in expected}
    for window in WINDOWS:
        pane = table.pane(window)
        assert dict(pane.scan()) == {key[0]: value for key, value in expected.items() if key[1] == window}
        for key in KEYS:
            assert pane.get(key) == table.get(namespaced(key, window)) == expected.get(namespaced(key, window))


def test_a_pane_may_lose_entries_while_it_is_scanned(tmp_path: Path) -> None:
    table = Slot(tmp_path).table([], tiny=True)
    pane = table.pane(TimeWindow(0, 5))
    for number in range(2000):
        pane.put(f"key {number}", number)
    seen = []
    for key, value in pane.scan():
        seen.append(value)
        pane.delete(key)
    assert sorted(seen) == list(range(2000))
    assert len(table) == 0 and table.windows() == []


def test_windows_that_cannot_be_found_again_are_refused(tmp_path: Path) -> None:
    table = Slot(tmp_path).table([], tiny=True)
    with pytest.raises(StateError, match=r"cannot be kept by the RocksDB backend.*frozen dataclass"):
        table.get(namespaced("a", Unfindable()))
