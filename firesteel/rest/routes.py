"""Which path asks for what: Flink's, with or without `/v1` before them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from firesteel import __version__
from firesteel.common.completable_future import CompletableFuture
from firesteel.common.job_status import JobStatus
from firesteel.coordinator.savepoint import dispose
from firesteel.rest import checkpoint_documents, job_documents
from firesteel.rest.messages import Answer, Document, Request, RequestError
from firesteel.rest.served import ServedJob, ServedJobs

_EXCEPTIONS = 16
_REFRESH_MS = 3000

Handler = Callable[[ServedJobs, Request], Answer]


def answer(jobs: ServedJobs, method: str, path: str, query: Mapping[str, str], body: Mapping[str, Any]) -> Answer:
    """
    :raises RequestError: there is no such path, or it cannot be asked for like that.
    """
    segments = [segment for segment in path.split("/") if segment]
    if segments[:1] == ["v1"]:
        del segments[0]
    others = []
    for (verb, pattern), handler in _ROUTES.items():
        parts = _matched(pattern.split("/")[1:], segments)
        if parts is None:
            continue
        if verb == method or (verb, method) == ("GET", "HEAD"):
            return handler(jobs, Request(parts, query, body))
        others.append(verb)
    if others:
        raise RequestError(HTTPStatus.METHOD_NOT_ALLOWED, f"{method} {path:.200} is none: try {' or '.join(others)}")
    raise RequestError(HTTPStatus.NOT_FOUND, f"Not found: {path:.200}")


def _matched(pattern: list[str], segments: list[str]) -> dict[str, str] | None:
    if len(pattern) != len(segments):
        return None
    parts = {}
    for expected, segment in zip(pattern, segments, strict=True):
        if expected.startswith(":"):
            parts[expected[1:]] = segment
        elif expected != segment:
            return None
    return parts


# ---- the process


def _overview(jobs: ServedJobs, request: Request) -> Answer:
    states = [one.job.status for one in jobs.all()]
    running = jobs.running()
    slots = sum(one.plan.slots for one in running)
    return Answer(
        {
            "taskmanagers": len(running),
            "slots-total": slots,
            "slots-available": 0,
            "jobs-running": len(running),
            "jobs-finished": states.count(JobStatus.FINISHED),
            "jobs-cancelled": states.count(JobStatus.CANCELED),
            "jobs-failed": states.count(JobStatus.FAILED),
            "flink-version": f"firesteel-{__version__}",
            "flink-commit": "",
        }
    )


def _config(jobs: ServedJobs, request: Request) -> Answer:
    here = time.localtime()
    return Answer(
        {
            "refresh-interval": _REFRESH_MS,
            "timezone-name": here.tm_zone,
            "timezone-offset": here.tm_gmtoff * 1000,
            "flink-version": f"firesteel-{__version__}",
            "flink-revision": "",
            "features": {"web-submit": False, "web-cancel": True, "web-rescale": False, "web-history": False},
        }
    )


def _jobs(jobs: ServedJobs, request: Request) -> Answer:
    return Answer({"jobs": [{"id": one.id, "status": one.job.status.name} for one in jobs.all()]})


def _jobs_overview(jobs: ServedJobs, request: Request) -> Answer:
    return Answer({"jobs": [job_documents.overview(one) for one in jobs.all()]})


# ---- one job


def _of_job(describe: Callable[[ServedJob], Document]) -> Handler:
    return lambda jobs, request: Answer(describe(jobs.get(request.parts["job"])))


def _exceptions(jobs: ServedJobs, request: Request) -> Answer:
    most = request.query.get("maxExceptions", str(_EXCEPTIONS))
    if not (most.isascii() and most.isdigit()):
        raise RequestError(HTTPStatus.BAD_REQUEST, f"maxExceptions is no number: {most:.100}")
    return Answer(job_documents.exceptions(jobs.get(request.parts["job"]), int(most)))


def _metrics(jobs: ServedJobs, request: Request) -> Answer:
    """The names of all, or the values of those that are asked for by `?get=`. As in Flink, the answer is an array."""
    found = job_documents.metrics(jobs.get(request.parts["job"]))
    wanted = request.query.get("get")
    if wanted is None:
        return Answer([{"id": name} for name in found])
    return Answer([{"id": name, "value": str(found[name])} for name in wanted.split(",") if name in found])


def _checkpoint(jobs: ServedJobs, request: Request) -> Answer:
    wanted = request.parts["checkpoint"]
    for record in reversed(jobs.get(request.parts["job"]).job.history.checkpoints.records()):
        if str(record.checkpoint) == wanted:
            return Answer(checkpoint_documents.checkpoint(record))
    raise RequestError(HTTPStatus.NOT_FOUND, f"Could not find checkpointing statistics for checkpoint {wanted:.50}")


def _accumulators(one: ServedJob) -> Document:
    found = one.client.get_accumulators().result(0).items()
    values = [{"name": name, "type": type(value).__name__, "value": str(value)} for name, value in found]
    return {"job-accumulators": [], "user-task-accumulators": values, "serialized-user-task-accumulators": {}}


def _cancel(jobs: ServedJobs, request: Request) -> Answer:
    one = _running(jobs, request)
    mode = request.query.get("mode", "cancel")
    if mode != "cancel":
        raise RequestError(
            HTTPStatus.BAD_REQUEST, f"mode can only be cancel, not {mode:.50}; to stop a job, POST .../stop"
        )
    one.client.cancel()
    return Answer({}, HTTPStatus.ACCEPTED)


# ---- savepoints


def _savepoint(jobs: ServedJobs, request: Request) -> Answer:
    one, directory = _running(jobs, request), request.text("target-directory")
    if request.flag("cancel-job"):
        return one.operations.start(request, lambda: one.client.cancel_with_savepoint(directory))
    return one.operations.start(request, lambda: one.client.trigger_savepoint(directory))


def _stop(jobs: ServedJobs, request: Request) -> Answer:
    one, directory = _running(jobs, request), request.text("targetDirectory")
    drain = request.flag("drain")
    return one.operations.start(request, lambda: one.client.stop_with_savepoint(drain, directory))


def _savepoint_status(jobs: ServedJobs, request: Request) -> Answer:
    one = jobs.get(request.parts["job"])
    return one.operations.status(request.parts["trigger"], lambda location: {"location": location})


def _dispose(jobs: ServedJobs, request: Request) -> Answer:
    path = request.text("savepoint-path")
    if not path:
        raise RequestError(HTTPStatus.BAD_REQUEST, "savepoint-path is missing: which savepoint is to be deleted?")

    def begin() -> CompletableFuture[None]:
        done: CompletableFuture[None] = CompletableFuture()

        def work() -> None:
            try:
                dispose(path)
            except Exception as error:  # noqa: BLE001  whoever asks is told
                done.set_exception(error)
            else:
                done.set_result(None)

        threading.Thread(target=work, name="savepoint disposal", daemon=True).start()
        return done

    return jobs.disposals.start(request, begin)


def _disposal_status(jobs: ServedJobs, request: Request) -> Answer:
    return jobs.disposals.status(request.parts["trigger"], lambda _: {})


def _running(jobs: ServedJobs, request: Request) -> ServedJob:
    one = jobs.get(request.parts["job"])
    if one.job.status.is_terminal_state():
        raise RequestError(HTTPStatus.CONFLICT, f"Job {one.id} is not running: it is {one.job.status.name}")
    return one


_ROUTES: dict[tuple[str, str], Handler] = {
    ("GET", "/overview"): _overview,
    ("GET", "/config"): _config,
    ("GET", "/jobs"): _jobs,
    ("GET", "/jobs/overview"): _jobs_overview,
    ("GET", "/jobs/:job"): _of_job(job_documents.details),
    ("PATCH", "/jobs/:job"): _cancel,
    ("GET", "/jobs/:job/accumulators"): _of_job(_accumulators),
    ("GET", "/jobs/:job/checkpoints"): _of_job(checkpoint_documents.checkpoints),
    ("GET", "/jobs/:job/checkpoints/config"): _of_job(checkpoint_documents.checkpoint_config),
    ("GET", "/jobs/:job/checkpoints/details/:checkpoint"): _checkpoint,
    ("GET", "/jobs/:job/config"): _of_job(job_documents.config),
    ("GET", "/jobs/:job/exceptions"): _exceptions,
    ("GET", "/jobs/:job/metrics"): _metrics,
    ("GET", "/jobs/:job/plan"): _of_job(lambda one: {"plan": job_documents.plan(one)}),
    ("GET", "/jobs/:job/status"): _of_job(lambda one: {"status": one.job.status.name}),
    ("POST", "/jobs/:job/savepoints"): _savepoint,
    ("GET", "/jobs/:job/savepoints/:trigger"): _savepoint_status,
    ("POST", "/jobs/:job/stop"): _stop,
    ("POST", "/savepoint-disposal"): _dispose,
    ("GET", "/savepoint-disposal/:trigger"): _disposal_status,
}
