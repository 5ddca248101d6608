"""A source driven as a job does: plan an epoch, read it with one reader per subtask, restart if told to."""

from __future__ import annotations

import json
import pickle
from typing import Any

from hypothesis import strategies as st

from firesteel.connectors.base import EnumeratorContext, ReaderContext, Source

parallelisms = st.integers(1, 5)
restarts = st.sampled_from([False, False, False, True])


class ReadingJob:
    """`reads` collects (range, records) in the order in which ranges were read."""

    def __init__(self, source: Source, parallelism: int = 1) -> None:
        self.source = source
        self.reads: list[tuple[dict[str, Any], list[Any]]] = []
        self._start(parallelism)

    def _start(self, parallelism: int) -> None:
        # both halves see only what survives the trip to another process
        self.enumerator = self.source.create_enumerator(EnumeratorContext("the-source", parallelism))
        slots = pickle.loads(pickle.dumps(self.source))
        self.readers = [
            slots.create_reader(ReaderContext("job", "the-source", 1, subtask, parallelism))
            for subtask in range(parallelism)
        ]

    def epoch(self, budget: int) -> int:
        assignment = self.enumerator.plan(budget)
        planned = json.loads(json.dumps(assignment.ranges))
        assert len(planned) == len(self.readers)
        for reader, ranges in zip(self.readers, planned, strict=True):
            for one in ranges:
                self.reads.append((one, [record for chunk in reader.read(one) for record in chunk]))
        return assignment.units

    def restart(self, parallelism: int) -> None:
        state = json.loads(json.dumps(self.enumerator.snapshot()))
        for reader in self.readers:
            reader.close()
        self._start(parallelism)
        self.enumerator.restore(state)

    def run(self, budget: int = 1_000_000) -> list[Any]:
        """Read to the end; all records in the order of reading."""
        while not self.enumerator.finished():
            self.epoch(budget)
        return self.records()

    def records(self) -> list[Any]:
        return [record for _, records in self.reads for record in records]

    def by_position(self) -> list[Any]:
        """All records, sorted by the path and position of their range: as they lie in the files."""
        in_order = sorted(self.reads, key=lambda read: (read[0].get("path", ""), read[0]["start"]))
        return [record for _, records in in_order for record in records]


def read_in_any_way(source: Source, data: st.DataObject, largest_budget: int) -> ReadingJob:
    """Read a source to its end with drawn budgets, restarting with a drawn parallelism at drawn moments."""
    budgets = st.integers(1, largest_budget)
    job = ReadingJob(source, data.draw(parallelisms, "parallelism"))
    while not job.enumerator.finished():
        units = job.epoch(data.draw(budgets, "budget"))
        progress = job.enumerator.progress()
        assert progress is not None
        assert 0.0 <= progress <= 1.0
        if units and data.draw(restarts, "restart"):
            job.restart(data.draw(parallelisms, "new parallelism"))
    assert job.enumerator.progress() == 1.0
    assert job.epoch(1000) == 0
    return job
