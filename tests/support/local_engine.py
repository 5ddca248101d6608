"""The real coordinator over slots in this process: checkpoints complete while later epochs run, as they do with Spark."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from firesteel.common.completable_future import CompletableFuture
from firesteel.common.storage import Storage
from firesteel.coordinator.collecting import CollectedResults
from firesteel.coordinator.engine import Deployment, EpochOrder, EpochResult, SlotMessage
from firesteel.coordinator.job import Job
from firesteel.coordinator.lineage import JobDirectory
from firesteel.coordinator.progress import Progress
from firesteel.coordinator.savepoint_requests import Ending
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.runtime.failures import describe, rebuild
from firesteel.runtime.keyed_state import wall_clock
from firesteel.testing.engine import LocalEngine
from tests.support.waiting import wait_for_checkpoint, wait_until

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
    """A program run in this process.

    :ivar answer: of the savepoint that `asking` asked for.
    """

    answer: CompletableFuture[str]

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

    def unread(self) -> LocalRun:
        """Nobody reads its results while it runs. Threads of checkpoints and of tests get their turn after every epoch."""
        return self._before_epochs(lambda: time.sleep(0.001))

    def in_step(self) -> LocalRun:
        """Epochs wait for the checkpoint on its way: there are as many as on any other machine, and the input does not end
        before one that takes its time."""
        return self._before_epochs(wait_for_checkpoint)

    def asking(self, target: Path, ending: Ending, after: int = 8) -> LocalRun:
        """It asks for a savepoint that ends it itself, and takes it after so many epochs."""
        requests = self.job.savepoints

        def ask() -> None:
            if self.progress.epochs >= after:
                if not hasattr(self, "answer"):
                    self.answer = requests.ask(str(target), ending)
                wait_until(lambda: requests._waiting or self.answer.done(), "the request")
                wait_for_checkpoint()

        return self._before_epochs(ask)

    def _before_epochs(self, wait: Callable[[], None]) -> LocalRun:
        def wait_for_room(cancelled: threading.Event) -> None:
            wait()

        self.results.wait_for_room = wait_for_room  # type: ignore[method-assign]
        return self

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
