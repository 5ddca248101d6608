"""Windows' records combined before they are sent: what goes to the subtask of a key is one value for many records.

**Why nobody can tell.** A window takes records until its operator's watermark reaches its last timestamp. That watermark is
a minimum over the operator's channels, so while *this* channel has not sent such a watermark, a record that it sends to the
window is in time, and it does not matter when exactly it comes. So records may wait, combined, until just before the first
watermark on this channel that reaches the end of their window, however many epochs later. At a barrier what waits is saved
with the operator's state (waiting.py). Records behind this channel's own watermark are sent as they are and in their place,
since for them it does matter.

Each window has its own partial result, and gets what a channel has for it in the order of the records. So functions only
have to be associative, which they have to be for windows that merge, too.

An operator's watermark can be ahead of a channel's after all: the channel was idle before, or restored by a program that makes
watermarks in another way. Then a partial result may come too late for its window like a record, and is dropped like it.
That takes nothing but the number of records. It is known, and so is why windows with allowed lateness are not combined here
(they fire for every record) and those that give late records out are not, either.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd
from typing import Any

from firesteel.datastream.window import TimeWindow
from firesteel.graph import nodes
from firesteel.runtime.exchange import BATCH_RECORDS, KeyExchange, Route
from firesteel.runtime.failures import on_record
from firesteel.runtime.flow import MAX_WATERMARK, MIN_WATERMARK, Times, Values
from firesteel.runtime.windows.folding import folding_of
from firesteel.runtime.windows.panes import by_pane
from firesteel.runtime.windows.states import combined_kind
from firesteel.runtime.windows.waiting import Element, Waiting

MAX_PARTIALS = 1 << 18
"""How many wait at most, over all windows: some 50 MB of small ones."""

WORTH = 1.5
"""So many records for a partial result, at least, or it is not worth it: a partial result costs more than a record."""

PAUSE = 15
"""For how many epochs records are sent as they are after one in which it was not. Results are the same either way."""

SAVED = 2.0
"""So many partial results for a record since the last barrier, at most, are saved at a barrier, or they are sent instead: all
that waits is saved each time, so checkpoints would be much larger than what has changed."""


class _Waiting:
    """What waits for one window."""

    __slots__ = ("end", "partials", "records", "start")

    def __init__(self, start: int, size: int) -> None:
        self.start, self.end = start, start + size - 1
        self.partials: dict[Any, Any] = {}  # key -> reduced value or accumulator
        self.records = 0  # those of which this is the last window, so that each is counted once


class CombiningExchange(KeyExchange):
    """Records to the subtask that owns their key's group, combined with others of their key and window.

    :param restored: the receivers may know a watermark of this channel that this object has never seen. Until it has sent
        one of its own, it cannot tell which records are behind it.
    :param waiting: where what waits is saved at barriers. None: nothing waits over one.
    """

    def __init__(
        self, *place: Any, kind: nodes.Window, restored: bool, waiting: Waiting | None, **routing: Any
    ) -> None:
        super().__init__(*place, **routing)
        self._size, self._slide, self._offset = kind.assigner.size, kind.assigner.slide, kind.assigner.offset
        self._grain = gcd(self._size, self._slide)
        self._folding, self._kind = folding_of(kind), combined_kind(kind)
        self._restored = restored
        self._records = self._partials = self._pause = 0
        self._folded = 0  # since the last barrier: records, once for each of their windows
        self._unsaved = False
        self._saves = waiting is not None
        if waiting is not None:
            waiting.add(self)
        self._waiting: dict[int, _Waiting] = {}  # by start
        self._panes: dict[int, list[_Waiting]] = {}  # the last window first; none: records are sent as they are
        self._next_end = MAX_WATERMARK
        self._columns: list[tuple[Values, Values]] = [([], []) for _ in self._buffers]
        appends = [(keys.append, values.append) for keys, values in self._columns]
        self._targets_of = Route(appends, routing["groups"])

    # ---- records

    def push(self, values: Values, times: Times) -> None:
        unsure = self._restored and self._watermark == MIN_WATERMARK
        if self._pause or unsure or self._idle or times is None or None in times:  # nobody waits for an idle channel
            super().push(values, times)  # where a timestamp is missing, the receiver says so
            return
        for pane, some, stamps in by_pane(values, times, self._offset, self._grain, self._size == self._slide):
            waiting = self._panes.get(pane)
            if waiting is None:
                waiting = self._panes[pane] = self._windows(pane)
            if waiting:
                self._combine(waiting, some, stamps)
            else:
                starts = self._starts(pane)
                if starts:  # what waits for one of their windows came before them
                    self._send_on(starts[0] + self._size - 1)
                super().push(some, stamps)
        if self._count() > MAX_PARTIALS:
            self._send_on(MAX_WATERMARK)

    def _count(self) -> int:
        """How many partial results wait."""
        return sum(len(each.partials) for each in self._waiting.values())

    def _starts(self, pane: int) -> range:
        """Of the windows that a pane's records belong to, the last one first."""
        last = TimeWindow.get_window_start_with_offset(pane, self._offset, self._slide)
        return range(last, pane - self._size, -self._slide)

    def _windows(self, pane: int) -> list[_Waiting]:
        """The windows of a pane's records. None if one of them has ended for this channel, or if there are none."""
        starts = self._starts(pane)
        if not starts or starts[-1] + self._size - 1 <= self._watermark:
            return []
        for start in starts:
            if start not in self._waiting:
                self._waiting[start] = _Waiting(start, self._size)
        self._next_end = min(self._next_end, self._waiting[starts[-1]].end)
        return [self._waiting[start] for start in starts]

    def _combine(self, waiting: list[_Waiting], values: Values, times: list[int]) -> None:
        rest: Any = iter(values)
        count = 0
        try:
            keys = list(map(self._selector, rest))
            fold = self._folding.of(values)
            for each in waiting:
                rest = iter(values)
                count = fold(each.partials, keys, rest)
        except Exception as error:
            value = values[len(values) - rest.__length_hint__() - 1]
            raise on_record(self._downstream, value, self._explain(value, error)) from error
        waiting[0].records += count
        self._folded += count * len(waiting)
        self._unsaved = True
        if count < len(values):  # a record of None empties windows, so it has to come after what is before it
            self._send_on(MAX_WATERMARK)
            super().push(values[count:], times[count:])

    # ---- time

    def advance(self, watermark: int) -> None:
        if watermark > self._watermark:
            if self._next_end <= watermark:
                self._send_on(watermark)
            self._panes.clear()
        super().advance(watermark)

    def idle(self, idle: bool) -> None:
        if idle:  # others do not wait for this channel any more, so this is when its records are in time
            self._send_on(MAX_WATERMARK)
        super().idle(idle)

    def flush(self, barrier: bool = False) -> None:
        if barrier:
            if not self._saves or (self._unsaved and self._count() > SAVED * self._folded):
                self._send_on(MAX_WATERMARK)
            self._folded = 0
        self._pause = max(0, self._pause - 1)
        if self._records < WORTH * self._partials:
            self._send_on(MAX_WATERMARK)
            self._pause = PAUSE
        self._records = self._partials = 0
        super().flush(barrier)

    # ---- as state

    def unsaved(self) -> bool:
        return self._unsaved

    def elements(self) -> Iterator[Element]:
        self._unsaved = False
        for start, waiting in sorted(self._waiting.items()):
            keys, values = tuple(waiting.partials), tuple(waiting.partials.values())
            yield Element(self._kind, start, waiting.end + 1, keys, values, waiting.records)

    # ---- sending

    def _send_on(self, watermark: int) -> None:
        """What waits for windows that end with this watermark, or before it."""
        self._panes.clear()
        for start, waiting in sorted(self._waiting.items()):
            if waiting.end > watermark:
                break
            self._send_window(waiting)
            del self._waiting[start]
            self._unsaved = True
        self._next_end = min((each.end for each in self._waiting.values()), default=MAX_WATERMARK)

    def _send_window(self, waiting: _Waiting) -> None:
        targets_of, key = self._targets_of, None
        try:
            for key, value in waiting.partials.items():
                if value is not None:
                    add_key, add_value = targets_of[key]
                    add_key(key)
                    add_value(value)
        except Exception as error:
            raise on_record(self._downstream, waiting.partials[key], error) from error
        partials = sum(len(keys) for keys, _ in self._columns)
        records = waiting.records
        self._records, self._partials = self._records + records, self._partials + partials
        for target, buffer, (keys, values) in zip(self._targets, self._buffers, self._columns, strict=True):
            for begin in range(0, len(keys), BATCH_RECORDS):
                some = keys[begin : begin + BATCH_RECORDS]
                mine = records * len(some) // partials  # as if all keys had as many; what is left goes to the last
                records, partials = records - mine, partials - len(some)
                buffer.note((waiting.start, some, values[begin : begin + BATCH_RECORDS], mine), len(some))
                if buffer.full:
                    self._close(target, buffer)
            keys.clear()
            values.clear()
