"""A source that gives no more than so much a second, so that a file can stand for a live stream."""

from __future__ import annotations

import time

from firesteel.datastream.connectors.base import (
    Assignment,
    EnumeratorContext,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
)

_MOST_S = 0.5


class Paced(Source):
    """Another source, slowed down. Units are that source's: bytes, for files of lines."""

    def __init__(self, source: Source, units_per_second: float) -> None:
        self._source = source
        self._rate = units_per_second

    def create_enumerator(self, context: EnumeratorContext) -> SplitEnumerator:
        return PacedEnumerator(self._source.create_enumerator(context), self._rate)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return self._source.create_reader(context)


class PacedEnumerator(SplitEnumerator):
    """Plans what the time since the last plan allows, and never more than half a second's worth at once.

    The budget that a job offers adapts to how fast it gets on; a stream that comes at its own pace does not care.
    """

    def __init__(self, enumerator: SplitEnumerator, rate: float) -> None:
        self._enumerator = enumerator
        self._rate = rate
        self._last = time.monotonic()

    def plan(self, budget: int) -> Assignment:
        now = time.monotonic()
        allowed = int(self._rate * min(now - self._last, _MOST_S))
        if allowed:
            self._last = now
        return self._enumerator.plan(allowed)

    def finished(self) -> bool:
        return self._enumerator.finished()

    def snapshot(self) -> object:
        return self._enumerator.snapshot()

    def restore(self, state: object) -> None:
        self._enumerator.restore(state)

    def progress(self) -> float | None:
        return self._enumerator.progress()

    def close(self) -> None:
        self._enumerator.close()
