"""Looking at state and timers from outside, without changing them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

from firesteel.datastream.state import AggregatingStateDescriptor
from firesteel.datastream.time_domain import TimeDomain
from firesteel.errors import StateError
from firesteel.runtime.keyed_state import RESERVED, KeyedState
from firesteel.runtime.timers import EVENT_TIMERS, PROCESSING_TIMERS
from firesteel.runtime.ttl import TimeToLive
from firesteel.state.store import TTL

ANY: Any = object()
"""Stands for every key, since None could be one."""


class Timer(NamedTuple):
    """A registered timer."""

    time: int
    key: Any
    domain: TimeDomain


def state_of(keyed: KeyedState, name: str, now: int) -> dict[Any, Any]:
    """key -> what the state would give for it: a value, a list, or a dict. Copies; what has expired is left out."""
    kinds = {known: (kind, table) for known, kind, table in keyed.store.tables()}
    if name not in kinds:
        known = ", ".join(repr(each) for each in kinds if not each.startswith(RESERVED)) or "none"
        raise StateError(f"there is no state {name!r}; known are: {known}. States are known once open() asked for them")
    kind, table = kinds[name]
    alive, result = _reading(keyed, name, kind, now)
    layout = kind.removesuffix(TTL)
    found: dict[Any, Any] = {}
    for entry_key, stored in table.scan():
        if not alive(stored):
            continue
        value = copy.deepcopy(stored[0] if kind.endswith(TTL) else stored)
        if layout == "map":
            found.setdefault(entry_key[0], {})[entry_key[1]] = value
        elif layout == "list":
            found.setdefault(entry_key[0], []).append(value)
        else:
            found[entry_key] = result(value)
    return found


def empty_state_of(keyed: KeyedState, name: str) -> Any:
    """What a state gives for a key that has none."""
    kind = next(kind for known, kind, _ in keyed.store.tables() if known == name).removesuffix(TTL)
    return {} if kind == "map" else [] if kind == "list" else None


def timers_of(keyed: KeyedState, key: Any = ANY) -> list[Timer]:
    """The timers of a key or of all, earliest first."""
    found = []
    tables = {name: table for name, _, table in keyed.store.tables()}
    for name, domain in ((EVENT_TIMERS, TimeDomain.EVENT_TIME), (PROCESSING_TIMERS, TimeDomain.PROCESSING_TIME)):
        if name in tables:
            found += [Timer(time, owner, domain) for (owner, time), _ in tables[name].scan()]
    return sorted((timer for timer in found if key is ANY or timer.key == key), key=lambda timer: timer.time)


def _reading(keyed: KeyedState, name: str, kind: str, now: int) -> tuple[Callable[[Any], bool], Callable[[Any], Any]]:
    """Whether a stored entry is still there, and what is shown of its value."""
    registered = keyed._handles.get(name)
    descriptor = registered[0] if registered else None
    ttl = TimeToLive.of(descriptor.ttl_config) if descriptor is not None else None

    def alive(stored: Any) -> bool:
        return ttl is None or bool(stored[1] + ttl.millis > now)

    if isinstance(descriptor, AggregatingStateDescriptor):
        return alive, descriptor.agg_function.get_result
    return alive, lambda value: value
