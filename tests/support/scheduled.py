"""A source that gives what its schedule says, epoch by epoch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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

Epochs = Sequence[Sequence[Any]]


class Scheduled(Source):
    """The first list in the first epoch, the second in the second, ...; with subtask 0. It has always caught up.

    :param subtasks: such lists of each subtask, for as many epochs.
    """

    def __init__(self, *epochs: Sequence[Any], subtasks: Sequence[Epochs] | None = None) -> None:
        self.subtasks = subtasks or (epochs,)

    def create_enumerator(self, context: EnumeratorContext) -> SplitEnumerator:
        return _Scheduling(self.subtasks, context.parallelism)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return _Reader(self.subtasks)


class _Scheduling(SplitEnumerator):
    def __init__(self, subtasks: Sequence[Epochs], parallelism: int) -> None:
        self._subtasks, self._parallelism = subtasks, parallelism
        self._next = 0

    def plan(self, budget: int) -> Assignment:
        ranges: list[list[Json]] = [[] for _ in range(self._parallelism)]
        units = 0
        if not self.finished():
            for subtask, epochs in enumerate(self._subtasks):
                if epochs[self._next]:
                    units += len(epochs[self._next])
                    ranges[subtask].append([subtask, self._next])
            self._next += 1
        return Assignment(ranges, units, caught_up=True)

    def finished(self) -> bool:
        return self._next == len(self._subtasks[0])

    def snapshot(self) -> Json:
        return self._next

    def restore(self, state: Json) -> None:
        self._next = state


class _Reader(SourceReader):
    def __init__(self, subtasks: Sequence[Epochs]) -> None:
        self._subtasks = subtasks

    def read(self, planned: Json) -> Iterator[list[Any]]:
        subtask, epoch = planned
        yield list(self._subtasks[subtask][epoch])
