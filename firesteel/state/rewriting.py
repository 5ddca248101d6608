"""A slot's state file made anew: of states that stay as they are, and of entries that come from elsewhere."""

from __future__ import annotations

import heapq
import pickle
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from firesteel.common.storage import open_storage
from firesteel.errors import StateError
from firesteel.graph.keys import namespaced
from firesteel.state.files import BROADCAST, Delta, StateFileWriter
from firesteel.state.layouts import whole
from firesteel.state.origin import FileHandle
from firesteel.state.reading import OpenFiles, Slice, StateId, contents

GroupContent = tuple[int, dict[Any, Any]]


class NewEntry(NamedTuple):
    """An entry of a new state. What comes first is what entries are sorted by; two with all of it equal are one too many."""

    state: int  # which one of the order's new states
    group: int
    identity: bytes  # of the key and its window
    position: int  # in a list, or a timer's timestamp
    part: bytes  # of the key in a map
    entry: bytes  # a pickle of (key, window, part, value, time)


@dataclass(frozen=True)
class NewState:
    """A state that entries are given for."""

    state: StateId
    base: Slice | None = None  # what the slot had of it, if that stays as far as there are no new entries


@dataclass(frozen=True)
class SlotOrder:
    """What the state file of one slot is made of."""

    storage: str  # URI of the savepoint
    slot: int
    checkpoint: int
    kept: Sequence[tuple[StateId, Slice]]
    new: Sequence[NewState]


def write_slot(order: SlotOrder, entries: Iterable[NewEntry]) -> FileHandle | None:
    """Write the file of a slot, durably apart from its name; None if there is nothing to write.

    :param entries: sorted. Those of a key group are in memory at a time.
    :raises StateError: there are two entries for the same place.
    """
    deltas = _deltas(order, iter(entries))
    first = next(deltas, None)
    if first is None:
        return None
    storage = open_storage(order.storage)
    name = f"slot-{order.slot}-{uuid.uuid4().hex}.state"
    with storage.stream(name) as out:
        writer = StateFileWriter(order.slot, order.checkpoint, out)
        writer.add(first)
        for delta in deltas:
            writer.add(delta)
        size, checksum = writer.end()
    storage.persist(name)
    return writer.handle_of(name, size, checksum)


def _deltas(order: SlotOrder, entries: Iterator[NewEntry]) -> Iterator[Delta]:
    with OpenFiles() as files:  # those of a slot's states are mostly the same
        for state, piece in order.kept:
            for group, content in contents(state, piece, files):
                yield _whole(state, group, content)
    waiting = groupby(entries, itemgetter(0))
    number, mine = next(waiting, (-1, iter(())))
    for index, new in enumerate(order.new):
        given: Iterator[GroupContent] = iter(())
        if number == index:
            given = _contents_of(new.state, mine)
        base = contents(new.state, new.base) if new.base is not None else iter(())
        for group, content in _laid_over(new.state, base, given):
            yield _whole(new.state, group, content)
        if number == index:
            number, mine = next(waiting, (-1, iter(())))


def _whole(state: StateId, group: int, content: dict[Any, Any]) -> Delta:
    if not state.keyed and state.kind != BROADCAST:
        content = dict(sorted(content.items()))  # a list is restored in this order
    return Delta(state.uid, state.name, state.kind, group, list(content), whole(state.kind, content), [])


def _laid_over(state: StateId, base: Iterator[GroupContent], given: Iterator[GroupContent]) -> Iterator[GroupContent]:
    """Both, group by group; where both have an entry the given one wins."""
    sources = (((group, rank, content) for group, content in each) for rank, each in enumerate((base, given)))
    for group, layers in groupby(heapq.merge(*sources, key=itemgetter(0, 1)), itemgetter(0)):
        merged: dict[Any, Any] = {}
        for _, _, content in layers:
            for key, found in content.items():
                if state.layout in ("map", "timers") and key in merged:
                    merged[key].update(found)
                else:
                    merged[key] = found
        yield group, merged


def _contents_of(state: StateId, entries: Iterator[NewEntry]) -> Iterator[GroupContent]:
    """As `layouts.merge` would leave it, group by group."""
    for group, mine in groupby(entries, itemgetter(1)):
        content: dict[Any, Any] = {}
        last: tuple[Any, ...] | None = None
        for each in mine:
            key, window, part, value, time = pickle.loads(each.entry)
            place = each[2:5]
            if place == last:
                raise _twice(state, key, window, part)
            last = place
            _add(state, content, key if window is None else namespaced(key, window), part, (value, time))
        yield group, content


def _add(state: StateId, content: dict[Any, Any], key: Any, part: Any, stored: tuple[Any, int | None]) -> None:
    value = stored if state.ttl else stored[0]
    layout = state.layout
    if layout == "list":
        content.setdefault(key, []).append(value)
    elif layout == "map":
        content.setdefault(key, {})[part] = value
    elif layout == "timers":
        content.setdefault(key, {})[part] = None
    elif layout == BROADCAST:
        content[part] = value
    elif not state.keyed:
        content[len(content)] = value
    else:
        content[key] = value


def _twice(state: StateId, key: Any, window: Any, part: Any) -> StateError:
    what = {"list": "position", "map": "map key", "timers": "timestamp", BROADCAST: "map key"}.get(state.layout)
    where = [f"the key {key!r:.200}"] if state.keyed else []
    where += [f"the window {window!r:.200}"] if window is not None else []
    where += [f"the {what or 'position'} {part!r:.200}"] if part is not None else []
    return StateError(
        f"the DataFrame for {state} has more than one row for {' and '.join(where)}: only one can be stored. Keys that are "
        f"equal in Python are one key (1, 1.0 and True). Remove the others, for example with dropDuplicates()"
    )
