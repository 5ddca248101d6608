"""A source on the driver, driven without sleeping: wait for its thread to have something, then plan."""

from __future__ import annotations

import json
import pickle
from typing import Any

from firesteel.connectors.base import EnumeratorContext, ReaderContext, Source, Timestamped
from firesteel.connectors.driver_source import DriverEnumerator
from tests.support.waiting import PATIENCE_S


def _records(chunk: list[Any] | Timestamped) -> list[Any]:
    return list(zip(chunk.values, chunk.times, strict=True)) if isinstance(chunk, Timestamped) else chunk


class Driven:
    def __init__(self, source: Source, parallelism: int = 1) -> None:
        enumerator = source.create_enumerator(EnumeratorContext("the-source", parallelism))
        assert isinstance(enumerator, DriverEnumerator)
        self.enumerator = enumerator
        shipped = pickle.loads(pickle.dumps(source))
        self.reader = shipped.create_reader(ReaderContext("job", "the-source", 1, 0, parallelism))

    def epoch(self, budget: int = 1000) -> list[Any]:
        assignment = self.enumerator.plan(budget)
        ranges = json.loads(json.dumps(assignment.ranges))
        assert not any(ranges[1:])  # all records go to the first subtask, in order
        records = [record for planned in ranges[0] for chunk in self.reader.read(planned) for record in _records(chunk)]
        assert len(records) == assignment.units
        return records

    def some(self, budget: int = 1000) -> list[Any]:
        """An epoch with at least one record, unless the input has ended."""
        return self.epoch(budget) or (self._arrived() and self.epoch(budget)) or []

    def all(self) -> list[Any]:
        records: list[Any] = []
        while not self.enumerator.finished():
            records += self.some()
        return records

    def _arrived(self) -> bool:
        assert self.enumerator.queue.wait_until_some(PATIENCE_S)
        return True
