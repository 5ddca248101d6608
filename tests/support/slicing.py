"""A source that lets a test decide how much an epoch reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle
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


class Sliced(Source):
    """Another source, cut into epochs of these sizes, over and over."""

    def __init__(self, source: Source, *sizes: int) -> None:
        self.source, self.sizes = source, sizes

    def create_enumerator(self, context: EnumeratorContext) -> SplitEnumerator:
        return _Slicing(self.source.create_enumerator(context), cycle(self.sizes))

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return self.source.create_reader(context)


class _Slicing(SplitEnumerator):
    def __init__(self, inner: SplitEnumerator, sizes: Iterator[int]) -> None:
        self._inner, self._sizes = inner, sizes

    def plan(self, budget: int) -> Assignment:
        assignment = self._inner.plan(next(self._sizes))
        return replace(assignment, caught_up=self._inner.finished())

    def finished(self) -> bool:
        return self._inner.finished()

    def snapshot(self) -> Json:
        return self._inner.snapshot()

    def restore(self, state: Any) -> None:
        self._inner.restore(state)
