"""The contract of every store, example by example. What holds for all of them at random is in test_deltas.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from firesteel.errors import RestoreError, StateError
from firesteel.state.store import NO_GROUP, Store, ValueTable

Create = Callable[[], Store]


class Current:
    key: Any = "k"


def test_nothing_changed_means_an_empty_delta(create: Create) -> None:
    table = create().value_table("t")
    table.put(1, "a")
    table.barrier(1)
    table.completed(1)
    assert table.barrier(2) == ([], [])


def test_restored_entries_are_not_changes(create: Create) -> None:
    store = create()
    store.load("v", "value", [1, 2], ["a", "b"], [])
    store.load("v", "value", [2], ["c"], [1])
    store.load("m", "map", ["k", "j"], [((1, 2), ("a", None), ()), ((3,), ("b",), ())], [])
    store.load("m", "map", ["k"], [((), (), (1,))], ["j"])
    store.load("l", "list", ["k", "j"], [(0, ("a", "b")), (0, ("c",))], [])
    store.load("l", "list", ["k"], [(0, ("d",))], ["j"])
    store.load("t", "timers", ["k"], [((5, 6), ())], [])
    store.load("t", "timers", ["k"], [((), (5,))], [])
    store.load("s", "subtask", ["w", "x"], [7, 8], [])
    store.load("s", "subtask", [], [], ["x"])
    assert {name: dict(table.scan()) for name, _, table in store.tables()} == {
        "v": {2: "c"},
        "m": {("k", 2): None},
        "l": {("k", 0): "d"},
        "t": {("k", 6): None},
        "s": {"w": 7},
    }
    assert all(table.barrier(1) == ([], []) for _, _, table in store.tables())
    assert all(len(table) == 1 for _, _, table in store.tables())


def test_one_name_for_two_kinds_of_state_is_refused(create: Create) -> None:
    store = create()
    store.table("t", "value")
    with pytest.raises(StateError, match="'t' is a value state already and cannot be a map state"):
        store.table("t", "map")


def test_switching_time_to_live_on_or_off_is_refused_and_says_so(create: Create) -> None:
    store = create()
    store.table("with", "list+ttl")
    store.table("without", "list")
    with pytest.raises(StateError, match=r"'with' has time-to-live already.* cannot be used without it"):
        store.table("with", "list")
    with pytest.raises(StateError, match=r"'without' has no time-to-live already.* cannot be used with it"):
        store.table("without", "list+ttl")


def test_kinds_of_the_future_are_refused(create: Create) -> None:
    for kind in ("tree", "timers+ttl"):
        with pytest.raises(StateError, match="does not know"):
            create().load("t", kind, [], [], [])


def test_a_scan_of_key_groups_gives_their_entries_and_no_others(create: Create) -> None:
    store = create()
    values, lists, maps, timers = (
        store.value_table("v"),
        store.list_table("l"),
        store.map_table("m"),
        store.timer_table("t"),
    )
    current = Current()
    add, put = lists.bind(current).add, maps.bind(current).put
    for number in range(500):
        current.key = f"key {number}"
        values.put(current.key, number)
        add(number)
        put("x", number)
        timers.register(current.key, number)
    values.delete("key 7")
    low, high = dict(values.scan(range(40))), dict(values.scan(range(40, 128)))
    assert {**low, **high} == {f"key {number}": number for number in range(500) if number != 7}
    assert low and all(store.key_groups[key] < 40 for key in low)
    for table in (lists, maps, timers):
        low, high = dict(table.scan(range(40))), dict(table.scan(range(40, 128)))
        assert len(low) + len(high) == 500
        assert low and all(store.key_groups[key] < 40 for key, _ in low)


def test_what_belongs_to_a_subtask_has_no_key_group(create: Create) -> None:
    table = create().subtask_table("s")
    table.put("watermark", 5)
    assert list(table.scan(range(128))) == []
    assert list(table.scan({NO_GROUP})) == [("watermark", 5)]


def test_an_equal_value_of_a_subtask_is_no_change(create: Create) -> None:
    """It is saved at every barrier, and a job that stands still shall write nothing."""
    table = create().subtask_table("s")
    table.put("watermark", {"at": 5})
    table.barrier(1)
    table.completed(1)
    table.put("watermark", {"at": 5})
    table.delete("never there")
    assert table.barrier(2) == ([], [])
    table.put("watermark", None)
    assert table.barrier(3) == ([], ["watermark"])


def test_one_changed_entry_of_a_large_map_is_one_entry_of_the_delta(create_with_deltas: Create) -> None:
    table = create_with_deltas().map_table("t")
    states = table.bind(Current())
    states.put_all(dict.fromkeys(range(1000), 0))
    table.barrier(1)
    table.completed(1)
    states.put(7, 1)
    states.remove(8)
    states.remove("never there")
    assert table.barrier(2) == ([("k", ((7,), (1,), (8,)))], [])
    states.clear()
    assert table.barrier(3) == ([], ["k"])


def test_a_delta_of_a_long_list_is_what_was_added(create_with_deltas: Create) -> None:
    table = create_with_deltas().list_table("t")
    states = table.bind(Current())
    states.add_all(range(1000))
    table.barrier(1)
    table.completed(1)
    states.add("a")
    states.add_all(["b"])
    assert table.barrier(2) == ([("k", (1000, ("a", "b")))], [])
    states.update([1, 2])
    assert table.barrier(3) == ([("k", (0, (1, 2)))], [])
    states.clear()
    assert table.barrier(4) == ([], ["k"])


def test_none_is_a_map_value_like_others(create: Create) -> None:
    states = create().map_table("t").bind(Current())
    states.put("there", None)
    assert (states.get("there"), states.contains("there"), list(states.items())) == (None, True, [("there", None)])
    assert (states.get("not"), states.contains("not"), states.is_empty()) == (None, False, False)


def test_iterating_a_map_while_changing_it(create: Create) -> None:
    """As with a dict: new values are fine, new entries are an error and not a silent surprise."""
    table = create().map_table("t")
    states = table.bind(Current())
    states.put_all({"a": 1, "b": 2})
    for map_key, value in states.items():
        states.put(map_key, value + 1)
    assert dict(states.items()) == {"a": 2, "b": 3}
    iterator = iter(states.keys())
    states.remove(next(iterator))
    with pytest.raises(RuntimeError, match="changed size"):
        next(iterator)
    for map_key in list(states.keys()):
        states.remove(map_key)
    assert states.is_empty() and len(table) == 0


def test_what_a_list_gives_cannot_be_changed_and_does_not_change(create: Create) -> None:
    states = create().list_table("t").bind(Current())
    mine = [1, 2]
    states.update(mine)
    mine.append(3)
    before = states.get()
    for element in before:
        states.add(element)
    assert (before, states.get()) == ((1, 2), (1, 2, 1, 2))


def test_none_is_no_element_of_a_list(create: Create) -> None:
    states = create().list_table("t").bind(Current())
    states.add(1)
    for change in (lambda: states.add(None), lambda: states.add_all([2, None]), lambda: states.update([None])):
        with pytest.raises(StateError, match="None cannot be an element"):
            change()
    assert states.get() == (1,)


def test_a_list_with_a_hole_is_not_restored(create: Create) -> None:
    with pytest.raises(RestoreError, match="goes on with element 2, but has no element 1"):
        create().load("l", "list", ["k", "k"], [(0, (1,)), (2, (3,))], [])


def test_without_checkpoints_nothing_is_remembered_about_what_is_gone(create: Create) -> None:
    store = create()
    current = Current()
    value, maps, lists = (
        store.value_table("v"),
        store.map_table("m").bind(current),
        store.list_table("l").bind(current),
    )
    for number in range(10):
        current.key = number
        value.put(number, number)
        maps.put(number, number)
        lists.add(number)
        store.timer_table("t").register(number, number)
        store.subtask_table("s").put(str(number), number)
        if number % 2:
            value.delete(number)
            maps.clear()
            lists.clear()
            store.timer_table("t").delete(number, number)
            store.subtask_table("s").delete(str(number))
    before = {name: dict(table.scan()) for name, _, table in store.tables()}
    store.forget_changes()
    assert {name: dict(table.scan()) for name, _, table in store.tables()} == before
    assert all(len(table) == 5 and table.barrier(1) == ([], []) for _, _, table in store.tables())


@pytest.mark.parametrize("general", [True, False])
def test_folding_records_into_values(create: Create, general: bool) -> None:
    table, current = create().value_table("t"), Current()
    fold = ValueTable.fold if general else type(table).fold
    step = fold(table, current, lambda record: record[0], lambda before, record: (before[0], before[1] + record[1]))
    assert [step(("k", 1)), step(("j", 2)), step(("k", 3))] == [("k", 1), ("j", 2), ("k", 4)]
    table.barrier(1)
    assert (step(("j", 5)), current.key) == (("j", 7), "j")
    table.delete("j")
    assert [step(("j", 1)), table.get("j")] == [("j", 1)] * 2


@pytest.mark.parametrize("general", [True, False])
def test_combining_records_with_values(create: Create, general: bool) -> None:
    def go_on(before: int, record: int) -> int | None:
        return before + record or None

    table = create().value_table("t")
    combine = ValueTable.combine if general else type(table).combine
    assert combine(table, ["k", "j", "k"], iter([1, 2, 3]), None, go_on) == 3
    table.barrier(1)
    assert combine(table, ["j", "k", "i"], iter([5, -4, 9]), None, go_on) == 3
    assert dict(table.scan()) == {"j": 7, "i": 9}  # a value of None is none
    assert combine(table, ["k", "i", "i", "j"], iter([8, 1, None, 1]), lambda record: record * 10, go_on) == 2
    assert dict(table.scan()) == {"j": 7, "i": 10, "k": 80}  # it stops before a record of None
    table.barrier(2)
    assert dict(table.scan()) == {"j": 7, "i": 10, "k": 80}


@pytest.mark.parametrize("general", [True, False])
def test_the_record_that_cannot_be_combined_is_the_last_one_taken(create: Create, general: bool) -> None:
    table, records = create().value_table("t"), iter([1, 2, "three", 4])
    combine = ValueTable.combine if general else type(table).combine
    with pytest.raises(TypeError):
        combine(table, ["k"] * 4, records, None, lambda before, record: before + record)
    assert next(records) == 4
