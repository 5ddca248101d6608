"""Handing splits to subtasks and cutting them into an epoch's ranges: arithmetic that sources share."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

_NEXT = "next"


@dataclass
class Split:
    """What is left of one ordered part of the input: the units of [position, stop)."""

    name: str
    position: int
    stop: int
    whole: bool = False
    """Whether the split must be read in one range, because nobody knows where its records begin."""

    @property
    def left(self) -> int:
        return self.stop - self.position

    @property
    def id(self) -> str:
        """Names the split for as long as anything is left of it."""
        return split_id(self.name, self.stop)


@dataclass(frozen=True)
class Range:
    """What one subtask reads of one split in one epoch."""

    subtask: int
    name: str
    start: int
    stop: int
    end: int  # of the split


def split_id(name: str, stop: int) -> str:
    return f"{name}:{stop}"


class SplitPlanner:
    """Gives each subtask one split at a time and cuts the splits into ranges.

    `next_split` is asked only when a subtask has nothing left, so a source can find out about its splits as
    late as possible. None means there is none now; it is asked again at the next plan.
    """

    def __init__(self, parallelism: int, next_split: Callable[[], Split | None]) -> None:
        self._current: list[Split | None] = [None] * parallelism
        self._next_split = next_split
        self._first = 0

    def plan(self, budget: int) -> list[Range]:
        """At most `budget` units (a whole split may go beyond), no subtask more than its even share of them.

        The subtask that has least so far is served first, so many small splits spread evenly. Who comes first
        moves on from plan to plan; otherwise a budget smaller than the parallelism would starve the last
        subtasks.
        """
        parallelism = len(self._current)
        share = -(-budget // parallelism)
        taken = [0] * parallelism
        waiting = [(self._first + i) % parallelism for i in range(parallelism)]
        ranges: list[Range] = []
        while budget > 0 and waiting:
            subtask = min(waiting, key=taken.__getitem__)
            split = self._current[subtask] or self._next_split()
            if split is None:
                waiting.remove(subtask)
                continue
            units = split.left if split.whole else min(split.left, share - taken[subtask], budget)
            ranges.append(Range(subtask, split.name, split.position, split.position + units, split.stop))
            split.position += units
            self._current[subtask] = split if split.left else None
            taken[subtask] += units
            budget -= units
            self._first = (subtask + 1) % parallelism
            if taken[subtask] >= share:
                waiting.remove(subtask)
        return ranges

    def current(self) -> Iterator[Split]:
        """The splits that subtasks are reading."""
        return (split for split in self._current if split is not None)

    def subtasks(self) -> list[Split | None]:
        """Which split every subtask is reading."""
        return list(self._current)

    def resume(self, subtask: int, split: Split) -> None:
        """Give a split that was restored back to the subtask that had it."""
        self._current[subtask] = split

    def open(self, more: bool) -> list[list[str]]:
        """For every subtask the split that it has. One that has none waits for the next if there are more."""
        return [[split.id] if split is not None else [_NEXT] if more else [] for split in self._current]


def cut(ranges: Iterable[tuple[int, int]], parts: int) -> deque[tuple[int, int]]:
    """Cut ranges into at least `parts` pieces (as far as there are units) that are as even as they can be."""
    ranges = [(start, stop) for start, stop in ranges if start < stop]
    total = sum(stop - start for start, stop in ranges)
    pieces: deque[tuple[int, int]] = deque()
    for start, stop in ranges:
        # a range gets its fair number of pieces, rounded up; piece i ends at the i-th even cut
        count = min(stop - start, -(-(stop - start) * parts // total))
        cuts = [start + (stop - start) * i // count for i in range(count + 1)]
        pieces.extend(itertools.pairwise(cuts))
    return pieces


def by_subtask(parallelism: int, ranges: Iterable[Range]) -> list[list[Range]]:
    """The same ranges, one list per subtask."""
    lists: list[list[Range]] = [[] for _ in range(parallelism)]
    for planned in ranges:
        lists[planned.subtask].append(planned)
    return lists


def first_only(parallelism: int) -> list[list[str]]:
    """The splits of a source that is read by its first subtask, so that nobody waits for the others."""
    return [[""], *([] for _ in range(parallelism - 1))]
