"""A source of consecutive numbers, for tests, examples and load."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from operator import index

from firesteel.connectors.base import (
    CHUNK,
    Assignment,
    EnumeratorContext,
    Json,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
)
from firesteel.connectors.splits import Split, SplitPlanner, by_subtask, cut
from firesteel.errors import ConfigurationError, RestoreError


class NumberSequenceSource(Source):
    """The numbers from `start` to `end`, both included, cut evenly into one ascending part per subtask.

    With `rate_per_second` the whole source (not each subtask) gives no more numbers than that, counted from
    the first epoch; an idle time is caught up on, a restart begins to count again.
    """

    def __init__(
        self,
        start: int,
        end: int,
        rate_per_second: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        try:
            start, end = index(start), index(end)
        except TypeError:
            raise ConfigurationError(
                f"a number sequence goes from one whole number to another, but was given {start!r} to {end!r}"
            ) from None
        if start > end:
            raise ConfigurationError(f"a number sequence ends at or after its start, but was given {start} to {end}")
        if rate_per_second is not None and rate_per_second <= 0:
            raise ConfigurationError(f"rate_per_second must be above 0 (None: no limit), but is {rate_per_second}")
        self.start = start
        self.end = end
        self.rate_per_second = rate_per_second
        self.clock = clock

    def create_enumerator(self, context: EnumeratorContext) -> SplitEnumerator:
        return NumberSequenceEnumerator(self, context)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return NumberSequenceReader()


class NumberSequenceEnumerator(SplitEnumerator):
    """Plans the sequence. A unit is a number."""

    def __init__(self, source: NumberSequenceSource, context: EnumeratorContext) -> None:
        self._source = source
        self._context = context
        self._pending = cut([(source.start, source.end + 1)], context.parallelism)
        self._planner = SplitPlanner(context.parallelism, self._next_split)
        self._started: float | None = None
        self._planned = 0

    def _next_split(self) -> Split | None:
        return Split("", *self._pending.popleft()) if self._pending else None

    def plan(self, budget: int) -> Assignment:
        rate = self._source.rate_per_second
        if rate is not None:
            now = self._source.clock()
            if self._started is None:
                self._started = now
            budget = min(budget, int(rate * (now - self._started)) - self._planned)
        planned = self._planner.plan(budget)
        units = sum(r.stop - r.start for r in planned)
        self._planned += units
        ranges = by_subtask(self._context.parallelism, planned)
        caught_up = rate is not None or self.finished()
        # the parts of a subtask are one split, since they are cut anew when they are restored
        splits = [[""] if names else [] for names in self._planner.open(bool(self._pending))]
        return Assignment(
            [[{"start": r.start, "stop": r.stop} for r in one] for one in ranges], units, caught_up, splits
        )

    def finished(self) -> bool:
        return not self._left()

    def _left(self) -> list[tuple[int, int]]:
        return sorted([*self._pending, *((split.position, split.stop) for split in self._planner.current())])

    def snapshot(self) -> Json:
        left = [list(part) for part in self._left()]
        parts = [[split.position, split.stop] if split is not None else None for split in self._planner.subtasks()]
        return {"start": self._source.start, "end": self._source.end, "left": left, "subtasks": parts}

    def restore(self, state: Json) -> None:
        source = self._source
        if (state["start"], state["end"]) != (source.start, source.end):
            raise RestoreError(
                f"source {self._context.uid!r} gives the numbers {source.start} to {source.end}, but the "
                f"checkpoint was taken from {state['start']} to {state['end']}: restore with the same "
                f"bounds, or give the source another uid to start over."
            )
        parts = state.get("subtasks", ())
        if len(parts) == self._context.parallelism:
            for subtask, part in enumerate(parts):
                if part is not None:
                    self._planner.resume(subtask, Split("", *part))
            self._pending = deque((start, stop) for start, stop in state["left"] if [start, stop] not in parts)
        else:  # cut anew, so that every subtask has some of what is left
            self._pending = cut([(start, stop) for start, stop in state["left"]], self._context.parallelism)

    def progress(self) -> float:
        total = self._source.end + 1 - self._source.start
        return 1.0 - sum(stop - start for start, stop in self._left()) / total


class NumberSequenceReader(SourceReader):
    """Counts."""

    def read(self, planned: Json) -> Iterator[list[int]]:
        stop = planned["stop"]
        for start in range(planned["start"], stop, CHUNK):
            yield list(range(start, min(start + CHUNK, stop)))
