"""How a delta says what changed under a key, for each kind of state, and what it makes of what was there.

Values are replaced. The others are too large for that, so a delta holds the part of them that changed:

* a **list** from the first index on that changed: `(index, elements)`
* a **map**'s entries: `(map keys, values, removed map keys)`
* the **timers** of a key: `(registered timestamps, removed timestamps)`

Applied to any content that the key had between the delta's base and its barrier, a change gives the content at the barrier.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from firesteel.errors import RestoreError

TTL = "+ttl"
"""Ends the kind of states with time-to-live: their values are pairs (value, time)."""


class _Layout(NamedTuple):
    """Of one kind of state."""

    apply: Callable[[Any, Any], Any]
    write: Callable[[Any], Any]


def _splice(content: list[Any] | None, change: tuple[int, tuple[Any, ...]]) -> list[Any]:
    start, elements = change
    content = [] if content is None else content
    if start > len(content):
        raise RestoreError(f"a list goes on with element {start}, but has no element {len(content)}")
    content[start:] = elements
    return content


def _write_list(content: list[Any]) -> tuple[int, tuple[Any, ...]]:
    return 0, tuple(content)


_MapChange = tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]


def _update(content: dict[Any, Any] | None, change: _MapChange) -> dict[Any, Any]:
    keys, values, removed = change
    content = {} if content is None else content
    content.update(zip(keys, values, strict=True))
    for key in removed:
        content.pop(key, None)
    return content


def _write_map(content: dict[Any, Any]) -> _MapChange:
    return tuple(content), tuple(content.values()), ()


def _register(content: dict[int, None] | None, change: tuple[tuple[int, ...], tuple[int, ...]]) -> dict[int, None]:
    registered, removed = change
    content = {} if content is None else content
    content.update(dict.fromkeys(registered))
    for timestamp in removed:
        content.pop(timestamp, None)
    return content


def _write_timers(content: dict[int, None]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return tuple(content), ()


_LAYOUTS = {
    "list": _Layout(_splice, _write_list),
    "map": _Layout(_update, _write_map),
    "timers": _Layout(_register, _write_timers),
}


def _layout_of(kind: str) -> _Layout | None:
    """None: every change is the value itself."""
    return _LAYOUTS.get(kind.removesuffix(TTL))


def whole(kind: str, content: dict[Any, Any]) -> list[Any]:
    """The changes that make this content from nothing, in the order of its keys."""
    layout = _layout_of(kind)
    return list(content.values()) if layout is None else list(map(layout.write, content.values()))


def whole_scan(kind: str, entries: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """The same, of everything that a table's scan gives: pairs of a key and its change."""
    layout = kind.removesuffix(TTL)
    if layout not in _LAYOUTS:
        return list(entries)
    content: dict[Any, Any] = {}
    for (key, part), value in entries:
        if layout == "list":
            content.setdefault(key, []).append(value)
        else:
            content.setdefault(key, {})[part] = value
    return list(zip(content, whole(kind, content), strict=True))


def merge(kind: str, content: dict[Any, Any], keys: list[Any], changes: list[Any], deleted: list[Any]) -> None:
    """Apply a delta to everything that is known of a state: key -> content."""
    layout = _layout_of(kind)
    if layout is None:
        content.update(zip(keys, changes, strict=True))
    else:
        for key, change in zip(keys, changes, strict=True):
            after = layout.apply(content.get(key), change)
            if after:
                content[key] = after
            else:
                content.pop(key, None)
    for key in deleted:
        content.pop(key, None)
