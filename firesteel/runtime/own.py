"""Batches that a slot sends to itself: they stay where they are, instead of being pickled and sent through Spark.

Only those stay that nobody else has, or whose values are plain, so that it makes no difference who has them. And only as
long as they are not too much: Spark's shuffle can go to disk, a slot's memory cannot. What stays of an edge is received
before what does not, so behind a batch that has to go, all others of its edge go too until the level that takes them begins.
"""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Iterator
from sys import getsizeof
from typing import Any

from firesteel.common.plain import PLAIN, all_plain
from firesteel.runtime.flow import Batch, Values

MAX_BYTES = 64 << 20
"""How much stays in a slot at most."""

_SAMPLE = 61  # the size of every so many-th value stands for the others'
_OBJECTS = 4  # times its pickle is about what an object takes


class OwnBatches:
    """What one slot has sent to itself and not received yet."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._batches: dict[int, deque[tuple[int, Batch, int]]] = {}  # level -> edge, batch, bytes
        self._gone: dict[int, set[int]] = {}  # level -> edges of which a batch went through Spark
        self._bytes = 0

    def keep(self, level: int, edge: int, batch: Batch, alone: bool = False) -> bool:
        """Take a batch for a level, if it can stay. Its lists are copied; the sender goes on using them.

        :param alone: nobody else has its records or parts of them, so they need not be plain.
        :returns: whether it stays. If not, it has to be sent.
        """
        gone = self._gone.setdefault(level, set())
        size = None if edge in gone else _size(batch, alone)
        if size is None or self._bytes + size > self._max_bytes:
            gone.add(edge)
            return False
        self._bytes += size
        self._batches.setdefault(level, deque()).append((edge, _copy(batch), size))
        return True

    def take(self, level: int) -> Iterator[tuple[int, Batch]]:
        """The edges and batches of a level, in the order in which they were sent. One that was not taken stays."""
        self._gone.pop(level, None)
        batches = self._batches.get(level, deque())
        while batches:
            edge, batch, size = batches.popleft()
            self._bytes -= size
            yield edge, batch


def size_of(values: Values, alone: bool = False) -> int | None:
    """About how much memory they take. None if they cannot stay."""
    if not alone and not all_plain(values):
        return None
    sample = values[::_SAMPLE]
    try:
        return sum(map(_whole_size, sample)) * len(values) // len(sample) if sample else 0
    except Exception:  # noqa: BLE001  a record that cannot be pickled: whoever sends it says so
        return None


def _whole_size(value: Any) -> int:
    if type(value) is tuple:
        return getsizeof(value) + sum(map(_whole_size, value))
    return getsizeof(value) if type(value) in PLAIN else _OBJECTS * len(pickle.dumps(value))


def _size(batch: Batch, alone: bool) -> int | None:
    if type(batch) is list:
        return size_of(batch, alone)
    values, _, marks, _ = batch
    sizes = [size_of(values, alone)]
    for _, note in marks:
        if not isinstance(note, int):
            sizes += map(size_of, note[1:3])
    return None if None in sizes else sum(size for size in sizes if size is not None)


def _copy(batch: Batch) -> Batch:
    if type(batch) is list:
        return batch[:]
    values, times, marks, idle = batch
    return values[:], times and times[:], marks[:], idle
