"""Sources that decide themselves how much an epoch reads, and a sink that notes when records arrive."""

from __future__ import annotations

import os
import time
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bench.readings import reading
from firesteel.connectors.base import (
    Assignment,
    EnumeratorContext,
    Json,
    ReaderContext,
    Sink,
    SinkWriter,
    Source,
    SourceReader,
    SplitEnumerator,
    WriterContext,
)


@dataclass(frozen=True)
class StepSource(Source):
    """Readings by number, exactly `step` of them in every epoch, as (key, temperature)."""

    records: int
    step: int
    keys: int

    def create_enumerator(self, context: EnumeratorContext) -> SplitEnumerator:
        return _StepEnumerator(self.records, context.parallelism, self.step)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return _StepReader(self.keys)


@dataclass(frozen=True)
class RateSource(Source):
    """Readings that come into being at a fixed rate, as (key, temperature, when).

    Record i is due i/rate seconds after the first plan, and that is its creation time whenever it is read: the wait for the
    next epoch, or behind a slow one, counts.
    """

    records: int
    rate: float
    keys: int

    def create_enumerator(self, context: EnumeratorContext) -> SplitEnumerator:
        return _RateEnumerator(self.records, context.parallelism, self.rate)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return _RateReader(self.keys, self.rate)


class Numbers(SplitEnumerator):
    """Numbers from 0, divided evenly among the subtasks in each epoch."""

    def __init__(self, records: int, parallelism: int) -> None:
        self._records, self._parallelism = records, parallelism
        self._position = 0

    def _take(self, count: int, **more: Json) -> Assignment:
        start = self._position
        self._position += min(count, self._records - start)
        taken = self._position - start
        cuts = [start + taken * i // self._parallelism for i in range(self._parallelism + 1)]
        ranges = [[{"start": cuts[i], "stop": cuts[i + 1], **more}] if taken else [] for i in range(self._parallelism)]
        return Assignment(ranges, taken)

    def finished(self) -> bool:
        return self._position >= self._records

    def snapshot(self) -> Json:
        return self._position

    def restore(self, state: Json) -> None:
        self._position = state


class _StepEnumerator(Numbers):
    def __init__(self, records: int, parallelism: int, step: int) -> None:
        super().__init__(records, parallelism)
        self._step = step

    def plan(self, budget: int) -> Assignment:
        return self._take(self._step)


class _RateEnumerator(Numbers):
    def __init__(self, records: int, parallelism: int, rate: float) -> None:
        super().__init__(records, parallelism)
        self._rate = rate
        self._origin: float | None = None

    def plan(self, budget: int) -> Assignment:
        now = time.time()
        if self._origin is None:
            self._origin = now
        due = int((now - self._origin) * self._rate)
        return self._take(min(budget, due - self._position), origin=self._origin)


class _StepReader(SourceReader):
    def __init__(self, keys: int) -> None:
        self._keys = keys

    def read(self, planned: Json) -> Iterator[list[Any]]:
        yield [reading(number, self._keys) for number in range(planned["start"], planned["stop"])]


class _RateReader(SourceReader):
    def __init__(self, keys: int, rate: float) -> None:
        self._keys, self._rate = keys, rate

    def read(self, planned: Json) -> Iterator[list[Any]]:
        origin, rate, keys = planned["origin"], self._rate, self._keys
        yield [(*reading(n, keys), origin + n / rate) for n in range(planned["start"], planned["stop"])]


@dataclass(frozen=True)
class ArrivalSink(Sink):
    """Notes (created, arrived) of every record; a record arrives when its epoch ends, as it would at a plain server."""

    directory: str

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return _ArrivalWriter(os.path.join(self.directory, str(context.subtask)))


class _ArrivalWriter(SinkWriter):
    def __init__(self, path: str) -> None:
        self._file = open(path, "wb")  # noqa: SIM115  open as long as the slot lives
        self._created: list[float] = []

    def write(self, values: Sequence[Any]) -> None:
        self._created.extend([value[2] for value in values])

    def flush(self) -> None:
        now = time.time()
        pairs = array("d")
        for created in self._created:
            pairs.extend((created, now))
        self._file.write(pairs.tobytes())
        self._file.flush()
        self._created.clear()

    def close(self) -> None:
        self._file.close()
