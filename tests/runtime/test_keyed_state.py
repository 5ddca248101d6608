"""Keyed state as functions use it: the five kinds, their names, and values that expire."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.common import Time, Types
from firesteel.datastream.functions import AggregateFunction
from firesteel.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from firesteel.errors import StateError
from firesteel.graph.keys import KeyGroups
from firesteel.runtime.keyed_state import KeyedState
from firesteel.runtime.ttl import CLEANUP_SIZE
from firesteel.state.hashmap import HashMapStore

TTL = 10


class Clock:
    now = 1000

    def __call__(self) -> int:
        return self.now


class Mean(AggregateFunction):
    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: int, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator: tuple[int, int]) -> float:
        return accumulator[0] / accumulator[1]

    def merge(self, a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
        return a[0] + b[0], a[1] + b[1]


def keyed_state(now: Callable[[], int] | None = None) -> KeyedState:
    keyed = KeyedState(HashMapStore(KeyGroups(128)), now or Clock())
    keyed.key = "k"
    return keyed


def total(a: int, b: int) -> int:
    return a + b


# ---- the five kinds


def test_each_key_has_a_value_of_its_own() -> None:
    keyed = keyed_state()
    state: Any = keyed.state(ValueStateDescriptor("last", Types.INT()))
    state.update(1)
    keyed.key = "other"
    assert state.value() is None
    state.update(2)
    keyed.key = "k"
    assert state.value() == 1
    state.update(None)
    assert state.value() is None
    keyed.key = "other"
    state.clear()
    assert len(keyed.store.table("last", "value")) == 0


def test_a_list_is_added_to_and_replaced() -> None:
    state: Any = keyed_state().state(ListStateDescriptor("seen", Types.INT()))
    assert list(state.get()) == []
    state.add(1)
    state.add_all([2, 3])
    assert list(state) == [1, 2, 3]
    state.update(value for value in (4, 5))
    assert list(state.get()) == [4, 5]
    state.update([])
    assert list(state.get()) == []
    with pytest.raises(StateError, match="None cannot be an element"):
        state.add(None)


def test_a_map_is_used_like_a_dict() -> None:
    keyed = keyed_state()
    state: Any = keyed.state(MapStateDescriptor("counts", Types.STRING(), Types.INT()))
    state["a"] = 1
    state.put_all({"b": 2, "c": 3})
    del state["c"]
    assert ("a" in state, "c" in state, state["a"], state["c"], list(state)) == (True, False, 1, None, ["a", "b"])
    assert dict(state.items()) == {"a": 1, "b": 2}
    assert (list(state.keys()), list(state.values()), state.is_empty()) == (["a", "b"], [1, 2], False)
    keyed.key = "other"
    assert state.is_empty()
    keyed.key = "k"
    state.clear()
    assert state.is_empty() and list(state.items()) == []


def test_reducing_and_aggregating_combine_what_is_added() -> None:
    keyed = keyed_state()
    reducing: Any = keyed.state(ReducingStateDescriptor("sum", total, Types.INT()))
    aggregating: Any = keyed.state(AggregatingStateDescriptor("mean", Mean(), Types.PICKLED_BYTE_ARRAY()))
    assert (reducing.get(), aggregating.get()) == (None, None)
    for number in (1, 2, 6):
        reducing.add(number)
        aggregating.add(number)
    assert (reducing.get(), aggregating.get()) == (9, 3.0)
    assert dict(keyed.store.table("mean", "aggregating").scan()) == {"k": (9, 3)}
    reducing.add(None)
    aggregating.clear()
    assert (reducing.get(), aggregating.get()) == (None, None)


# ---- names


def test_one_name_is_one_state() -> None:
    keyed = keyed_state()
    first = keyed.state(ValueStateDescriptor("x", Types.INT()))
    assert keyed.state(ValueStateDescriptor("x", Types.INT())) is first
    with pytest.raises(StateError, match=r"'x' is registered with type .* one name has one type"):
        keyed.state(ValueStateDescriptor("x", Types.STRING()))
    with pytest.raises(StateError, match="registered as value state and again as list state; one name has one type"):
        keyed.state(ListStateDescriptor("x", Types.INT()))
    with pytest.raises(StateError, match=r"registered with time-to-live None and again .*millis=10"):
        keyed.state(expiring(ValueStateDescriptor("x", Types.INT())))


def test_names_of_our_own_states_are_reserved() -> None:
    with pytest.raises(StateError, match="'/reduced' cannot have that name: those beginning with '/' are reserved"):
        keyed_state().state(ValueStateDescriptor("/reduced", Types.INT()))


def test_state_of_a_checkpoint_is_not_taken_for_another_kind() -> None:
    keyed = keyed_state()
    keyed.store.load("x", "value", ["k"], [1], [])
    with pytest.raises(StateError, match="'x' has no time-to-live already, here or in the checkpoint"):
        keyed.state(expiring(ValueStateDescriptor("x", Types.INT())))
    with pytest.raises(StateError, match="'x' is a value state already"):
        keyed.state(ReducingStateDescriptor("x", total, Types.INT()))
    state: Any = keyed.state(ValueStateDescriptor("x", Types.INT()))
    assert state.value() == 1


# ---- time-to-live


def expiring(descriptor: Any, **settings: Any) -> Any:
    builder = StateTtlConfig.new_builder(Time.milliseconds(TTL))
    for name, arguments in settings.items():
        getattr(builder, name)(*arguments)
    descriptor.enable_time_to_live(builder.build())
    return descriptor


def descriptors() -> list[StateDescriptor]:
    return [
        ValueStateDescriptor("v", Types.INT()),
        ListStateDescriptor("l", Types.INT()),
        MapStateDescriptor("m", Types.INT(), Types.INT()),
        ReducingStateDescriptor("r", total, Types.INT()),
        AggregatingStateDescriptor("a", Mean(), Types.PICKLED_BYTE_ARRAY()),
    ]


def test_everything_expires_when_its_time_is_up_and_not_before() -> None:
    clock = Clock()
    keyed = keyed_state(clock)
    value, elements, entries, reduced, mean = (keyed.state(expiring(descriptor)) for descriptor in descriptors())  # type: Any, Any, Any, Any, Any
    value.update(1)
    elements.add(1)
    entries.put(1, None)
    reduced.add(1)
    mean.add(1)
    clock.now += TTL - 1
    elements.add(2)
    entries.put(2, 2)
    assert (value.value(), elements.get(), dict(entries.items())) == (1, (1, 2), {1: None, 2: 2})
    assert (reduced.get(), mean.get(), entries.contains(1)) == (1, 1.0, True)
    clock.now += 1
    assert (value.value(), elements.get(), list(entries.items()), list(entries)) == (None, (2,), [(2, 2)], [2])
    assert (reduced.get(), mean.get(), entries.contains(1), list(entries.values())) == (None, None, False, [2])
    reduced.add(5)
    mean.add(5)
    assert (reduced.get(), mean.get()) == (5, 5.0)
    clock.now += TTL
    assert (elements.get(), entries.is_empty(), entries.get(2)) == ((), True, None)


def test_reading_renews_if_asked_to() -> None:
    clock = Clock()
    keyed = keyed_state(clock)
    value, elements, entries, reduced, mean = (
        keyed.state(expiring(descriptor, update_ttl_on_read_and_write=())) for descriptor in descriptors()
    )  # type: Any, Any, Any, Any, Any
    value.update(1)
    elements.add(1)
    entries.put(1, 1)
    entries.put(2, 2)
    reduced.add(1)
    mean.add(1)
    for _ in range(5):
        clock.now += TTL - 1
        assert (value.value(), elements.get(), entries.get(1), reduced.get(), mean.get()) == (1, (1,), 1, 1, 1.0)
    assert list(entries.keys()) == [1]


def test_what_has_expired_is_seen_once_more_if_asked_for() -> None:
    clock = Clock()
    keyed = keyed_state(clock)
    value, elements, entries, *_ = (
        keyed.state(expiring(descriptor, return_expired_if_not_cleaned_up=())) for descriptor in descriptors()
    )  # type: Any, Any, Any, Any
    value.update(1)
    elements.add(1)
    entries.put(1, 1)
    clock.now += TTL
    assert (entries.contains(1), entries.is_empty(), entries.get(1)) == (True, False, 1)
    assert (value.value(), elements.get()) == (1, (1,))
    assert (value.value(), elements.get(), entries.contains(1), entries.get(1)) == (None, (), False, None)


def test_time_to_live_that_is_disabled_is_none() -> None:
    keyed = keyed_state()
    disabled = (StateTtlConfig.UpdateType.Disabled,)
    keyed.state(expiring(ValueStateDescriptor("x", Types.INT()), set_update_type=disabled))
    assert [kind for _, kind, _ in keyed.store.tables()] == ["value"]


@pytest.mark.parametrize(
    ("settings", "examined"),
    [
        ({}, CLEANUP_SIZE),
        ({"cleanup_full_snapshot": ()}, CLEANUP_SIZE),
        ({"cleanup_in_rocksdb_compact_filter": (1000,), "disable_cleanup_in_background": ()}, CLEANUP_SIZE),
        ({"cleanup_incrementally": (10, False)}, CLEANUP_SIZE),
        ({"cleanup_incrementally": (1500, True), "disable_cleanup_in_background": ()}, 1500),
        ({"disable_cleanup_in_background": ()}, 0),
    ],
)
def test_the_background_looks_at_a_slice_each_time_and_gets_everywhere(settings: Any, examined: int) -> None:
    clock = Clock()
    keyed = keyed_state(clock)
    value: Any = keyed.state(expiring(ValueStateDescriptor("x", Types.INT()), **settings))
    for key in range(4000):
        keyed.key = key
        value.update(key)
        if key == 1999:
            keyed.store.table("x", "value+ttl").barrier(1)
    clock.now += TTL
    keyed.key = "lives"
    value.update(1)
    keyed.clean_up()
    table = keyed.store.table("x", "value+ttl")
    assert len(table) == 4001 - examined
    table.barrier(2)
    for _ in range(5):
        keyed.clean_up()
    if examined:
        assert dict(table.scan()) == {"lives": (1, clock.now)}
        assert set(table.barrier(3)[1]) == set(range(4000))


def test_a_long_list_is_cleaned_up_at_once() -> None:
    clock = Clock()
    keyed = keyed_state(clock)
    state: Any = keyed.state(expiring(ListStateDescriptor("x", Types.INT())))
    for number in range(3000):
        clock.now += number % 2  # what is old and what is new is mixed
        state.add(number)
        clock.now -= number % 2
    clock.now += TTL
    keyed.clean_up()
    assert [value for value, _ in dict(keyed.store.table("x", "list+ttl").scan()).values()] == list(range(1, 3000, 2))


KEYS, SMALL = st.sampled_from(["a", "b"]), st.integers(0, 3)
STEP = st.one_of(
    st.tuples(st.just("pass"), st.integers(1, TTL)),
    st.tuples(st.just("write"), KEYS, SMALL, SMALL),
    st.tuples(st.just("write"), KEYS, SMALL, SMALL),
    st.tuples(st.just("read"), KEYS, SMALL),
    st.tuples(st.just("read all"), KEYS),
    st.tuples(st.just("remove"), KEYS, SMALL),
    st.tuples(st.just("clean up")),
    st.tuples(st.just("barrier")),
)
STEPS = st.one_of(st.lists(STEP, max_size=8), st.lists(STEP, min_size=20, max_size=50))


@pytest.mark.parametrize("renewed", [False, True])
@given(steps=STEPS)
def test_a_map_with_time_to_live_is_a_dict_of_what_is_young_enough(renewed: bool, steps: list[Any]) -> None:
    """And everything that is removed on the way is in the deltas."""
    clock = Clock()
    keyed = keyed_state(clock)
    settings: Any = {"update_ttl_on_read_and_write": ()} if renewed else {}
    state: Any = keyed.state(expiring(MapStateDescriptor("x", Types.INT(), Types.INT()), **settings))
    table = keyed.store.table("x", "map+ttl")
    model: dict[tuple[str, int], tuple[int, int]] = {}
    restored = HashMapStore(KeyGroups(128)).table("x", "map+ttl")
    for number, (name, *arguments) in enumerate(steps):
        if name == "pass":
            clock.now += arguments[0]
            model = {entry: found for entry, found in model.items() if found[1] + TTL > clock.now}
        elif name == "clean up":
            keyed.clean_up()
            assert dict(table.scan()) == model
        elif name == "barrier":
            puts, deleted = table.barrier(number)
            table.completed(number)
            restored.load([key for key, _ in puts], [change for _, change in puts], deleted)
            assert dict(restored.scan()) == dict(table.scan())
        else:
            keyed.key, *rest = arguments
            touched = [entry for entry in model if entry[0] == keyed.key and (not rest or entry[1] == rest[0])]
            if name == "write":
                state.put(*rest)
                model[keyed.key, rest[0]] = rest[1], clock.now
            elif name == "remove":
                state.remove(rest[0])
                model.pop((keyed.key, rest[0]), None)
            else:
                if name == "read":
                    assert state.contains(rest[0]) == bool(touched)
                    assert state.get(rest[0]) == (model[touched[0]][0] if touched else None)
                else:
                    assert state.is_empty() == (not touched)
                    assert dict(state.items()) == {entry[1]: model[entry][0] for entry in touched}
                if renewed:
                    model.update({entry: (model[entry][0], clock.now) for entry in touched})
        assert {entry for entry, (_, time) in table.scan() if time + TTL > clock.now} == set(model)


@pytest.mark.parametrize("renewed", [False, True])
@given(steps=STEPS)
def test_a_list_with_time_to_live_holds_what_is_young_enough(renewed: bool, steps: list[Any]) -> None:
    clock = Clock()
    keyed = keyed_state(clock)
    settings: Any = {"update_ttl_on_read_and_write": ()} if renewed else {}
    state: Any = keyed.state(expiring(ListStateDescriptor("x", Types.INT()), **settings))
    table = keyed.store.table("x", "list+ttl")
    model: dict[str, list[tuple[int, int]]] = {"a": [], "b": []}
    restored = HashMapStore(KeyGroups(128)).table("x", "list+ttl")
    for number, (name, *arguments) in enumerate(steps):
        if name == "pass":
            clock.now += arguments[0]
            model = {key: [e for e in found if e[1] + TTL > clock.now] for key, found in model.items()}
        elif name == "clean up":
            keyed.clean_up()
            assert len(table) == sum(map(len, model.values()))
        elif name == "barrier":
            puts, deleted = table.barrier(number)
            table.completed(number)
            restored.load([key for key, _ in puts], [change for _, change in puts], deleted)
            assert dict(restored.scan()) == dict(table.scan())
        else:
            keyed.key = arguments[0]
            if name == "write":
                state.add(arguments[2])
                model[keyed.key].append((arguments[2], clock.now))
            elif name == "remove":
                state.update([arguments[1]])
                model[keyed.key] = [(arguments[1], clock.now)]
            else:
                assert list(state.get()) == [value for value, _ in model[keyed.key]]
                if renewed:
                    model[keyed.key] = [(value, clock.now) for value, _ in model[keyed.key]]
