"""Runs slots on Spark: one Spark job per epoch, one stage per level."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import re
import secrets
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import asdict
from typing import Any

from pyspark.sql import SparkSession

from firesteel.common.crashpoints import crash_point
from firesteel.coordinator.engine import Deployment, EpochOrder, EpochResult, SlotMessage
from firesteel.engine import session
from firesteel.engine.control import ControlServer
from firesteel.engine.dataframes import JobFrames
from firesteel.engine.pump import FromDriver, PumpLastBeforeCut, PumpLevel, StartSlot
from firesteel.engine.scratch import ScratchDir
from firesteel.engine.spark_private import LevelChain
from firesteel.engine.transforms import FrameTransforms
from firesteel.errors import ConfigurationError, JobCancelledError, SlotLostError
from firesteel.graph.nodes import FromFrame
from firesteel.graph.plan import JobPlan
from firesteel.graph.settings import JobSettings
from firesteel.graph.shipping import pack_main_classes, pack_plan
from firesteel.runtime.failures import rebuild
from firesteel.runtime.wire import COLLECTED, DRIVER, ROW

_STOP_S = 10.0
_CAUSE_S = 2.0


class SparkEngine:
    """The engine that runs in a Spark session, the user's or an embedded one."""

    def __init__(self, plan: JobPlan, settings: JobSettings) -> None:
        self._plan, self._settings = plan, settings
        self._program = pack_plan(plan)
        self._main_classes = pack_main_classes()
        self._key = secrets.token_bytes(32)
        self._group = f"firesteel-{secrets.token_hex(4)}"
        self._handle: session.SparkHandle | None = None
        self._chain: LevelChain | None = None
        self._control: ControlServer | None = None
        self._own_scratch: ScratchDir | None = None
        self._addresses: list[str] = []
        self._incarnation = 0
        self._transforms: FrameTransforms | None = None
        self._side_by_side = False  # whether Spark has room for two jobs at a time
        self._started: set[Future[list[bytes]]] = set()
        self._ahead: Future[list[bytes]] | None = None  # the next epoch's first job
        self._cancelled = threading.Event()
        self._stage_names = [" + ".join(op.name for op in plan.level(i)) for i in range(plan.levels)]
        self._ensure_spark()

    def use(self, plan: JobPlan) -> None:
        """Run this plan in the place of the first one: the same operators, with prepared sources and sinks."""
        self._plan, self._program = plan, pack_plan(plan)
        if any(isinstance(operator.operator, FromFrame) for operator in plan.operators):
            self._transforms, self._side_by_side = FrameTransforms(plan, self.frames()), False

    def frames(self) -> JobFrames:
        """What the job's sources and sinks may ask of its Spark."""
        return JobFrames(self._session, self._group)

    def _session(self) -> SparkSession:
        """The job's session, for the thread that prepares or recovers the job, or one that commits.

        While slots are deployed a dead JVM is not replaced: they died with it, so the job rolls back, and that replaces it.
        """
        if self._addresses and (self._handle is None or not self._handle.alive()):
            raise SlotLostError("the Spark JVM died")
        self._ensure_spark()
        assert self._handle is not None
        return self._handle.spark

    def deploy(self, deployment: Deployment, listener: Callable[[SlotMessage], None]) -> None:
        chain = self._ensure_spark()
        assert self._control is not None
        self._incarnation = deployment.incarnation
        self._control.expect(deployment.incarnation, listener)
        boots = [self._boot(deployment, slot) for slot in range(deployment.plan.slots)]
        start = StartSlot(boots, self._main_classes, self._program)
        description = f"{deployment.job_name}, starting slots of incarnation {deployment.incarnation}"
        answers = [json.loads(row) for row in self._run(lambda: chain.run([start], ["start slots"], description))]
        for answer in answers:
            if "failure" in answer:
                raise rebuild(answer["failure"])
        self._addresses = [answer["address"] for answer in answers]

    def _boot(self, deployment: Deployment, slot: int) -> dict[str, Any]:
        assert self._control is not None and self._handle is not None
        return {
            "slot": slot,
            "incarnation": deployment.incarnation,
            "attempt": deployment.attempt,
            "job_id": deployment.job_id,
            "directory": deployment.directory,
            "restore": list(deployment.restore.get(slot, ())),
            "origin": asdict(deployment.origin) if deployment.origin is not None else None,
            "parameters": dict(deployment.parameters),
            "checkpointing": deployment.checkpointing,
            "max_state_size": deployment.max_state_size,
            "rocksdb": asdict(deployment.rocksdb) if deployment.rocksdb is not None else None,
            "driver": list(self._control.address),
            "key": self._key.hex(),
            "scratch": self._scratch(),
            "path": [os.path.abspath(entry) for entry in sys.path],
        }

    def run_epoch(self, order: EpochOrder) -> EpochResult:
        chain = self._ensure_spark()
        crash_point("before-epoch")
        for slot in range(self._plan.slots):
            self.tell(slot, {"type": "epoch", "order": self._order_of(order, slot)})
        if self._transforms is not None:
            rows = self._run_segments(chain, self._transforms, order, self._describe(order.epoch))
        else:
            rows = self._run(lambda: self._run_job(chain, order))
        reports, collected = [], []
        for row in rows:
            level, edge, _ = ROW.unpack_from(row)
            assert level == DRIVER
            if edge == COLLECTED:
                collected.append(pickle.loads(memoryview(row)[ROW.size :]))
            else:
                reports.append(json.loads(row[ROW.size :]))
        if sorted(report["slot"] for report in reports) != list(range(self._plan.slots)):
            raise SlotLostError(f"epoch {order.epoch} ended without a report of every slot")
        return EpochResult(reports, collected)

    def _run_job(self, chain: LevelChain, order: EpochOrder) -> list[bytes]:
        """The epoch's Spark job, and the next one's ahead of its time: its first tasks come to their slots and wait there."""
        if not self._side_by_side:
            return chain.run(self._pumps(order.epoch), self._stage_names, self._describe(order.epoch))
        job, self._ahead = self._ahead, None
        if job is None or job.done():  # nobody has ordered it, so it can only have failed
            job = self._start(chain, order.epoch)
        if not order.last:
            self._ahead = self._start(chain, order.epoch + 1)
        return job.result()

    def _start(self, chain: LevelChain, epoch: int) -> Future[list[bytes]]:
        job = chain.start(self._pumps(epoch), self._stage_names, self._describe(epoch))
        self._started.add(job)
        job.add_done_callback(self._started.discard)
        return job

    def _pumps(self, epoch: int) -> list[PumpLevel]:
        last = self._plan.levels - 1
        hellos = (self._hello(epoch, level) for level in range(last + 1))
        return [PumpLevel(hello, hello["level"] == last, self._addresses, self._key) for hello in hellos]

    def _hello(self, epoch: int, level: int) -> dict[str, Any]:
        return {"incarnation": self._incarnation, "epoch": epoch, "level": level}

    def _describe(self, epoch: int) -> str:
        return f"{self._settings.name}, epoch {epoch}"

    def _run_segments(
        self, chain: LevelChain, transforms: FrameTransforms, order: EpochOrder, description: str
    ) -> list[bytes]:
        """An epoch with queries in it: several Spark jobs, and the queries between them."""
        rows: list[bytes] = []
        handed: list[list[bytes]] | None = None
        with transforms.directory(self._scratch()) as directory:
            for levels in transforms.segments:
                ranges: list[dict[str, Any]] = [{} for _ in range(self._plan.slots)]
                if levels.start:
                    try:
                        handed, ranges = transforms.apply(levels.start, rows, directory, description)
                    except Exception:
                        if self._cancelled.is_set():
                            raise JobCancelledError("the job was cancelled") from None
                        raise
                rows = self._run_segment(chain, levels, order, handed, ranges, directory, description)
        return rows

    def _run_segment(
        self,
        chain: LevelChain,
        levels: range,
        order: EpochOrder,
        handed: list[list[bytes]] | None,
        ranges: list[dict[str, Any]],
        directory: str,
        description: str,
    ) -> list[bytes]:
        pumps: list[Any] = []
        for level in levels:
            extra: list[dict[str, Any]] = [{"frames": directory} for _ in range(self._plan.slots)]
            if level and level == levels.start:
                extra = [{**each, "ranges": mine} for each, mine in zip(extra, ranges, strict=True)]
            kind = PumpLastBeforeCut if level == levels[-1] < self._plan.levels - 1 else PumpLevel
            last = level == self._plan.levels - 1
            pumps.append(kind(self._hello(order.epoch, level), last, self._addresses, self._key, extra))
        if handed is not None:
            pumps[0] = FromDriver(pumps[0])
        names = self._stage_names[levels.start : levels.stop]
        return self._run(lambda: chain.run(pumps, names, description, levels.start, handed))

    def _order_of(self, order: EpochOrder, slot: int) -> dict[str, Any]:
        return {
            "epoch": order.epoch,
            "checkpoint": order.checkpoint,
            "snapshot": order.snapshot,
            "whole": order.whole,
            "completed": order.completed,
            "caught_up": list(order.caught_up),
            "ended": list(order.ended),
            "held_back": list(order.held_back),
            "over": order.over,
            **order.reading_of(slot),
        }

    def _run(self, action: Callable[[], list[bytes]]) -> list[bytes]:
        """Run a Spark job; if it fails, say why in the words of the slot that failed and not in Spark's."""
        assert self._control is not None and self._handle is not None
        if self._cancelled.is_set():
            raise JobCancelledError("the job was cancelled")
        try:
            return action()
        except Exception as error:
            if self._cancelled.is_set():
                raise JobCancelledError("the job was cancelled") from None
            failure = self._control.failure(_CAUSE_S if self._handle.alive() else 0.0)
            if failure is not None:
                raise rebuild(failure) from None
            if not self._handle.alive():
                raise SlotLostError("the Spark JVM died") from error
            raise SlotLostError(f"a slot or a Spark worker was lost: {_innermost(error)}") from error

    def _ensure_spark(self) -> LevelChain:
        """The Spark session, a new one if the JVM has died and was ours."""
        if self._handle is not None and not self._handle.alive():
            self._handle.release()
            self._handle = None
        if self._handle is None:
            refuse_cluster(self._settings.master or "local")
            handle = session.acquire(self._plan.slots, self._settings.spark, self._settings.master)
            try:
                refuse_cluster(str(handle.sc.master))
            except ConfigurationError:
                handle.release()
                raise
            self._handle = handle
            if self._chain is not None:
                self._chain.close()
            self._chain = LevelChain(handle.sc, self._plan.slots, self._group)
            # two jobs at a time: a task of one may wait for those of the other, so all of them need a core
            self._side_by_side = self._transforms is None and handle.reserve(2 * self._plan.slots)
        if self._control is None:
            self._control = ControlServer("127.0.0.1", self._key, self._settings.heartbeat_timeout_ms / 1000)
        assert self._chain is not None
        return self._chain

    def _scratch(self) -> str:
        """A directory for the slots' sockets that is removed with the job even if slots are killed.

        The embedded session's own, or one of ours beside a given session.
        """
        assert self._handle is not None
        if self._handle.scratch is not None:
            return str(self._handle.scratch.path)
        self._own_scratch = self._own_scratch or ScratchDir.create()
        return str(self._own_scratch.path)

    def tell(self, slot: int, message: SlotMessage) -> None:
        if self._control is not None:
            self._control.send(slot, message)

    def undeploy(self) -> None:
        self._addresses = []
        if self._started:
            self._cancel_jobs()
        if self._control is not None:
            self._control.stop_slots(_STOP_S)
        self._ahead = None
        wait(set(self._started), _STOP_S)

    def cancel(self) -> None:
        self._cancelled.set()
        self._cancel_jobs()

    def _cancel_jobs(self) -> None:
        if self._chain is not None and self._handle is not None and self._handle.alive():
            with contextlib.suppress(Exception):  # the JVM may be on its way out, which ends the job as well
                self._chain.cancel()

    def close(self) -> None:
        self.undeploy()
        if self._control is not None:
            self._control.close()
        if self._chain is not None:
            self._chain.close()
        if self._handle is not None:
            self._handle.release()
        if self._own_scratch is not None:
            self._own_scratch.remove()


def refuse_cluster(master: str) -> None:
    """Slots are reached through Unix sockets in this version, so all of them have to be on one machine."""
    if not master.startswith("local"):
        raise ConfigurationError(
            f"the Spark session's master is {master}, and this version of firesteel runs on one machine only. Use a local "
            f"session, .master('local[N]'), or none at all and firesteel starts one"
        )


_PYTHON_ERROR = re.compile(r"(?!org\.|java\.)(\w+\.)*[A-Z]\w*(Error|Exception|Exit)(: |$)")


def _innermost(error: Exception) -> str:
    """The line of a Spark failure that says something: the last one of the Python traceback inside it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    for line in lines:
        if line.startswith(("firesteel.", "org.apache.spark.SparkException: Python worker", "Caused by: java.io")):
            return line
    raised = [line for line in lines if _PYTHON_ERROR.match(line)]
    return raised[-1] if raised else lines[0] if lines else type(error).__name__
