"""A source of partitions that are read side by side, as Kafka's are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from firesteel.connectors.base import (
    Assignment,
    EnumeratorContext,
    Json,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
    Timestamped,
)


class Partitioned(Source):
    """Partition i is subtask (i mod parallelism)'s. An epoch reads up to its budget of each.

    :param chunk: how many records a reader gives out at once.
    :param endless: partitions may go on: they are never finished, and neither is the source.
    :param in_turns: one range for all partitions of a subtask, which gives out a chunk of each in turn.
    """

    def __init__(
        self, partitions: Mapping[str, list[Any]], chunk: int = 3, endless: bool = False, in_turns: bool = False
    ) -> None:
        self.partitions, self.chunk, self.endless = dict(partitions), chunk, endless
        self.in_turns = in_turns
        self.bounded = not endless

    def create_enumerator(self, context: EnumeratorContext) -> SplitEnumerator:
        return _Partitions(self, context.parallelism)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return _Reader(self)


class _Partitions(SplitEnumerator):
    def __init__(self, source: Partitioned, parallelism: int) -> None:
        self._source, self._parallelism = source, parallelism
        self._positions = dict.fromkeys(source.partitions, 0)

    def _left(self, name: str) -> int:
        return len(self._source.partitions[name]) - self._positions[name]

    def plan(self, budget: int) -> Assignment:
        ranges: list[list[Json]] = [[] for _ in range(self._parallelism)]
        splits: list[list[str]] = [[] for _ in range(self._parallelism)]
        units = 0
        for index, name in enumerate(self._source.partitions):
            count = min(budget, self._left(name))
            if count:
                start = self._positions[name]
                self._positions[name] = start + count
                ranges[index % self._parallelism].append([name, start, start + count])
                units += count
            if self._source.endless or self._left(name):
                splits[index % self._parallelism].append(name)
        if self._source.in_turns:
            ranges = [[mine] if mine else [] for mine in ranges]
        else:
            ranges = [[[each] for each in mine] for mine in ranges]
        return Assignment(ranges, units, not any(map(self._left, self._positions)), splits)

    def finished(self) -> bool:
        return not self._source.endless and not any(map(self._left, self._positions))

    def snapshot(self) -> Json:
        return self._positions

    def restore(self, state: Json) -> None:
        self._positions.update(state)


class _Reader(SourceReader):
    def __init__(self, source: Partitioned) -> None:
        self._source = source

    def splits_of(self, planned: Json) -> Sequence[str]:
        return [name for name, _, _ in planned]

    def read(self, planned: Json) -> Iterator[list[Any] | Timestamped]:
        chunk = self._source.chunk
        chunks = [
            (first, name, self._source.partitions[name][first : min(first + chunk, stop)])
            for name, start, stop in planned
            for first in range(start, stop, chunk)
        ]
        for _, name, values in sorted(chunks, key=lambda each: each[0]):
            yield Timestamped(values, [None] * len(values), name) if self._source.in_turns else values
