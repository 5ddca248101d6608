"""A source that gives what its schedule says, epoch by epoch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from firesteel.connectors.base import (
    Assignment,
    EnumeratorContext,
    Json,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
)


class Scheduled(Source):
    """The first list in the first epoch, the second in the second, ...; with subtask 0. It has always caught up."""

    def __init__(self, *epochs: list[Any]) -> None:
        self.epochs = epochs

    def create_enumerator(self, context: EnumeratorContext) -> SplitEnumerator:
        return _Scheduling(self.epochs, context.parallelism)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return _Reader(self.epochs)


class _Scheduling(SplitEnumerator):
    def __init__(self, epochs: tuple[list[Any], ...], parallelism: int) -> None:
        self._epochs, self._parallelism = epochs, parallelism
        self._next = 0

    def plan(self, budget: int) -> Assignment:
        ranges: list[list[Json]] = [[] for _ in range(self._parallelism)]
        units = 0
        if not self.finished():
            units = len(self._epochs[self._next])
            ranges[0].append(self._next)
            self._next += 1
        return Assignment(ranges, units, caught_up=True)

    def finished(self) -> bool:
        return self._next == len(self._epochs)

    def snapshot(self) -> Json:
        return self._next

    def restore(self, state: Json) -> None:
        self._next = state


class _Reader(SourceReader):
    def __init__(self, epochs: tuple[list[Any], ...]) -> None:
        self._epochs = epochs

    def read(self, planned: Json) -> Iterator[list[Any]]:
        if self._epochs[planned]:
            yield self._epochs[planned]
