"""Timers come out in order, whatever happened to others meanwhile, and leave nothing behind."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.errors import TimerError
from firesteel.graph.keys import KeyGroups
from firesteel.graph.settings import RocksDBSettings
from firesteel.state.rocksdb.cache import ObjectCache
from firesteel.state.rocksdb.database import Database
from firesteel.state.rocksdb.timers import RocksDBTimerTable
from firesteel.state.timers import MAX_TIME, TimerTable

KEYS, TIMES = st.sampled_from("abcde"), st.integers(-1, 2)
OPERATION = st.one_of(
    st.tuples(st.just("register"), KEYS, TIMES),
    st.tuples(st.just("register"), KEYS, TIMES),
    st.tuples(st.just("delete"), KEYS, TIMES),
    st.tuples(st.just("pop"), TIMES),
    st.tuples(st.just("fire"), TIMES, KEYS, TIMES),
)
OPERATIONS = st.one_of(st.lists(OPERATION, max_size=8), st.lists(OPERATION, min_size=20, max_size=60))


def timers() -> TimerTable:
    return TimerTable(KeyGroups(128))


@given(operations=OPERATIONS)
def test_timers_are_a_sorted_list(operations: list[tuple[Any, ...]]) -> None:
    table = timers()
    model: list[tuple[int, str]] = []  # in order of registration; sorting by time keeps it

    def pop(until: int) -> tuple[int, str] | None:
        due = sorted((timer for timer in model if timer[0] <= until), key=lambda timer: timer[0])
        result = table.pop(until)
        if not due:
            assert result is None
        else:
            assert result is not None and result[0] == due[0][0]
            if not table._firing:  # ties may change places only while that very time fires
                assert result == due[0]
            model.remove(result)
        return result

    for name, *arguments in operations:
        if name == "register":
            key, moment = arguments
            table.register(key, moment)
            if (moment, key) not in model:
                model.append((moment, key))
        elif name == "delete":
            key, moment = arguments
            table.delete(key, moment)
            if (moment, key) in model:
                model.remove((moment, key))
        elif name == "pop":
            pop(arguments[0])
        else:  # fire all that are due, the first of them registering another one
            until, key, moment = arguments
            while pop(until) is not None:
                if key is not None:
                    table.register(key, moment)
                    if (moment, key) not in model:
                        model.append((moment, key))
                    key = None
        assert table.earliest == min((moment for moment, _ in model), default=MAX_TIME)
        assert len(table) == len(model)
        assert sorted(table.scan()) == sorted(((key, moment), None) for moment, key in model)


def test_a_timer_deleted_while_its_time_fires_does_not_fire() -> None:
    table = timers()
    for key in "abcd":
        table.register(key, 5)
    assert table.pop(5) == (5, "a")
    table.delete("b", 5)
    assert [table.pop(5), table.pop(5), table.pop(5)] == [(5, "c"), (5, "d"), None]


def test_ties_come_in_the_order_of_registration() -> None:
    table = timers()
    for key in ("c", "a", "b", "a"):
        table.register(key, 5)
    table.delete("c", 5)
    table.register("c", 5)
    assert [table.pop(5), table.pop(5)] == [(5, "a"), (5, "b")]
    table.register("d", 5)
    assert [table.pop(5), table.pop(5), table.pop(5)] == [(5, "c"), (5, "d"), None]


def test_timers_registered_while_firing_are_seen() -> None:
    table = timers()
    table.register("a", 5)
    table.register("b", 5)
    assert table.pop(9) == (5, "a")
    table.register("a", 5)
    table.register("z", 2)
    assert [table.pop(9), table.pop(9), table.pop(9), table.pop(9)] == [(2, "z"), (5, "b"), (5, "a"), None]


def test_the_end_of_time_is_a_time_like_others() -> None:
    table = timers()
    assert table.earliest == MAX_TIME
    assert table.pop(MAX_TIME) is None
    table.register("a", MAX_TIME)
    assert table.pop(MAX_TIME - 1) is None
    assert table.pop(MAX_TIME) == (MAX_TIME, "a")
    assert table.pop(MAX_TIME) is None


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_times_are_whole_milliseconds_however_they_are_given(backend: str, tmp_path: Path) -> None:
    cache = ObjectCache(Database(str(tmp_path), RocksDBSettings()), 1 << 20)
    table = timers() if backend == "hashmap" else RocksDBTimerTable(cache, KeyGroups(8), "uid", "t")
    for given_as in (5.0, 5, 6, 6.0, 7.9, numpy.int64(7), "8"):
        table.register("a", given_as)  # type: ignore[arg-type]
    assert [repr(fired) for fired in table.due(10)] == ["(5, 'a')", "(6, 'a')", "(7, 'a')", "(8, 'a')"]
    for none in (None, "soon", object()):
        with pytest.raises(TimerError):
            table.register("a", none)  # type: ignore[arg-type]


def test_timers_that_come_and_go_leave_nothing_behind() -> None:
    """A timer moved at every record, as sessions do, is one timer."""
    table = timers()
    table.register("first", 0)  # so that the stale ones are never at the top of the heap
    for moment in range(1, 10_000):
        table.register("a", moment)
        table.delete("a", moment)
        table.register("a", 20_000)
        table.delete("a", 20_000)
    assert len(table._heap) < 100
    assert (len(table), len(table._due), len(table._firing)) == (1, 1, 0)
    assert table.barrier(1) == ([("first", ((0,), ()))], [])


def test_a_timer_that_fires_before_the_barrier_is_not_in_the_delta() -> None:
    table = timers()
    table.register("old", 1)
    table.barrier(1)
    table.completed(1)
    table.register("new", 2)
    table.delete("old", 1)
    table.register("old", 1)
    assert table.pop(1) == (1, "old")
    assert table.pop(2) == (2, "new")
    assert table.barrier(2) == ([("old", ((), (1,)))], [])


def test_many_keys_due_at_once_take_time_in_proportion() -> None:
    """A window ends for all keys at once. Quadratic would be minutes here."""
    table = timers()
    for key in range(200_000):
        table.register(key, 5)
    started = time.perf_counter()
    fired = 0
    while table.pop(5) is not None:
        fired += 1
        table.register("again", 4)  # earlier, so that the others are left and come back to
        assert table.pop(5) == (4, "again")
    assert fired == 200_000
    assert time.perf_counter() - started < 30
