"""Timers: which key is due at which time. Those that are due soon are in memory whatever the store; checkpointed like any
other state.

Timers of one timestamp are one dict, and a heap orders the timestamps, so a window that ends for 100,000 keys costs the
heap one entry. Timestamps whose timers were all deleted stay in the heap until it is mostly made of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Any

from firesteel.graph.keys import KeyGroups
from firesteel.state.changes import Changes, latest
from firesteel.state.tables import CurrentKey, Entry, Table

MAX_TIME = 2**63 - 1
"""The end of time: the last watermark, and the earliest timer where there is none."""

_SPARE = 64  # as many stale timestamps in the heap are never worth rebuilding it


class TimerTable(Table):
    """Timers of all keys. Entry keys of a scan are (key, timestamp); the values mean nothing."""

    composite = True

    def __init__(self, key_groups: KeyGroups) -> None:
        self.earliest = MAX_TIME
        """The earliest timer's timestamp, always current; MAX_TIME when there is none."""
        self._key_groups = key_groups
        self._due: dict[int, dict[Any, bool]] = {}  # timestamp -> key -> whether it came since the last barrier
        self._heap: list[int] = []  # every timestamp in _due, and stale ones
        self._firing: dict[int, list[Any]] = {}  # timestamp -> keys it had when its first timer fired, last first
        self._changes = Changes()
        self._touched: set[int] = set()  # timestamps at which timers came since the last barrier, and maybe went again
        self._gone: dict[int, dict[Any, None]] = {}  # removed since, and there at the barrier

    def bind(self, current: CurrentKey) -> Callable[[int], None]:
        """What registers a timer of the current key; one that is there already stays as it is."""
        due, find, heap, touch, gone = self._due, self._due.get, self._heap, self._touched.add, self._gone

        def register(timestamp: int) -> None:
            key = current.key
            keys = find(timestamp)
            if keys is None:
                keys = due[timestamp] = {}
                heappush(heap, timestamp)
                if timestamp < self.earliest:
                    self.earliest = timestamp
            elif key in keys:
                return
            touch(timestamp)
            if timestamp in gone and key in gone[timestamp]:
                del gone[timestamp][key]
                keys[key] = False
            else:
                keys[key] = True

        return register

    def register(self, key: Any, timestamp: int) -> None:
        """Add a timer; one that is there already stays as it is."""
        self.bind(_Key(key))(timestamp)

    def delete(self, key: Any, timestamp: int) -> None:
        """Remove a timer, if there is one."""
        keys = self._due.get(timestamp)
        if keys is not None and key in keys:
            if not keys.pop(key):
                self._gone.setdefault(timestamp, {})[key] = None
            if not keys:
                self._drop(timestamp)

    def pop(self, until: int) -> tuple[int, Any] | None:
        """The first of `due`."""
        return next(self.due(until), None)

    def due(self, until: int) -> Iterator[tuple[int, Any]]:
        """Remove the timers that are due at `until` one by one, the earliest first, and give their timestamps and keys.

        Timers may come and go meanwhile. Those of one timestamp come in the order in which they were registered, as long as
        the slot lives.
        """
        while (timestamp := self.earliest) <= until:
            keys = self._due.get(timestamp)
            if keys is None:  # none at all, and it is the end of time
                return
            # Looking the first key up in the dict itself each time would be quadratic in its size.
            firing = self._firing.get(timestamp)
            if not firing:
                firing = self._firing[timestamp] = list(reversed(keys))
            while firing and self.earliest == timestamp:
                key = firing.pop()
                new = keys.pop(key, None)
                if new is None:  # deleted meanwhile
                    continue
                if not new:
                    self._gone.setdefault(timestamp, {})[key] = None
                if not keys:
                    self._drop(timestamp)
                yield timestamp, key

    def _drop(self, timestamp: int) -> None:
        """A timestamp's last timer is gone."""
        due, heap = self._due, self._heap
        del due[timestamp]
        self._firing.pop(timestamp, None)
        self._touched.discard(timestamp)
        if timestamp == self.earliest:
            while heap and heap[0] not in due:
                heappop(heap)
            self.earliest = heap[0] if heap else MAX_TIME
        if len(heap) > 2 * len(due) + _SPARE:
            heap[:] = due
            heapify(heap)

    def scan(self, groups: Container[int] | None = None) -> Iterator[Entry]:
        of = self._key_groups.of
        for timestamp in sorted(self._due):
            for key in list(self._due.get(timestamp, ())):
                if groups is None or of(key) in groups:
                    yield (key, timestamp), None

    def __len__(self) -> int:
        return sum(map(len, self._due.values()))

    def load(self, keys: list[Any], values: list[Any], deleted: list[Any]) -> None:
        current = _Key(None)
        register = self.bind(current)
        for current.key, (registered, removed) in zip(keys, values, strict=True):
            for timestamp in registered:
                register(timestamp)
            for timestamp in removed:
                self.delete(current.key, timestamp)
        self._forget_fresh()

    def _forget_fresh(self) -> None:
        for timestamp in self._touched:
            keys = self._due[timestamp]
            keys.update(dict.fromkeys(keys, False))
        self._touched.clear()
        self._gone.clear()

    def _note_fresh(self) -> None:
        fresh = self._changes.fresh
        for timestamp in self._touched:
            for key, new in self._due[timestamp].items():
                if new:
                    fresh[key, timestamp] = True
        for timestamp, keys in self._gone.items():
            for key in keys:
                fresh[key, timestamp] = False
        self._forget_fresh()

    def barrier(self, checkpoint: int) -> tuple[list[Entry], list[Any]]:
        self._note_fresh()
        changed: defaultdict[Any, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
        for (key, timestamp), registered in latest(self._changes.barrier(checkpoint)).items():
            changed[key][not registered].append(timestamp)
        return [(key, (tuple(new), tuple(gone))) for key, (new, gone) in changed.items()], []

    def touch(self) -> None:
        for timestamp, keys in self._due.items():
            keys.update(dict.fromkeys(keys, True))
            self._touched.add(timestamp)

    def completed(self, checkpoint: int) -> None:
        self._changes.completed(checkpoint)

    def forget_changes(self) -> None:
        self._forget_fresh()
        self._changes.forget()


@dataclass(slots=True)
class _Key:
    key: Any
