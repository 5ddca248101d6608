"""A source that reads a list which travels inside the program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

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
from firesteel.connectors.splits import first_only
from firesteel.errors import RestoreError


class CollectionSource(Source):
    """Reads a collection once, in order, with subtask 0 only, so the order is kept at every parallelism.

    The values are pickled to every slot with the source: meant for small inputs and tests.
    """

    def __init__(self, values: Iterable[Any]) -> None:
        self.values = list(values)

    def create_enumerator(self, context: EnumeratorContext) -> SplitEnumerator:
        return CollectionEnumerator(self.values, context)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return CollectionReader(self.values)


class CollectionEnumerator(SplitEnumerator):
    """Counts through the list. A unit is a record; the position is the index of the next one."""

    def __init__(self, values: list[Any], context: EnumeratorContext) -> None:
        self._context = context
        self._position = 0
        self._count = len(values)
        # Values need not have a stable encoding, so this is no proof of equality. It catches what happens in
        # practice: a program restored with another input.
        self._types = sorted({type(value).__name__ for value in values})

    def plan(self, budget: int) -> Assignment:
        start = self._position
        self._position = stop = min(self._count, start + max(0, budget))
        ranges: list[list[Json]] = [[] for _ in range(self._context.parallelism)]
        if start < stop:
            ranges[0].append({"start": start, "stop": stop})
        return Assignment(ranges, stop - start, splits=first_only(self._context.parallelism))

    def finished(self) -> bool:
        return self._position == self._count

    def snapshot(self) -> Json:
        return {"position": self._position, "count": self._count, "types": self._types}

    def restore(self, state: Json) -> None:
        if (state["count"], state["types"]) != (self._count, self._types):
            now, then = _describe(self._count, self._types), _describe(state["count"], state["types"])
            raise RestoreError(
                f"source {self._context.uid!r} reads a collection of {now}, but the checkpoint was taken "
                f"from one of {then}, where its position means something else. Restore with the same "
                f"collection, or give the source another uid to read the new one from its start."
            )
        self._position = state["position"]

    def progress(self) -> float:
        return self._position / self._count if self._count else 1.0


class CollectionReader(SourceReader):
    """Slices the list."""

    def __init__(self, values: list[Any]) -> None:
        self._values = values

    def read(self, planned: Json) -> Iterator[list[Any]]:
        stop = planned["stop"]
        for start in range(planned["start"], stop, CHUNK):
            yield self._values[start : min(start + CHUNK, stop)]


def _describe(count: int, types: list[str]) -> str:
    return f"{count} values ({', '.join(types)})" if count else "no values"
