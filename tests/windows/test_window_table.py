"""The table of windows' values: a dict of pairs, whatever way it is kept; its deltas make a copy of it."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.datastream.window import TimeWindow
from firesteel.graph.keys import KeyGroups, namespaced
from firesteel.state.hashmap import HashMapStore
from firesteel.state.windows import WindowTable

PAIRS = st.tuples(st.sampled_from("abc"), st.sampled_from([TimeWindow(0, 5), TimeWindow(5, 10)]))
STEPS = st.one_of(
    st.tuples(st.just("put"), PAIRS, st.integers()),
    st.tuples(st.just("put"), PAIRS, st.integers()),
    st.tuples(st.just("delete"), PAIRS),
    st.tuples(st.just("barrier"), st.booleans()),
    st.tuples(st.just("forget")),
)


class Current:
    key: Any = None


def table() -> WindowTable:
    return HashMapStore(KeyGroups(128)).window_table("/window-contents", "reducing")


@settings(deadline=None)
@given(steps=st.lists(STEPS, max_size=40), bound=st.booleans())
def test_it_is_a_dict_and_its_deltas_make_a_copy(steps: list[Any], bound: bool) -> None:
    values, model, restored = table(), {}, table()
    current, checkpoint, deltas = Current(), 0, True
    read, write, clear = values.bind(current)
    for what, *arguments in steps:
        if what in ("put", "delete"):
            entry = current.key = namespaced(*arguments[0])
            if what == "put":
                write(arguments[1]) if bound else values.put(entry, arguments[1])
                model[entry] = arguments[1]
            else:
                clear() if bound else values.delete(entry)
                model.pop(entry, None)
            assert read() == values.get(entry) == model.get(entry)
        elif what == "forget":
            values.forget_changes()
            deltas = False  # nobody will ask for any more
        else:
            checkpoint += 1
            puts, deleted = values.barrier(checkpoint)
            restored.load([key for key, _ in puts], [value for _, value in puts], deleted)
            if arguments[0]:
                values.completed(checkpoint)
            if deltas:
                assert dict(restored.scan()) == model
    assert dict(values.scan()) == model and len(values) == len(model)


def test_windows_that_are_empty_and_told_are_not_kept() -> None:
    values, entry = table(), namespaced("a", TimeWindow(0, 5))
    values.put(entry, 1)
    values.barrier(1)
    values.completed(1)
    values.delete(entry)
    assert values.barrier(2) == ([], [entry])
    assert values.windows() == [TimeWindow(0, 5)]  # checkpoint 2 may yet be dropped
    assert values.barrier(3) == ([], [entry])
    values.completed(3)
    assert values.barrier(4) == ([], [])
    assert values.windows() == []


def test_a_restored_entry_is_found_by_an_equal_pair() -> None:
    values = table()
    values.load([namespaced("a", TimeWindow(0, 5))], [1], [])
    assert values.get(("a", (0, 5), ...)) == 1
