"""Typed keyed state, written once over the accessors of tables."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NoReturn

from firesteel.datastream.functions import AggregateFunction
from firesteel.datastream.state import (
    AggregatingState,
    AggregatingStateDescriptor,
    ListState,
    ListStateDescriptor,
    MapState,
    MapStateDescriptor,
    ReducingState,
    ReducingStateDescriptor,
    State,
    StateDescriptor,
    ValueState,
    ValueStateDescriptor,
)
from firesteel.errors import StateError, UserCodeError
from firesteel.runtime import ttl
from firesteel.runtime.ttl import Cleanup, Now, TimeToLive
from firesteel.state.store import TTL, Accessors, ListAccessors, MapAccessors, Store

RESERVED = "/"
"""Begins the names of our own states."""


def wall_clock() -> int:
    return time.time_ns() // 1_000_000


class NoKey:
    """The current key where there is none. Looking for its state fails, whatever state it is.

    :param why: what the error says.
    """

    def __init__(self, why: str) -> None:
        self._why = why

    def __hash__(self) -> NoReturn:
        raise StateError(self._why)

    def __repr__(self) -> str:
        return "no key"


_BEFORE_ANY = NoKey(
    "keyed state cannot be read or written in open(): it belongs to keys, and there is one only while a record or a timer is "
    "processed. Get the state in open(), and use it in process_element() or whatever the function is called for"
)


class KeyedState:
    """One operator's keyed state in one subtask. Setting `key` is all that switching to another key takes."""

    __slots__ = ("_cleanups", "_handles", "_now", "_prefix", "key", "store")

    def __init__(self, store: Store, now: Now = wall_clock) -> None:
        """
        :param now: the processing time in milliseconds, by which time-to-live goes.
        """
        self.key: Any = _BEFORE_ANY
        self.store = store
        self._now = now
        self._prefix = ""
        self._handles: dict[str, tuple[StateDescriptor, State]] = {}
        self._cleanups: list[Cleanup] = []

    def scoped(self, prefix: str) -> KeyedState:
        """States of their own, with a current key of their own, in the same store: under names that begin with this."""
        scope = KeyedState(self.store, self._now)
        scope._prefix, scope._cleanups = prefix, self._cleanups
        return scope

    def state(self, descriptor: StateDescriptor) -> State:
        """The state that is described, always the same one for a name.

        :raises StateError: the name is reserved, or in use for another type or kind of state.
        """
        name = descriptor.name
        known = self._handles.get(name)
        if known is not None:
            if known[0] is not descriptor:
                _check_same(known[0], descriptor)
            return known[1]
        if name.startswith(RESERVED):
            raise StateError(f"state {name!r} cannot have that name: those beginning with {RESERVED!r} are reserved")
        handle = self._create(descriptor, TimeToLive.of(descriptor.ttl_config))
        self._handles[name] = descriptor, handle
        return handle

    def keys(self, name: str) -> list[Any]:
        """The keys that have something in the state of that name, which is registered."""
        table = next(table for known, _, table in self.store.tables() if known == name)
        entry_keys = (entry_key for entry_key, _ in table.scan())
        return list(dict.fromkeys(entry_key[0] for entry_key in entry_keys) if table.composite else entry_keys)

    def clean_up(self) -> None:
        """Remove some of what has expired and nobody reads any more. To be called now and then, once an epoch."""
        for cleanup in self._cleanups:
            cleanup.run()

    def _create(self, descriptor: StateDescriptor, live: TimeToLive | None) -> State:
        if isinstance(descriptor, ValueStateDescriptor):
            return KeyedValueState(self._bind_value(descriptor, live))
        if isinstance(descriptor, ListStateDescriptor):
            return KeyedListState(self._bind_list(descriptor, live))
        if isinstance(descriptor, MapStateDescriptor):
            return KeyedMapState(self._bind_map(descriptor, live))
        if isinstance(descriptor, ReducingStateDescriptor):
            return KeyedReducingState(self._bind_value(descriptor, live), descriptor.reduce_function)
        if isinstance(descriptor, AggregatingStateDescriptor):
            return KeyedAggregatingState(self._bind_value(descriptor, live), descriptor.agg_function)
        raise StateError(f"{descriptor!r:.200} describes no keyed state")

    def _bind_value(self, descriptor: StateDescriptor, live: TimeToLive | None) -> Accessors:
        if live is None:
            return self.store.value_table(self._prefix + descriptor.name, descriptor.kind).bind(self)
        table = self.store.value_table(self._prefix + descriptor.name, descriptor.kind + TTL)
        self._cleanups.append(ttl.value_cleanup(table, live, self._now))
        return ttl.bind_value(table, self, live, self._now)

    def _bind_list(self, descriptor: StateDescriptor, live: TimeToLive | None) -> ListAccessors:
        if live is None:
            return self.store.list_table(self._prefix + descriptor.name, descriptor.kind).bind(self)
        table = self.store.list_table(self._prefix + descriptor.name, descriptor.kind + TTL)
        self._cleanups.append(ttl.list_cleanup(table, live, self._now))
        return ttl.bind_list(table, self, live, self._now)

    def _bind_map(self, descriptor: StateDescriptor, live: TimeToLive | None) -> MapAccessors:
        if live is None:
            return self.store.map_table(self._prefix + descriptor.name, descriptor.kind).bind(self)
        table = self.store.map_table(self._prefix + descriptor.name, descriptor.kind + TTL)
        self._cleanups.append(ttl.map_cleanup(table, live, self._now))
        return ttl.bind_map(table, self, live, self._now)


def _check_same(known: StateDescriptor, again: StateDescriptor) -> None:
    for what, before, now in (
        ("as", f"{known.kind} state", f"{again.kind} state"),
        ("with type", known.type_info, again.type_info),
        ("with time-to-live", TimeToLive.of(known.ttl_config), TimeToLive.of(again.ttl_config)),
    ):
        if before != now:
            raise StateError(
                f"state {known.name!r} is registered {what} {before} and again {what} {now}; one name has one type"
            )


# Handles are accessors under the names users know; slots, so that a call is one attribute and one function. Those of states
# that can be merged also have `take`, which removes what is stored and gives it, and `absorb`, which unites it with what is
# stored under another key: for windows that merge.


class KeyedValueState(ValueState[Any]):
    __slots__ = ("clear", "update", "value")
    value: Callable[[], Any]
    update: Callable[[Any], None]  # type: ignore[assignment]
    clear: Callable[[], None]

    def __init__(self, accessors: Accessors) -> None:
        self.value, self.update, self.clear = accessors


class KeyedListState(ListState[Any]):
    """`get` gives a tuple: what is not added through the state would be lost, so nothing can be added to it."""

    __slots__ = ("absorb", "add", "add_all", "clear", "get", "take", "update")
    get: Callable[[], tuple[Any, ...]]
    add: Callable[[Any], None]  # type: ignore[assignment]
    add_all: Callable[[Iterable[Any]], None]  # type: ignore[assignment]
    update: Callable[[Iterable[Any]], None]  # type: ignore[assignment]
    clear: Callable[[], None]

    def __init__(self, accessors: ListAccessors) -> None:
        self.get, self.add, self.add_all, self.update, self.clear = accessors
        self.take, self.absorb = _taking(self.get, self.clear), self.add_all


class KeyedMapState(MapState[Any, Any]):
    """`keys`, `values` and `items` are views, like those of a dict: adding or removing entries ends an iteration of them
    with RuntimeError, so iterate over a list of them for that; changing values is fine."""

    __slots__ = ("clear", "contains", "get", "is_empty", "items", "keys", "put", "put_all", "remove", "values")
    get: Callable[[Any], Any]  # type: ignore[assignment]
    put: Callable[[Any, Any], None]  # type: ignore[assignment]
    put_all: Callable[[Mapping[Any, Any] | Iterable[tuple[Any, Any]]], None]  # type: ignore[assignment]
    remove: Callable[[Any], None]  # type: ignore[assignment]
    contains: Callable[[Any], bool]  # type: ignore[assignment]
    keys: Callable[[], Collection[Any]]
    values: Callable[[], Collection[Any]]
    items: Callable[[], Collection[tuple[Any, Any]]]
    is_empty: Callable[[], bool]
    clear: Callable[[], None]

    def __init__(self, accessors: MapAccessors) -> None:
        self.get, self.put, self.put_all, self.remove, self.contains = accessors[:5]
        self.keys, self.values, self.items, self.is_empty, self.clear = accessors[5:]


class KeyedReducingState(ReducingState[Any]):
    """Adding None clears it, as in Flink."""

    __slots__ = ("absorb", "add", "clear", "get", "take")
    get: Callable[[], Any]
    add: Callable[[Any], None]  # type: ignore[assignment]
    clear: Callable[[], None]

    def __init__(self, accessors: Accessors, reduce: Callable[[Any, Any], Any]) -> None:
        read, write, clear = accessors

        def add(value: Any) -> None:
            if value is None:
                clear()
                return
            before = read()
            write(value if before is None else reduce(before, value))

        self.get, self.add, self.clear = read, add, clear
        self.take, self.absorb = _taking(read, clear), add


class KeyedAggregatingState(AggregatingState[Any, Any]):
    """What is stored is the accumulator. Adding None clears it, as in Flink."""

    __slots__ = ("absorb", "add", "clear", "get", "take")
    get: Callable[[], Any]
    add: Callable[[Any], None]  # type: ignore[assignment]
    clear: Callable[[], None]

    def __init__(self, accessors: Accessors, function: AggregateFunction) -> None:
        read, write, clear = accessors
        create, fold, result = function.create_accumulator, function.add, function.get_result

        def get() -> Any:
            accumulator = read()
            return None if accumulator is None else result(accumulator)

        def add(value: Any) -> None:
            if value is None:
                clear()
                return
            accumulator = read()
            write(fold(value, create() if accumulator is None else accumulator))

        def absorb(other: Any) -> None:
            accumulator = read()
            write(other if accumulator is None else merged(function, accumulator, other))

        self.get, self.add, self.clear = get, add, clear
        self.take, self.absorb = _taking(read, clear), absorb


def merged(function: AggregateFunction, one: Any, other: Any) -> Any:
    """
    :raises UserCodeError: there is nothing: a `merge` may be a stub where it is never called, and records would be lost here.
    """
    accumulator = function.merge(one, other)
    if accumulator is None:
        raise UserCodeError(
            f"{type(function).__name__}.merge() returned None: it must return the accumulator of all inputs, or records "
            f"would be lost. Session windows need it; others do without if pre_combine(False) is called on the windowed stream"
        )
    return accumulator


def _taking(read: Callable[[], Any], clear: Callable[[], None]) -> Callable[[], Any]:
    def take() -> Any:
        found = read()
        clear()
        return found

    return take
