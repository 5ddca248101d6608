"""Timers: which key is due at which time. In memory whatever the store, and checkpointed like any other state.

Timers of one timestamp are one dict, and a heap orders the timestamps, so a window that ends for 100,000 keys costs the
heap one entry. Timestamps whose timers were all deleted stay in the heap until it is mostly made of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterator
from heapq import heapify, heappop, heappush
from typing import Any

from firesteel.graph.keys import KeyGroups
from firesteel.state.changes import Changes, latest
from firesteel.state.tables import Entry, Table

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
        self._due: dict[int, dict[Any, None]] = {}
        self._heap: list[int] = []  # every timestamp in _due, and stale ones
        self._firing: dict[int, list[Any]] = {}  # timestamp -> keys it had when its first timer fired, last first
        self._changes = Changes()
        self._new: dict[int, dict[Any, None]] = {}  # registered since the last barrier, and not gone again
        self._gone: dict[int, dict[Any, None]] = {}  # removed since, and there at the barrier

    def register(self, key: Any, timestamp: int) -> None:
        """Add a timer; one that is there already stays as it is."""
        keys = self._due.get(timestamp)
        if keys is None:
            self._due[timestamp] = {key: None}
            heappush(self._heap, timestamp)
            if timestamp < self.earliest:
                self.earliest = timestamp
        elif key in keys:
            return
        else:
            keys[key] = None
        gone = self._gone.get(timestamp)
        if gone is not None and key in gone:
            del gone[key]
            return
        new = self._new.get(timestamp)
        if new is None:
            self._new[timestamp] = {key: None}
        else:
            new[key] = None

    def delete(self, key: Any, timestamp: int) -> None:
        """Remove a timer, if there is one."""
        keys = self._due.get(timestamp)
        if keys is not None and key in keys:
            del keys[key]
            self._note_removed(key, timestamp)
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
            new = self._new.get(timestamp)
            while firing and self.earliest == timestamp:
                key = firing.pop()
                if key not in keys:  # deleted meanwhile
                    continue
                del keys[key]
                if new is not None and key in new:
                    del new[key]
                else:
                    self._note_removed(key, timestamp)
                if not keys:
                    self._drop(timestamp)
                yield timestamp, key

    def _note_removed(self, key: Any, timestamp: int) -> None:
        new = self._new.get(timestamp)
        if new is not None and key in new:
            del new[key]
        else:
            self._gone.setdefault(timestamp, {})[key] = None

    def _drop(self, timestamp: int) -> None:
        """A timestamp's last timer is gone."""
        due, heap = self._due, self._heap
        del due[timestamp]
        self._firing.pop(timestamp, None)
        self._new.pop(timestamp, None)
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
        noted = self._new, self._gone
        self._new, self._gone = {}, {}
        for key, (registered, removed) in zip(keys, values, strict=True):
            for timestamp in registered:
                self.register(key, timestamp)
            for timestamp in removed:
                self.delete(key, timestamp)
        self._new, self._gone = noted

    def barrier(self, checkpoint: int) -> tuple[list[Entry], list[Any]]:
        fresh = self._changes.fresh
        for noted, registered in ((self._new, True), (self._gone, False)):
            for timestamp, keys in noted.items():
                for key in keys:
                    fresh[key, timestamp] = registered
            noted.clear()
        changed: defaultdict[Any, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
        for (key, timestamp), registered in latest(self._changes.barrier(checkpoint)).items():
            changed[key][not registered].append(timestamp)
        return [(key, (tuple(new), tuple(gone))) for key, (new, gone) in changed.items()], []

    def completed(self, checkpoint: int) -> None:
        self._changes.completed(checkpoint)

    def forget_changes(self) -> None:
        self._new.clear()
        self._gone.clear()
        self._changes.forget()
