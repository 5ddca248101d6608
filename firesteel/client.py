"""From a plan to a running job: this is where the layers meet."""

from __future__ import annotations

import contextlib
import sys
import tempfile
import threading
import time
from dataclasses import replace
from typing import Any

from firesteel.common.completable_future import CompletableFuture
from firesteel.common.job_client import JobClient
from firesteel.common.job_execution_result import JobExecutionResult
from firesteel.common.job_id import JobID
from firesteel.common.job_status import JobStatus
from firesteel.common.storage import MemoryStorage
from firesteel.connectors.base import PrepareContext
from firesteel.coordinator.collecting import CollectedResults
from firesteel.coordinator.driver_lock import DriverLock
from firesteel.coordinator.job import Job
from firesteel.coordinator.lineage import JobDirectory
from firesteel.coordinator.progress import Progress
from firesteel.coordinator.savepoint import dispose
from firesteel.coordinator.savepoint_requests import Ending
from firesteel.coordinator.starting import check_start
from firesteel.datastream.collecting import END
from firesteel.engine.dataframes import check_frame, check_schema, open_results
from firesteel.engine.spark_engine import SparkEngine
from firesteel.graph.nodes import Read, ToFrame, Write
from firesteel.graph.plan import JobPlan, PlannedOperator
from firesteel.graph.settings import JobSettings
from firesteel.rest.endpoint import Endpoint
from firesteel.rest.served import ServedJob

__all__ = ["RunningJob", "check_frame", "check_schema", "dispose", "launch", "open_results"]


def launch(plan: JobPlan, settings: JobSettings, progress: Progress | None = None) -> RunningJob:
    """Start a job on Spark, in a thread of its own. `progress` is told about every epoch and checkpoint."""
    return RunningJob(plan, settings, progress or Progress(plan, settings.name, settings.progress))


class RunningJob(JobClient):
    """A job that runs in this process."""

    def __init__(self, plan: JobPlan, settings: JobSettings, progress: Progress) -> None:
        self.progress = progress
        self._collected = CollectedResults()
        self.results = self._collected.queue
        self._result: CompletableFuture[JobExecutionResult] = CompletableFuture()
        self._ended = threading.Event()  # nothing is left of it
        with contextlib.ExitStack() as opened:  # closed again if something refuses to start, and else when the job ends
            self._endpoint = opened.enter_context(Endpoint())  # left last: who sees the end can start the job again
            lock = opened.enter_context(DriverLock())
            where = checkpoints = settings.checkpoints.directory if settings.checkpoints.enabled else None
            temporary = None
            if where is None:
                where = temporary = opened.enter_context(tempfile.TemporaryDirectory(prefix="firesteel-job-"))
            existing = JobDirectory.find(where, settings.name)
            if existing is not None and not settings.start.take_over:
                lock.acquire(existing)  # first of all, so that a second driver is told at once
            plan = check_start(plan, settings)
            self._endpoint.listen(settings.rest)
            self._engine = SparkEngine(plan, settings)  # it refuses what cannot run before anything is written
            opened.callback(self._engine.close)
            memory = _memory(settings)
            directory = JobDirectory.open(memory or where, settings.name, temporary if memory else None)
            if not lock.held:
                lock.acquire(directory, take_over=settings.start.take_over)  # the program has been found to fit
            plan = prepared(plan, directory.workspace, checkpoints is not None, self._engine)
            self._job_id = JobID(directory.job_id)
            self.job = Job(plan, settings, directory, self._engine, self._collected, self.progress, _print)
            self._endpoint.publish(ServedJob(self, self.job, plan, settings, self.progress))
            self._opened = opened.pop_all()
        self._started = time.monotonic()
        threading.Thread(target=self._run, name=f"job {settings.name}", daemon=True).start()

    def _run(self) -> None:
        failure: BaseException | None = None
        try:
            self.job.run()
        except BaseException as error:  # noqa: BLE001  it reaches whoever waits for the result
            failure = error
        finally:
            with self._opened:
                self._endpoint.end(failure)
        if failure is None:
            took = int((time.monotonic() - self._started) * 1000)
            self._result.set_result(JobExecutionResult(self._job_id, took, {}))
        else:
            self._result.set_exception(failure)
        self.results.put(END)
        self._ended.set()

    def get_job_id(self) -> JobID:
        return self._job_id

    def get_job_status(self) -> CompletableFuture[JobStatus]:
        return CompletableFuture.completed(self.job.status)

    def cancel(self) -> CompletableFuture[None]:
        done: CompletableFuture[None] = CompletableFuture()
        self.job.cancel()

        def wait() -> None:
            self._ended.wait()
            done.set_result(None)

        threading.Thread(target=wait, name="cancel", daemon=True).start()
        return done

    def get_job_execution_result(self) -> CompletableFuture[JobExecutionResult]:
        return self._result

    def get_metrics(self) -> CompletableFuture[dict[str, Any]]:
        """What the functions' metrics stand at, by operator uid and name, all subtasks taken together."""
        return CompletableFuture.completed(dict(self.job.metrics))

    def get_accumulators(self) -> CompletableFuture[dict[str, Any]]:
        return CompletableFuture.completed({})

    def stop_with_savepoint(
        self, advance_to_end_of_event_time: bool, savepoint_directory: str | None = None
    ) -> CompletableFuture[str]:
        return self._ended_with(savepoint_directory, Ending.DRAIN if advance_to_end_of_event_time else Ending.SUSPEND)

    def cancel_with_savepoint(self, savepoint_directory: str | None = None) -> CompletableFuture[str]:
        return self._ended_with(savepoint_directory, Ending.CANCEL)

    def trigger_savepoint(self, savepoint_directory: str | None = None) -> CompletableFuture[str]:
        return self.job.savepoints.ask(savepoint_directory)

    def _ended_with(self, directory: str | None, ending: Ending) -> CompletableFuture[str]:
        """A savepoint's path, once the job has ended with it and is free to be started again."""
        taken, done = self.job.savepoints.ask(directory, ending), CompletableFuture[str]()

        def wait() -> None:
            try:
                path = taken.result()
            except BaseException as error:  # noqa: BLE001  whoever waits has to know
                done.set_exception(error)
            else:
                self._ended.wait()
                done.set_result(path)

        threading.Thread(target=wait, name="stop", daemon=True).start()
        return done


def _memory(settings: JobSettings) -> MemoryStorage | None:
    """Where checkpoints go that are to last as long as the driver; None: to files."""
    checkpoints = settings.checkpoints
    if not checkpoints.enabled or checkpoints.directory is not None or checkpoints.max_state_size is None:
        return None
    return MemoryStorage(checkpoints.max_state_size)


def prepared(plan: JobPlan, directory: str, lasting: bool, engine: SparkEngine) -> JobPlan:
    """The plan with every source and sink as it is to run, after whatever they do on the driver before the start."""
    spark = engine.frames()

    def prepare(operator: PlannedOperator) -> PlannedOperator:
        context, kind = PrepareContext(operator.uid, directory, lasting, spark), operator.operator
        if isinstance(kind, Read) and (source := kind.source.prepare(context)) is not kind.source:
            return replace(operator, operator=replace(kind, source=source))
        if isinstance(kind, Write) and (sink := kind.sink.prepare(context)) is not kind.sink:
            return replace(operator, operator=replace(kind, sink=sink))
        if isinstance(kind, ToFrame):
            return replace(operator, operator=ToFrame(kind.transform.prepare(spark)))
        return operator

    operators = tuple(map(prepare, plan.operators))
    if all(one is other for one, other in zip(operators, plan.operators, strict=True)):
        return plan
    plan = JobPlan(operators)
    engine.use(plan)
    return plan


def _print(stream: str, text: str) -> None:
    """What user code printed in a slot."""
    target = sys.stdout if stream == "stdout" else sys.stderr
    target.write(text)
    target.flush()
