"""Time-to-live: a state's values are kept with the time of their last use, and are gone when it is long enough ago.

Everything here has the shape of what a table gives, so the states above know nothing of it: accessors that wrap, check
and unwrap, around the accessors of a table whose values are pairs (value, time). Values, map entries and list elements
expire one by one, when they are met on access, and in the background by a tour through the table that looks at a slice of
it each time. Whatever is removed is a change like others, part of the next delta.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from firesteel.datastream.state import StateTtlConfig
from firesteel.state.store import (
    Accessors,
    CurrentKey,
    Entry,
    ListAccessors,
    ListTable,
    MapAccessors,
    MapTable,
    Table,
    ValueTable,
)

Now = Callable[[], int]

CLEANUP_SIZE = 1000
"""How many entries a round of cleanup looks at, at least: Flink's smaller sizes are for every access, ours an epoch's."""


@dataclass(frozen=True)
class TimeToLive:
    """What a `StateTtlConfig` says, as far as it makes a difference here."""

    millis: int
    renewed_by_reading: bool
    expired_visible: bool
    cleanup_size: int = field(compare=False)

    @staticmethod
    def of(config: StateTtlConfig | None) -> TimeToLive | None:
        if config is None or not config.is_enabled():
            return None
        strategies = config.get_cleanup_strategies()
        incremental = strategies.get_incremental_cleanup_strategy()
        if incremental is not None:
            cleanup_size = max(CLEANUP_SIZE, incremental.get_cleanup_size())
        else:  # a strategy for RocksDB alone asks for the background too; that store has no filter of its own
            cleanup_size = CLEANUP_SIZE if strategies.get_rocksdb_compact_filter_cleanup_strategy() is not None else 0
        return TimeToLive(
            millis=config.get_ttl().to_milliseconds(),
            renewed_by_reading=config.get_update_type() is StateTtlConfig.UpdateType.OnReadAndWrite,
            expired_visible=config.get_state_visibility() is StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp,
            cleanup_size=cleanup_size,
        )


class Cleanup:
    """Removes what has expired and is never met again, a slice of the table at a time."""

    def __init__(self, table: Table, ttl: TimeToLive, now: Now, expire: Callable[[Any], None]) -> None:
        self._table, self._ttl, self._now, self._expire = table, ttl, now, expire
        self._tour: Iterator[Entry] | None = None

    def run(self) -> None:
        """Look at the next slice; after the last one the tour begins anew."""
        if self._tour is None:
            self._tour = self._table.scan()
        seen = 0
        last_alive = self._now() - self._ttl.millis
        for entry_key, (_, time) in islice(self._tour, self._ttl.cleanup_size):
            seen += 1
            if time <= last_alive:
                self._expire(entry_key)
        if seen < self._ttl.cleanup_size:
            self._tour = None


class _Key:
    __slots__ = ("key",)
    key: Any


def value_cleanup(table: ValueTable, ttl: TimeToLive, now: Now) -> Cleanup:
    return Cleanup(table, ttl, now, table.delete)


def map_cleanup(table: MapTable, ttl: TimeToLive, now: Now) -> Cleanup:
    current = _Key()
    remove = table.bind(current).remove

    def expire(entry_key: Any) -> None:
        current.key, map_key = entry_key
        remove(map_key)

    return Cleanup(table, ttl, now, expire)


def list_cleanup(table: ListTable, ttl: TimeToLive, now: Now) -> Cleanup:
    current = _Key()
    inner = table.bind(current)

    def expire(entry_key: Any) -> None:
        """All of the list's, so its elements move only once."""
        current.key = entry_key[0]
        last_alive = now() - ttl.millis
        elements = inner.get()
        alive = [element for element in elements if element[1] > last_alive]
        if len(alive) < len(elements):
            inner.update(alive)

    return Cleanup(table, ttl, now, expire)


def bind_value(table: ValueTable, current: CurrentKey, ttl: TimeToLive, now: Now) -> Accessors:
    read, write, clear = table.bind(current)
    millis, renewed, visible = ttl.millis, ttl.renewed_by_reading, ttl.expired_visible

    def value() -> Any:
        found = read()
        if found is None:
            return None
        value, time = found
        moment = now()
        if time + millis <= moment:
            clear()
            return value if visible else None
        if renewed and time != moment:
            write((value, moment))
        return value

    def update(value: Any) -> None:
        write(None if value is None else (value, now()))

    return value, update, clear


def bind_list(table: ListTable, current: CurrentKey, ttl: TimeToLive, now: Now) -> ListAccessors:
    read, append, append_all, replace, clear = table.bind(current)
    millis, renewed, visible = ttl.millis, ttl.renewed_by_reading, ttl.expired_visible

    def get() -> tuple[Any, ...]:
        elements = read()
        moment = now()
        last_alive = moment - millis
        alive = [element for element in elements if element[1] > last_alive]
        if renewed and any(time != moment for _, time in alive):
            replace([(value, moment) for value, _ in alive])
        elif len(alive) < len(elements):
            replace(alive)
        return tuple([value for value, _ in (elements if visible else alive)])

    def add(value: Any) -> None:
        append(_timed(value, now()))

    def add_all(values: Iterable[Any]) -> None:
        moment = now()
        append_all([_timed(value, moment) for value in values])

    def update(values: Iterable[Any]) -> None:
        moment = now()
        replace([_timed(value, moment) for value in values])

    return ListAccessors(get, add, add_all, update, clear)


def _timed(value: Any, moment: int) -> tuple[Any, int] | None:
    return None if value is None else (value, moment)  # which the table refuses


def bind_map(table: MapTable, current: CurrentKey, ttl: TimeToLive, now: Now) -> MapAccessors:
    inner = table.bind(current)
    find, write, remove, entries = inner.get, inner.put, inner.remove, inner.items
    millis, renewed, visible = ttl.millis, ttl.renewed_by_reading, ttl.expired_visible

    def get(map_key: Any) -> Any:
        found = find(map_key)
        if found is None:
            return None
        value, time = found
        moment = now()
        if time + millis <= moment:
            remove(map_key)
            return value if visible else None
        if renewed and time != moment:
            write(map_key, (value, moment))
        return value

    def put(map_key: Any, value: Any) -> None:
        write(map_key, (value, now()))

    def put_all(new: Mapping[Any, Any] | Iterable[tuple[Any, Any]]) -> None:
        moment = now()
        inner.put_all({map_key: (value, moment) for map_key, value in dict(new).items()})

    def contains(map_key: Any) -> bool:
        """Removes nothing that may still be seen, so that `get` after it gives what this promised."""
        found = find(map_key)
        if found is None:
            return False
        moment = now()
        if found[1] + millis <= moment:
            if not visible:
                remove(map_key)
            return visible
        if renewed and found[1] != moment:
            write(map_key, (found[0], moment))
        return True

    def items() -> Collection[tuple[Any, Any]]:
        moment = now()
        seen = []
        for map_key, (value, time) in list(entries()):
            if time + millis <= moment:
                remove(map_key)
                if not visible:
                    continue
            elif renewed and time != moment:
                write(map_key, (value, moment))
            seen.append((map_key, value))
        return seen

    def keys() -> Collection[Any]:
        return [map_key for map_key, _ in items()]

    def values() -> Collection[Any]:
        return [value for _, value in items()]

    def is_empty() -> bool:
        last_alive = now() - millis
        return inner.is_empty() if visible else not any(time > last_alive for _, time in inner.values())

    return MapAccessors(get, put, put_all, remove, contains, keys, values, items, is_empty, inner.clear)
