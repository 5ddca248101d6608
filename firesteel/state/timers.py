"""Timers: which key is due at which time. In memory whatever the store, and checkpointed like any other state.

Timers of one timestamp are one dict, and a heap orders the timestamps, so a window that ends for 100,000 keys costs the
heap one entry. Timestamps whose timers were all deleted stay in the heap until it is mostly made of them.
"""

from __future__ import annotations

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
    """Timers of all keys. Entry keys are (key, timestamp); the values mean nothing."""

    composite = True

    def __init__(self, key_groups: KeyGroups) -> None:
        self.earliest = MAX_TIME
        """The earliest timer's timestamp, always current; MAX_TIME when there is none."""
        self._key_groups = key_groups
        self._due: dict[int, dict[Any, None]] = {}
        self._heap: list[int] = []  # every timestamp in _due, and stale ones
        self._firing: dict[int, list[Any]] = {}  # timestamp -> keys it had when its first timer fired, last first
        self._count = 0
        self._changes = Changes()
        self._fresh = self._changes.fresh
        """The net effect since the last barrier, True for registered and False for removed. An entry that is there when the
        opposite happens is taken out: all is again as it was at the barrier."""

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
        self._count += 1
        entry = (key, timestamp)
        if self._fresh.pop(entry, None) is None:
            self._fresh[entry] = True

    def delete(self, key: Any, timestamp: int) -> None:
        """Remove a timer, if there is one."""
        keys = self._due.get(timestamp)
        if keys is not None and key in keys:
            del keys[key]
            self._removed(key, timestamp, keys)

    def pop(self, until: int) -> tuple[int, Any] | None:
        """Remove the earliest timer that is due at `until` and give its timestamp and key.

        Timers of one timestamp come in the order in which they were registered, as long as the slot lives.
        """
        timestamp = self.earliest
        if timestamp > until:
            return None
        keys = self._due.get(timestamp)
        if keys is None:  # none at all, and it is the end of time
            return None
        key = keys.popitem()[0] if len(keys) == 1 else self._first(timestamp, keys)
        self._removed(key, timestamp, keys)
        return timestamp, key

    def _first(self, timestamp: int, keys: dict[Any, None]) -> Any:
        """Take the first key out. Looking it up in the dict itself each time would be quadratic in its size."""
        firing = self._firing.get(timestamp)
        while True:
            if not firing:
                firing = self._firing[timestamp] = list(reversed(keys))
            key = firing.pop()
            if key in keys:  # and was not deleted meanwhile
                del keys[key]
                return key

    def _removed(self, key: Any, timestamp: int, keys: dict[Any, None]) -> None:
        self._count -= 1
        entry = (key, timestamp)
        if self._fresh.pop(entry, None) is None:
            self._fresh[entry] = False
        if keys:
            return
        due, heap = self._due, self._heap
        del due[timestamp]
        self._firing.pop(timestamp, None)
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
        return self._count

    def load(self, keys: list[Any], values: list[Any], deleted: list[Any]) -> None:
        noted = dict(self._fresh)
        for key, timestamp in keys:
            self.register(key, timestamp)
        for key, timestamp in deleted:
            self.delete(key, timestamp)
        self._fresh.clear()
        self._fresh.update(noted)

    def barrier(self, checkpoint: int) -> tuple[list[Entry], list[Any]]:
        changes = latest(self._changes.barrier(checkpoint))
        puts: list[Entry] = [(entry, None) for entry, registered in changes.items() if registered]
        return puts, [entry for entry, registered in changes.items() if not registered]

    def completed(self, checkpoint: int) -> None:
        self._changes.completed(checkpoint)

    def forget_changes(self) -> None:
        self._changes.forget()
