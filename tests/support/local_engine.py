"""An engine without Spark: the same tasks, the same rows, the same order, in one process."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Sequence
from typing import Any

from firesteel.coordinator.collecting import CollectedResults
from firesteel.coordinator.engine import Deployment, EpochOrder, EpochResult, SlotMessage
from firesteel.coordinator.job import Job
from firesteel.coordinator.lineage import JobDirectory
from firesteel.coordinator.progress import Progress
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.graph.plan import JobPlan
from firesteel.graph.shipping import pack_plan, unpack_plan
from firesteel.runtime.failures import describe, rebuild
from firesteel.runtime.task import LevelOrder, SlotPlace, SlotTask
from firesteel.runtime.wire import COLLECTED, DRIVER, ROW, target_of


class LocalEngine:
    """Slots are objects. `fail_at` names epochs (counted over all incarnations) that fail after running."""

    def __init__(self, plan: JobPlan, fail_at: Sequence[int] = ()) -> None:
        self._program = pack_plan(plan)
        self._plan = plan
        self._tasks: list[SlotTask] = []
        self._fail_at = set(fail_at)
        self.epochs_run = 0
        self.deployments: list[Deployment] = []

    def deploy(self, deployment: Deployment, listener: Callable[[SlotMessage], None]) -> None:
        self.deployments.append(deployment)

        def tell(slot: int) -> Callable[[dict[str, Any]], None]:
            return lambda message: listener({**message, "slot": slot})

        try:
            self._tasks = [
                SlotTask(
                    unpack_plan(self._program),
                    SlotPlace(
                        deployment.job_id,
                        slot,
                        deployment.incarnation,
                        deployment.attempt,
                        deployment.directory,
                        tuple(deployment.restore.get(slot, ())),
                        pickle.dumps({}),
                    ),
                    tell(slot),
                )
                for slot in range(self._plan.slots)
            ]
        except Exception as error:
            raise rebuild(describe(error)) from error

    def run_epoch(self, order: EpochOrder) -> EpochResult:
        self.epochs_run += 1
        rows: list[tuple[int, bytes]] = []
        try:
            for level in range(self._plan.levels):
                rows = self._run_level(order, level, rows)
        except Exception as error:
            raise rebuild(describe(error)) from error
        if self.epochs_run in self._fail_at:
            raise RuntimeError(f"epoch {self.epochs_run} was told to fail")
        reports, collected = [], []
        for _, payload in rows:
            _, edge = ROW.unpack_from(payload)
            body = payload[ROW.size :]
            if edge == COLLECTED:
                collected.append(pickle.loads(body))
            else:
                reports.append(json.loads(body))
        return EpochResult(reports, collected)

    def _run_level(self, order: EpochOrder, level: int, rows: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
        slots = self._plan.slots
        rows = sorted(rows, key=lambda row: row[0])
        out = [row for row in rows if ROW.unpack_from(row[1])[0] != level]
        for slot, task in enumerate(self._tasks):
            mine = [p for a, p in rows if target_of(a, slots) == slot and ROW.unpack_from(p)[0] == level]
            ranges = {uid: list(by[slot]) for uid, by in order.ranges.items() if slot < len(by)} if level == 0 else {}
            level_order = LevelOrder(order.epoch, level, ranges, order.checkpoint, order.snapshot, order.completed)
            task.run_level(level_order, mine, lambda address, payload: out.append((address, payload)))
        assert level + 1 < self._plan.levels or all(ROW.unpack_from(p)[0] == DRIVER for _, p in out)
        return out

    def undeploy(self) -> None:
        for task in self._tasks:
            task.close()
        self._tasks = []

    def cancel(self) -> None:
        """Epochs are short here."""

    def close(self) -> None:
        self.undeploy()


class LocalRun:
    """A program run in this process."""

    def __init__(
        self, env: StreamExecutionEnvironment, directory: str, name: str = "job", fail_at: Sequence[int] = ()
    ) -> None:
        plan = env.plan()
        settings = env.settings(name)
        self.output: list[str] = []
        self.results = CollectedResults()
        self.engine = LocalEngine(plan, fail_at)
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
