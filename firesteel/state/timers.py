"""Timers: which key is due at which time. Those that are due soon are in memory whatever the store; checkpointed like any
other state.

Timers of one timestamp are one dict, and a heap orders the timestamps, so a window that ends for 100,000 keys costs the
heap one entry. Timestamps whose timers were all deleted stay in the heap until it is mostly made of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterator
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Any, Protocol

from firesteel.errors import TimerError
from firesteel.graph.keys import KeyGroups
from firesteel.state.changes import Changes, latest
from firesteel.state.tables import CurrentKey, Entry, Table

MAX_TIME = 2**63 - 1
"""The end of time: the last watermark, and the earliest timer where there is none."""

_SPARE = 64  # as many stale timestamps in the heap are never worth rebuilding it


class Register(Protocol):
    """Registers a timer of the current key."""

    def __call__(self, timestamp: int) -> None: ...


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
        self._touched: dict[int, dict[Any, bool]] = {}  # those of _due to which timers came since the last barrier
        self._gone: dict[int, dict[Any, None]] = {}  # removed since, and there at the barrier

    def bind(self, current: CurrentKey) -> Register:
        """What registers a timer of the current key; one that is there already stays as it is."""
        find, gone = self._touched.get, self._gone

        def register(timestamp: int) -> None:
            keys = find(timestamp)
            if keys is None:
                timestamp = whole_time(timestamp)
                keys = self._touch(timestamp)
            key = current.key
            if key in keys:
                return
            if timestamp in gone and key in gone[timestamp]:
                del gone[timestamp][key]
                keys[key] = False
            else:
                keys[key] = True

        return register

    def _touch(self, timestamp: int) -> dict[Any, bool]:
        """Timers are about to come at this timestamp."""
        keys = self._due.get(timestamp)
        if keys is None:
            keys = self._due[timestamp] = {}
            heappush(self._heap, timestamp)
            if timestamp < self.earliest:
                self.earliest = timestamp
        self._touched[timestamp] = keys
        return keys

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
        self._touched.pop(timestamp, None)
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
        for keys in self._touched.values():
            keys.update(dict.fromkeys(keys, False))
        self._touched.clear()
        self._gone.clear()

    def _note_fresh(self) -> None:
        fresh = self._changes.fresh
        for timestamp, keys in self._touched.items():
            for key, new in keys.items():
                if new:
                    fresh[key, timestamp] = True
        for timestamp, removed in self._gone.items():
            for key in removed:
                fresh[key, timestamp] = False
        self._forget_fresh()

    def barrier(self, checkpoint: int) -> tuple[list[Entry], list[Any]]:
        self._note_fresh()
        changed: defaultdict[Any, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
        for (key, timestamp), registered in latest(self._changes.barrier(checkpoint)).items():
            changed[key][not registered].append(timestamp)
        return [(key, (tuple(new), tuple(gone))) for key, (new, gone) in changed.items()], []

    def touch(self) -> None:
        for keys in self._due.values():
            keys.update(dict.fromkeys(keys, True))
        self._touched.update(self._due)

    def completed(self, checkpoint: int) -> None:
        self._changes.completed(checkpoint)

    def forget_changes(self) -> None:
        self._forget_fresh()
        self._changes.forget()


def whole_time(timestamp: Any) -> int:
    """A timer's time as users give it.

    :raises TimerError: it is none.
    """
    if type(timestamp) is int:
        return timestamp
    if timestamp is None:
        raise TimerError(
            "a timer needs a time, and None was given: ctx.timestamp() is None on streams without timestamps. Use "
            "assign_timestamps_and_watermarks(...) first, or processing time"
        )
    try:
        return int(timestamp)
    except (TypeError, ValueError):
        raise TimerError(f"a timer's time is milliseconds since 1970 as an int, not {timestamp!r:.200}") from None


@dataclass(slots=True)
class _Key:
    key: Any
