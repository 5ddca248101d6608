"""What a database's checkpoints write, what they are restored from, and what happens when that is damaged."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from firesteel.common.storage import LocalStorage
from firesteel.errors import RestoreError, SerializationError, StateError
from firesteel.graph.keys import KeyGroups
from firesteel.graph.settings import RocksDBSettings
from firesteel.state.chains import deltas, is_native, verify
from firesteel.state.rocksdb import files
from firesteel.state.rocksdb.state import RocksDBState

Handles = list[dict[str, Any]]


class Place:
    """A machine with a slot on it, and a storage."""

    def __init__(self, directory: Path) -> None:
        self.storage, self.local = LocalStorage(str(directory / "storage")), directory / "local"
        os.makedirs(self.storage.path("state"))

    def slot(self, restored: Handles | None = None, job: str = "job", **settings: Any) -> RocksDBState:
        return RocksDBState(
            RocksDBSettings(**settings), str(self.local), job, 0, self.storage, restored or [], {"op", "other"}
        )

    def written(self, state: RocksDBState, number: int, base: Handles | None = None) -> Handles:
        state.barrier(number)
        handles = state.write(number, self.storage, "state", base or [])
        state.completed(number)
        return handles


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def filled(place: Place, keys: int = 20_000, **settings: Any) -> tuple[RocksDBState, Handles]:
    state = place.slot(**settings)
    table = state.store("op", KeyGroups(128)).value_table("t")
    for number in range(keys):
        table.put(f"key {number}", (number, "x" * 50))
    return state, place.written(state, 1)


def sizes(handles: Handles) -> int:
    return sum(handle["size"] for handle in handles)


def test_a_checkpoint_writes_what_changed_and_not_what_there_is(place: Place) -> None:
    state, first = filled(place)
    table = state.store("op", KeyGroups(128)).value_table("t")
    table.put("key 5", "new")
    second = place.written(state, 2, first)
    known = {handle["file"] for handle in first}
    new = [handle for handle in second if handle["file"] not in known]
    assert sizes(new) < sizes(first) / 10
    assert any(handle["file"] in known for handle in second)
    restored = place.slot(second)
    assert restored.store("op", KeyGroups(128)).value_table("t").get("key 5") == "new"
    third = place.written(restored, 3, second)  # goes on where the other one was
    assert sizes([handle for handle in third if handle not in second]) < sizes(first) / 10


def test_a_damaged_file_is_named(place: Place) -> None:
    state, handles = filled(place)
    state.close()
    table_file = next(handle for handle in handles if handle["name"].endswith(".sst"))
    path = Path(place.storage.path(table_file["file"]))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.unlink()  # the database may have had a link to it
    path.write_bytes(content)
    for read in (lambda: place.slot(handles), lambda: list(deltas(place.storage, handles))):
        with pytest.raises(
            RestoreError, match=rf"{path.name} is damaged: its checksum .* which the checkpoint recorded"
        ):
            read()
    with pytest.raises(RestoreError, match=path.name):
        verify(place.storage, table_file)
    path.unlink()
    with pytest.raises(RestoreError, match=rf"{path.name} cannot be read: No such file"):
        place.slot(handles)
    assert list(place.local.iterdir()) == []


def test_names_from_metadata_do_not_lead_out_of_the_directory(place: Place) -> None:
    state, handles = filled(place, 10)
    state.close()
    with pytest.raises(RestoreError, match="which no file of a RocksDB is"):
        place.slot([{**handles[0], "name": "../../etc/000001.sst"}, *handles[1:]])


def test_a_kind_of_the_future_is_refused() -> None:
    with pytest.raises(RestoreError, match="of kind 'papyrus', which this firesteel does not know"):
        is_native({"file": "f", "kind": "papyrus"})


def test_a_full_storage_declines_the_checkpoint_and_leaves_nothing_behind(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, first = filled(place)
    table = state.store("op", KeyGroups(128)).value_table("t")
    table.put("key 5", "new")
    state.barrier(2)
    before = set(place.storage.names("state"))

    def full(name: str, source: Any, source_name: str) -> None:
        Path(place.storage.path(name)).write_bytes(b"half of it")
        raise OSError(errno.ENOSPC, "No space left on device", name)

    with monkeypatch.context() as patch:
        patch.setattr(place.storage, "take", full)
        with pytest.raises(OSError, match="No space left"):
            state.write(2, place.storage, "state", first)
    assert set(place.storage.names("state")) == before
    table.put("key 6", "newer")
    restored = place.slot(place.written(state, 3, first)).store("op", KeyGroups(128)).value_table("t")
    assert (restored.get("key 5"), restored.get("key 6")) == ("new", "newer")


def test_what_a_dead_process_of_the_slot_left_is_used_and_removed(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, handles = filled(place)
    stranger = place.slot(job="another job")
    dead = Path(state._directory.path)
    for each in (state, stranger):
        each._directory._lock.release()  # as the kernel does when a process dies
    taken: list[str] = []
    monkeypatch.setattr(
        files, "_fetch", lambda handle, *rest, fetch=files._fetch: (taken.append(handle["name"]), fetch(handle, *rest))
    )
    restored = place.slot(handles)
    assert all(name.startswith("MANIFEST") for name in taken)
    assert len(restored.store("op", KeyGroups(128)).value_table("t")) == 20_000
    assert [path.name for path in place.local.iterdir()] == [Path(restored._directory.path).name] != [dead.name]


def test_a_local_copy_that_is_damaged_is_not_used(place: Place) -> None:
    state, handles = filled(place, 1000)
    state._directory._lock.release()
    for path in Path(state._directory.path).rglob("*.sst"):
        path.unlink()
        path.write_bytes(b"rubbish")
    assert len(place.slot(handles).store("op", KeyGroups(128)).value_table("t")) == 1000


def test_the_directory_of_a_living_slot_is_left_alone(place: Place) -> None:
    state, _ = filled(place, 10)
    place.slot().close()
    assert [path.name for path in place.local.iterdir()] == [Path(state._directory.path).name]


def test_state_of_operators_that_are_gone_is_dropped(place: Place) -> None:
    state = place.slot()
    for uid in ("op", "other"):
        state.store(uid, KeyGroups(128)).value_table("t").put("k", uid)
    handles = place.written(state, 1)
    restored = RocksDBState(RocksDBSettings(), str(place.local), "job", 1, place.storage, handles, {"op"})
    again = place.written(restored, 2)
    assert {(delta.uid, *delta.values) for delta in deltas(place.storage, again)} == {("op", "op")}


def test_a_local_directory_that_cannot_be_is_refused_with_the_setting_that_helps(place: Place) -> None:
    place.local.write_text("a file")
    with pytest.raises(StateError, match=r"no place for the state of slot 0 .*state\.backend\.rocksdb\.localdir"):
        place.slot()


def test_values_that_cannot_be_pickled_are_named_at_the_barrier(place: Place) -> None:
    state = place.slot()
    state.store("op", KeyGroups(128)).value_table("t").put("k", lambda: None)
    with pytest.raises(
        SerializationError, match=r"value state 't' of operator op holds .* under the key 'k'.*cannot be pickled"
    ):
        state.barrier(1)


def test_map_keys_without_canonical_bytes_are_refused_when_they_are_used(place: Place) -> None:
    class Current:
        key = "k"

    states = place.slot().store("op", KeyGroups(128)).map_table("seen").bind(Current())
    with pytest.raises(StateError, match=r"cannot be a key in the map state 'seen' with the RocksDB backend"):
        states.put(object(), 1)
    with pytest.raises(TypeError, match="unhashable"):
        states.put([], 1)


def test_memory_is_bounded_by_the_size_of_entries(place: Place) -> None:
    state = place.slot(object_cache_size=1 << 20)
    table = state.store("op", KeyGroups(128)).value_table("t")
    for number in range(20_000):
        table.put(number, "x" * 1000)
        assert table.get(number) is not None
    state.settle()
    assert 10 < table.held() < 1000  # type: ignore[attr-defined]
    assert len(table) == 20_000 and table.get(3) == "x" * 1000
