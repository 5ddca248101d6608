"""Sources for tests of what a job does when things go wrong."""

from __future__ import annotations

import glob
import itertools
import os
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from firesteel.common.crashpoints import crash_point
from firesteel.common.typeinfo import TypeInformation
from firesteel.connectors.base import (
    Aside,
    Assignment,
    EnumeratorContext,
    Json,
    PrepareContext,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
    Timestamped,
)

_CHUNK = 20


class FailingSource(Source):
    """Another source, which fails as soon as a checkpoint of the job is complete: there is then something to restore.

    :param failures: in how many incarnations it fails; from the next on it reads to the end.
    :param checkpoints: how many an incarnation has to complete first. With 0 it fails at once, or when it starts.
    """

    def __init__(self, source: Source, failures: int = 1, checkpoints: int = 1) -> None:
        self.source, self.failures, self.checkpoints = source, failures, checkpoints
        self.replayable, self.bounded = source.replayable, source.bounded

    def prepare(self, context: PrepareContext) -> Source:
        return FailingSource(self.source.prepare(context), self.failures, self.checkpoints)

    def create_enumerator(self, context: EnumeratorContext) -> SplitEnumerator:
        return self.source.create_enumerator(context)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        reader = self.source.create_reader(context)
        fails = context.incarnation <= self.failures
        return _FailingReader(reader, context, self.checkpoints) if fails else reader

    def get_produced_type(self) -> TypeInformation | None:
        return self.source.get_produced_type()


class _FailingReader(SourceReader):
    def __init__(self, reader: SourceReader, context: ReaderContext, checkpoints: int) -> None:
        self._reader, self._context, self._checkpoints = reader, context, checkpoints
        self.side_by_side = reader.side_by_side

    def splits_of(self, planned: Json) -> Sequence[str]:
        return self._reader.splits_of(planned)

    def read(self, planned: Json) -> Iterator[list[Any] | Timestamped | Aside]:
        for chunk in self._reader.read(planned):
            yield chunk
            self._fail_if_due()

    def _fail_if_due(self) -> None:
        own = os.path.join(self._context.directory, f"inc-{self._context.incarnation}", "chk-*")
        numbers = [int(path.rsplit("-", 1)[1]) for path in glob.glob(own)]
        if not self._checkpoints or (numbers and self._completed(max(numbers)) >= self._checkpoints):
            raise RuntimeError(f"this source fails in incarnation {self._context.incarnation}, as it was told to")

    def _completed(self, newest: int) -> int:
        """How many this incarnation has completed; numbers go on through incarnations, and old ones are removed."""
        self._first = min(getattr(self, "_first", newest), newest)
        return newest - self._first + 1

    def close(self) -> None:
        self._reader.close()


class OpenEndedNumbers(Source):
    """0, 1, 2, ... at a given rate, until a file says where to end: for jobs that run for as long as a test needs.

    A barrier always lies between two numbers n-1 and n: all smaller ones are before it, on every subtask. So whoever knows
    n, which is the source's position, knows what the job's state must be. Has a crash point `source-reading`.

    :param end: a file; when it appears it holds the first number that is not given any more.
    """

    bounded = True

    def __init__(self, end: str, rate_per_second: float = 1000, clock: Callable[[], float] = time.monotonic) -> None:
        self.end, self.rate_per_second, self.clock = end, rate_per_second, clock

    def create_enumerator(self, context: EnumeratorContext) -> SplitEnumerator:
        return _OpenEndedEnumerator(self, context)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return _OpenEndedReader()


class _OpenEndedEnumerator(SplitEnumerator):
    def __init__(self, source: OpenEndedNumbers, context: EnumeratorContext) -> None:
        self._source, self._parallelism = source, context.parallelism
        self._position = 0
        self._started: tuple[float, int] | None = None
        self._end: int | None = None

    def plan(self, budget: int) -> Assignment:
        now, end = self._source.clock(), self._known_end()
        if self._started is None:
            self._started = (now, self._position)
        since, first = self._started
        stop = min(self._position + budget, first + int(self._source.rate_per_second * (now - since)))
        if end is not None:
            if self._position > end:
                raise ValueError(f"{self._source.end} says {end}, but {self._position} numbers have been read")
            stop = min(stop, end)
        start, self._position = self._position, max(stop, self._position)
        count = self._position - start
        cuts = [start + count * i // self._parallelism for i in range(self._parallelism + 1)]
        ranges = [[[a, b]] if a < b else [] for a, b in itertools.pairwise(cuts)]
        return Assignment(ranges, count, caught_up=True)

    def _known_end(self) -> int | None:
        if self._end is None:
            try:
                with open(self._source.end) as file:
                    self._end = int(file.read())
            except FileNotFoundError:
                return None
        return self._end

    def finished(self) -> bool:
        return self._end is not None and self._position >= self._end

    def snapshot(self) -> Json:
        return {"position": self._position}

    def restore(self, state: Json) -> None:
        self._position = state["position"]


class _OpenEndedReader(SourceReader):
    def read(self, planned: Json) -> Iterator[list[int]]:
        start, stop = planned
        for first in range(start, stop, _CHUNK):
            yield list(range(first, min(first + _CHUNK, stop)))
            crash_point("source-reading")
