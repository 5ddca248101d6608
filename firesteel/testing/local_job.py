"""A job in one process, one epoch at a time: the coordinator's steps in its order, but only when they are asked for."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator, Sequence
from itertools import cycle, repeat
from typing import Any

from firesteel.coordinator.checkpointing import Checkpointer, restore_point
from firesteel.coordinator.collecting import CollectedResults
from firesteel.coordinator.committing import Committers
from firesteel.coordinator.engine import Deployment, EpochOrder, EpochResult, SlotMessage
from firesteel.coordinator.lineage import Incarnation, JobDirectory, confirm
from firesteel.coordinator.metadata import CheckpointMetadata
from firesteel.coordinator.origin import origin_of
from firesteel.coordinator.reading import SourceReading
from firesteel.coordinator.sizing import EpochSizer
from firesteel.graph.plan import JobPlan
from firesteel.graph.settings import CheckpointSettings, JobSettings
from firesteel.testing.engine import LocalEngine

Sizes = int | Sequence[int] | random.Random | None
"""How many records an epoch reads of each source: always so many, these numbers in turn, or random ones. None: as many as
the source would give a first epoch."""

_LARGEST = 12  # random sizes are below 2 to the power of this


class LocalJob:
    """One incarnation after the other of a program, driven from outside."""

    def __init__(
        self,
        plan: JobPlan,
        settings: JobSettings,
        directory: str,
        engine: LocalEngine,
        sizes: Sizes,
        checkpointing: bool,
    ) -> None:
        self._plan, self._settings, self._engine = plan, settings, engine
        self._sizes = sizes
        self._directory = JobDirectory.open(directory, settings.name)
        self._checkpoints = CheckpointSettings(interval_ms=1 if checkpointing else None)
        self._never = threading.Event()
        self.results = CollectedResults()
        self.finished = False
        self.restarts = -1
        self.metrics: list[dict[str, Any]] = []
        self._running = False

    def start(self) -> None:
        """Claim, commit, sweep, and only then start slots, with the state of the last checkpoint if there is one."""
        self.restarts += 1
        self._epoch = 0
        incarnation = self._directory.claim()
        self.results.rollback()
        self._committers = Committers(
            self._plan, self._directory.job_id, incarnation.number, self._directory.storage.uri
        )
        self._reading = _Reading(self._plan, self._settings, self._sizes)
        self._checkpointer = Checkpointer(
            self._plan, self._settings.name, self._checkpoints, incarnation, self._committers, self._on_completed
        )
        self._running = True
        start = incarnation.start
        if start is not None:
            if not start.confirmed:
                done = start.metadata
                self._committers.commit(done.checkpoint, done.committables, self._never, incarnation.check)
                confirm(start)
            self._reading.restore(start.metadata)
        self._committers.sweep()
        self._deploy(incarnation)

    def _deploy(self, incarnation: Incarnation) -> None:
        checkpointer, start = self._checkpointer, incarnation.start

        def on_message(message: SlotMessage) -> None:
            if message["type"] in ("durable", "declined"):
                checkpointer.on_message(message["slot"], message)

        deployment = Deployment(
            job_id=self._directory.job_id,
            job_name=self._settings.name,
            plan=self._plan,
            incarnation=incarnation.number,
            attempt=self.restarts,
            directory=self._directory.storage.uri,
            restore=restore_point(start, self._plan) if start is not None else {},
            parameters=self._settings.parameters,
            checkpointing=self._checkpoints.enabled,
            origin=origin_of(start.metadata, self._plan) if start is not None else None,
        )
        self._engine.deploy(deployment, on_message)

    def epoch(self, checkpoint: bool) -> None:
        """Run one epoch, and finish the checkpoint at its end if there is one."""
        planned = self._reading.plan()
        self._epoch += 1
        pending = None
        if checkpoint or planned.final:
            pending = self._checkpointer.begin(self._reading.positions(), final=planned.final)
        order = EpochOrder(
            self._epoch,
            planned.ranges,
            checkpoint=pending.checkpoint if pending else None,
            snapshot=pending.snapshot if pending else True,
            completed=self._checkpointer.base,
            caught_up=planned.caught_up,
            ended=planned.ended,
            splits=planned.splits,
            held_back=planned.held_back,
            over=planned.over,
        )
        result: EpochResult = self._engine.run_epoch(order)
        self.metrics = [report["metrics"] for report in result.reports]
        self.results.add(result.collected, held=self._checkpoints.enabled or planned.final, pending=pending)
        if pending is not None:
            self._checkpointer.run(pending, result)
            self._checkpointer.wait(self._never)
            self._reading.tell_completed()
        self._reading.observe(0.0, result.reports)
        self.finished = planned.final

    def stop(self) -> None:
        """End this incarnation. What no completed checkpoint covers never happened."""
        if not self._running:
            return
        self._running = False
        try:
            self._checkpointer.abandon()
            self._engine.undeploy()
        finally:
            self._committers.close()
            self._reading.close()

    def _on_completed(self, metadata: CheckpointMetadata) -> None:
        self.results.release(metadata.checkpoint)
        self._reading.checkpoint_completed(metadata.positions)


class _Reading(SourceReading):
    """Reads as much as the test says instead of as much as fits into a second."""

    def __init__(self, plan: JobPlan, settings: JobSettings, sizes: Sizes) -> None:
        super().__init__(plan, settings)
        for uid, (enumerator, _) in self._sources.items():
            self._sources[uid] = (enumerator, _Chosen(_numbers(sizes, enumerator.first_units)))


class _Chosen(EpochSizer):
    def __init__(self, numbers: Iterator[int]) -> None:
        super().__init__(1.0, next(numbers))
        self._numbers = numbers

    def observe(self, units: int, seconds: float) -> None:
        self.units = next(self._numbers)


def _numbers(sizes: Sizes, usual: int) -> Iterator[int]:
    if sizes is None:
        return repeat(usual)
    if isinstance(sizes, int):
        return repeat(sizes)
    if isinstance(sizes, random.Random):
        return _random_numbers(sizes)
    return cycle(sizes)


def _random_numbers(generator: random.Random) -> Iterator[int]:
    """Small and large ones alike, and now and then none at all."""
    while True:
        yield int(2 ** generator.uniform(0, _LARGEST)) - 1
