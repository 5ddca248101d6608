"""The real coordinator over slots in this process: checkpoints complete while later epochs run, as they do with Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from firesteel.common.storage import Storage
from firesteel.coordinator.collecting import CollectedResults
from firesteel.coordinator.engine import Deployment, EpochOrder, EpochResult, SlotMessage
from firesteel.coordinator.job import Job
from firesteel.coordinator.lineage import JobDirectory
from firesteel.coordinator.progress import Progress
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.runtime.failures import describe, rebuild
from firesteel.runtime.keyed_state import wall_clock
from firesteel.testing.engine import LocalEngine

__all__ = ["DescribingEngine", "LocalEngine", "LocalRun"]


class DescribingEngine(LocalEngine):
    """Failures reach the driver as text, as they do from other processes."""

    def deploy(self, deployment: Deployment, listener: Callable[[SlotMessage], None]) -> None:
        try:
            super().deploy(deployment, listener)
        except Exception as error:
            raise rebuild(describe(error)) from error

    def run_epoch(self, order: EpochOrder) -> EpochResult:
        try:
            return super().run_epoch(order)
        except Exception as error:
            raise rebuild(describe(error)) from error


class LocalRun:
    """A program run in this process."""

    def __init__(
        self,
        env: StreamExecutionEnvironment,
        directory: str | Storage,
        name: str = "job",
        fail_at: Sequence[int] = (),
        now: Callable[[], int] = wall_clock,
    ) -> None:
        plan = env.plan()
        settings = env.settings(name)
        self.output: list[str] = []
        self.results = CollectedResults()
        self.engine = DescribingEngine(plan, fail_at, now)
        self.progress = Progress(plan, name, shown=False)
        self.job = Job(
            plan,
            settings,
            JobDirectory.open(directory, name),
            self.engine,
            self.results,
            self.progress,
            lambda stream, text: self.output.append(text),
        )

    def run(self) -> LocalRun:
        try:
            self.job.run()
        finally:
            self.engine.close()
        return self

    def collected(self) -> list[Any]:
        values: list[Any] = []
        while not self.results.queue.empty():
            values += self.results.queue.get()
        return values
