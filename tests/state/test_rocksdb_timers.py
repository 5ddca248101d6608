"""Timers of which only a few are in memory come out like those that all are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.graph.keys import KeyGroups
from firesteel.graph.settings import RocksDBSettings
from firesteel.state.rocksdb.database import Database
from firesteel.state.rocksdb.timers import RocksDBTimerTable
from firesteel.state.timers import MAX_TIME, TimerTable
from tests.support.tiny_cache import TinyCache

KEYS, TIMES = st.sampled_from(["a", "b", ("c", 1), 2.5]), st.integers(-3, 12)
OPERATION = st.one_of(
    st.tuples(st.just("register"), KEYS, TIMES),
    st.tuples(st.just("register"), KEYS, TIMES),
    st.tuples(st.just("delete"), KEYS, TIMES),
    st.tuples(st.just("pop"), TIMES),
    st.tuples(st.just("fire"), TIMES, KEYS, TIMES),
)


@pytest.fixture(scope="module")
def create(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], RocksDBTimerTable]:
    database = Database(str(tmp_path_factory.mktemp("timers")), RocksDBSettings())
    made = iter(range(10**6))

    def table(near: int) -> RocksDBTimerTable:
        cache = TinyCache(database)
        cache.near_timers = near
        return RocksDBTimerTable(cache, KeyGroups(8), f"op {next(made)}", "t")

    return table


@settings(deadline=None, max_examples=150)
@given(operations=st.lists(OPERATION, min_size=1, max_size=40), near=st.integers(1, 6))
def test_timers_are_a_sorted_list(
    create: Callable[[int], RocksDBTimerTable], operations: list[tuple[Any, ...]], near: int
) -> None:
    table, model = create(near), TimerTable(KeyGroups(8))
    for name, *arguments in operations:
        if name in ("register", "delete"):
            getattr(table, name)(*arguments)
            getattr(model, name)(*arguments)
        elif name == "pop":
            found = table.pop(arguments[0])
            if found is None:
                assert model.pop(arguments[0]) is None
            else:  # which of one moment's comes first is left open
                assert found[0] == model.earliest
                model.delete(found[1], found[0])
        else:
            until, key, time = arguments
            fired = []
            for at, each in table.due(until):
                assert at == model.earliest
                model.delete(each, at)
                if not fired:
                    table.register(key, time)
                    model.register(key, time)
                fired.append((at, each))
                assert len(fired) < 100
            assert model.earliest > until
        assert table.earliest == model.earliest
        assert sorted(map(repr, table.scan())) == sorted(map(repr, model.scan()))
        assert len(table) == len(model)


def test_far_timers_are_not_in_memory(create: Callable[[int], RocksDBTimerTable]) -> None:
    table = create(100)
    table._cache.capacity = table._cache.room = 1000
    for number in range(20_000):
        table.register(f"key {number % 7}", (number * 7919) % 20_000)
    assert sum(map(len, table._due.values())) <= 101
    assert len(table._far) <= 1001
    fired = []
    for time, _ in table.due(MAX_TIME):
        assert sum(map(len, table._due.values())) <= 101
        fired.append(time)
    assert fired == list(range(20_000)) and table.earliest == MAX_TIME
