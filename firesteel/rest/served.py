"""The jobs that a server tells about."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from http import HTTPStatus

from firesteel.common.job_client import JobClient
from firesteel.coordinator.job import Job
from firesteel.coordinator.progress import Progress
from firesteel.graph.plan import JobPlan
from firesteel.graph.settings import JobSettings
from firesteel.rest.messages import RequestError
from firesteel.rest.operations import Operations

_ENDED = 20  # of those that have ended, so many are remembered while others run


@dataclass(frozen=True)
class ServedJob:
    """A job of this process, and what can be asked of it."""

    client: JobClient
    job: Job
    plan: JobPlan
    settings: JobSettings
    progress: Progress
    operations: Operations = field(default_factory=Operations)

    @property
    def id(self) -> str:
        return str(self.client.get_job_id())


class ServedJobs:
    """All of them. Any thread may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: dict[str, ServedJob] = {}
        self.disposals = Operations()

    def add(self, job: ServedJob) -> None:
        with self._lock:
            self._jobs.pop(job.id, None)  # of an earlier run
            self._jobs[job.id] = job
            ended = [one for one in self._jobs.values() if one.job.status.is_terminal_state()]
            for one in ended[:-_ENDED]:
                del self._jobs[one.id]

    def all(self) -> list[ServedJob]:
        with self._lock:
            return list(self._jobs.values())

    def running(self) -> list[ServedJob]:
        return [one for one in self.all() if not one.job.status.is_terminal_state()]

    def get(self, job_id: str) -> ServedJob:
        """
        :raises RequestError: there is none of that id.
        """
        with self._lock:
            found = self._jobs.get(job_id)
            known = ", ".join(self._jobs) or "none"
        if found is None:
            raise RequestError(HTTPStatus.NOT_FOUND, f"Job {job_id} not found. There are: {known}")
        return found
