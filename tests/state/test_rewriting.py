"""State files made of entries: what goes in comes out, over what was there or without it."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.errors import StateError
from firesteel.graph.keys import KeyGroups, encode_key
from firesteel.state.files import NO_GROUP
from firesteel.state.reading import Slice, StateId, contents
from firesteel.state.rewriting import NewEntry, NewState, SlotOrder, write_slot

GROUPS = 4
_of = KeyGroups(GROUPS).of

keys = st.integers(0, 12) | st.text(max_size=2) | st.tuples(st.integers(0, 3), st.booleans())
values = st.integers() | st.text(max_size=3)
CONTENTS = {
    "value": st.dictionaries(keys, values),
    "value+ttl": st.dictionaries(keys, st.tuples(values, st.integers(0, 10**13))),
    "list": st.dictionaries(keys, st.lists(values, min_size=1, max_size=4)),
    "map": st.dictionaries(keys, st.dictionaries(keys, values, min_size=1, max_size=4)),
    "timers": st.dictionaries(keys, st.dictionaries(st.integers(0, 99), st.none(), min_size=1, max_size=4)),
}


def new_entries(state: StateId, number: int, content: dict[Any, Any]) -> list[NewEntry]:
    """As they come out of the shuffle: sorted."""
    found = []
    for key, held in content.items():
        parts: list[tuple[int, bytes, Any, Any]] = [(0, b"", None, held)]
        if state.layout == "list":
            parts = [(index, b"", index, value) for index, value in enumerate(held)]
        elif state.layout == "map":
            parts = [(0, encode_key(part), part, value) for part, value in held.items()]
        elif state.layout == "timers":
            parts = [(time, b"", time, None) for time in held]
        for position, identity, part, stored in parts:
            value, time = stored if state.ttl else (stored, None)
            entry = pickle.dumps((key, None, part, value, time))
            found.append(NewEntry(number, _of(key), encode_key(key), position, identity, entry))
    return sorted(found)


def written(storage: Path, order: SlotOrder, entries: list[NewEntry], state: StateId) -> tuple[Slice, dict[Any, Any]]:
    handle = write_slot(order, entries)
    piece = Slice(str(storage), [handle] if handle else [], 0, range(GROUPS))
    return piece, {key: held for _, content in contents(state, piece) for key, held in content.items()}


@pytest.mark.parametrize("kind", CONTENTS)
def test_entries_come_back_and_are_laid_over_what_was_there(
    kind: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    state, other = StateId("op", "s", kind), StateId("op", "kept", "value")

    @settings(max_examples=40, deadline=None)
    @given(CONTENTS[kind], CONTENTS[kind])
    def check(before: dict[Any, Any], after: dict[Any, Any]) -> None:
        directory = tmp_path_factory.mktemp("state")
        order = SlotOrder(str(directory), 0, 1, [], [NewState(other), NewState(state)])
        base, found = written(directory, order, new_entries(state, 1, before), state)
        assert found == before
        order = SlotOrder(str(directory), 0, 1, [], [NewState(state, base)])
        assert written(directory, order, new_entries(state, 0, after), state)[1] == laid_over(state, before, after)
        order = SlotOrder(str(directory), 0, 1, [(state, base)], [NewState(other)])
        assert written(directory, order, [], state)[1] == before

    check()


def laid_over(state: StateId, before: dict[Any, Any], after: dict[Any, Any]) -> dict[Any, Any]:
    if state.layout in ("map", "timers"):
        return {key: {**before.get(key, {}), **after.get(key, {})} for key in {**before, **after}}
    return {**before, **after}


def test_a_slot_without_state_has_no_file(tmp_path: Path) -> None:
    assert write_slot(SlotOrder(str(tmp_path), 0, 1, [], [NewState(StateId("op", "s", "value"))]), []) is None
    assert list(tmp_path.iterdir()) == []


def test_operator_lists_are_numbered_in_the_order_of_their_positions(tmp_path: Path) -> None:
    state = StateId("op", "s", "operator-list")
    entries = [
        NewEntry(0, NO_GROUP, b"", position, b"", pickle.dumps((None, None, position, value, None)))
        for position, value in ((3, "a"), (17, "b"), (90, "c"))
    ]
    handle = write_slot(SlotOrder(str(tmp_path), 0, 1, [], [NewState(state)]), entries)
    assert handle is not None and handle["operator_state"] == {"op": ["operator-list"]}
    assert dict(contents(state, Slice(str(tmp_path), [handle], 0, [NO_GROUP]))) == {NO_GROUP: {0: "a", 1: "b", 2: "c"}}


def test_two_entries_for_one_place_are_refused(tmp_path: Path) -> None:
    state = StateId("op", "s", "value")
    entries = new_entries(state, 0, {5: "a"}) * 2
    with pytest.raises(StateError, match="state 's' of operator op has more than one row for the key 5"):
        write_slot(SlotOrder(str(tmp_path), 0, 1, [], [NewState(state)]), entries)
