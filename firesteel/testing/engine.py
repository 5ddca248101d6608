"""An engine without Spark: the same tasks, the same rows, the same order, in one process."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Sequence
from typing import Any

from firesteel.coordinator.engine import Deployment, EpochOrder, EpochResult, SlotMessage
from firesteel.graph.plan import JobPlan
from firesteel.graph.shipping import pack_plan, unpack_plan
from firesteel.runtime.assembly import Assembly
from firesteel.runtime.keyed_state import wall_clock
from firesteel.runtime.place import SlotPlace
from firesteel.runtime.task import LevelOrder, SlotTask
from firesteel.runtime.wire import COLLECTED, DRIVER, ROW, target_of
from firesteel.testing.recording import WatchedAssembly

Row = tuple[int, bytes]


class InjectedFailure(Exception):
    """An epoch that was told to fail."""


class LocalEngine:
    """Slots are objects. Exceptions come out as they are raised.

    :param fail_at: epochs, counted from 1 over all incarnations, that fail after they have run.
    :ivar fail_next: the same for the next epoch.
    :param now: the processing time.
    :param assemble: what slots are made of.
    """

    def __init__(
        self,
        plan: JobPlan,
        fail_at: Sequence[int] = (),
        now: Callable[[], int] = wall_clock,
        assemble: type[Assembly] = Assembly,
    ) -> None:
        self._program = pack_plan(plan)
        self._plan = plan
        self._fail_at = set(fail_at)
        self._now, self._assemble = now, assemble
        self.tasks: list[SlotTask] = []
        self.epochs_run = 0
        self.fail_next = False
        self.deployments: list[Deployment] = []

    def deploy(self, deployment: Deployment, listener: Callable[[SlotMessage], None]) -> None:
        self.deployments.append(deployment)
        for slot in range(self._plan.slots):
            self.tasks.append(self._start(slot, deployment, listener))

    def _start(self, slot: int, deployment: Deployment, listener: Callable[[SlotMessage], None]) -> SlotTask:
        place = SlotPlace(
            job_id=deployment.job_id,
            slot=slot,
            incarnation=deployment.incarnation,
            attempt=deployment.attempt,
            directory=deployment.directory,
            restore=tuple(deployment.restore.get(slot, ())),
            origin=deployment.origin,
            main_classes=pickle.dumps({}),
            parameters=dict(deployment.parameters),
            checkpointing=deployment.checkpointing,
            max_state_size=deployment.max_state_size,
            rocksdb=deployment.rocksdb,
            now=self._now,
        )

        def tell(message: dict[str, Any]) -> None:
            listener({**message, "slot": slot})

        return SlotTask(unpack_plan(self._program), place, tell, self._assemble)

    def run_epoch(self, order: EpochOrder) -> EpochResult:
        self.epochs_run += 1
        rows: list[Row] = []
        for level in range(self._plan.levels):
            rows = self._run_level(order, level, rows)
        if self.fail_next or self.epochs_run in self._fail_at:
            raise InjectedFailure(f"epoch {self.epochs_run} was told to fail")
        reports, collected = [], []
        for _, payload in rows:
            _, edge, _ = ROW.unpack_from(payload)
            body = payload[ROW.size :]
            if edge == COLLECTED:
                collected.append(pickle.loads(body))
            else:
                reports.append(json.loads(body))
        return EpochResult(reports, collected)

    def _run_level(self, order: EpochOrder, level: int, rows: list[Row]) -> list[Row]:
        """What Spark's shuffle does between two stages: everyone gets their rows, in the order of the addresses."""
        slots = self._plan.slots
        rows = sorted(rows, key=lambda row: row[0])
        out = [row for row in rows if ROW.unpack_from(row[1])[0] != level]
        for slot, task in enumerate(self.tasks):
            mine = [p for a, p in rows if target_of(a, slots) == slot and ROW.unpack_from(p)[0] == level]
            ordered = LevelOrder(
                order.epoch,
                level,
                checkpoint=order.checkpoint,
                snapshot=order.snapshot,
                whole=order.whole,
                completed=order.completed,
                caught_up=order.caught_up,
                ended=order.ended,
                held_back=order.held_back,
                over=order.over,
                **(order.reading_of(slot) if level == 0 else {}),
            )
            if level:
                task.begin_level(ordered)
            task.run_level(ordered, mine, lambda address, payload: out.append((address, payload)))
        self.check_state(everything=False)
        assert level + 1 < self._plan.levels or all(ROW.unpack_from(p)[0] == DRIVER for _, p in out)
        return out

    def check_state(self, *, everything: bool) -> None:
        """Raise MutationError for state that was changed in place, if the slots watch for it."""
        for task in self.tasks:
            if isinstance(task.assembly, WatchedAssembly):
                task.assembly.check_state(everything=everything)

    def tell(self, slot: int, message: SlotMessage) -> None:
        if slot < len(self.tasks):
            self.tasks[slot].order(message)

    def undeploy(self) -> None:
        tasks, self.tasks = self.tasks, []
        for task in tasks:
            task.close()

    def cancel(self) -> None:
        """Epochs are short here."""

    def close(self) -> None:
        self.undeploy()
