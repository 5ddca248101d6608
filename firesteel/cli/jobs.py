"""Which job a command means, and how to reach it."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from firesteel.cli.output import OperationError, complain
from firesteel.cli.settings import add_definitions, definitions
from firesteel.common.job_status import JobStatus
from firesteel.datastream.configured import hand_over, settings_in_effect
from firesteel.errors import ConfigurationError
from firesteel.rest.client import RestClient, UnreachableError
from firesteel.rest.registry import FoundJob, find_jobs

T = TypeVar("T")

_POLL_S = 0.2
_TELL_EVERY_S = 5.0
_GIVE_UP_S = 10.0  # for a server that answered before
_SHOWN = 10

UNKNOWN = "UNKNOWN"
"""The status of a job on another machine that does not answer any more."""


@dataclass(frozen=True)
class KnownJob:
    """A job on this machine or behind an address."""

    id: str
    name: str
    status: JobStatus
    started_ms: int
    ended_ms: int | None = None
    found: FoundJob | None = None  # on this machine
    client: RestClient | None = None  # None: it cannot be asked

    @property
    def running(self) -> bool:
        return not self.status.is_terminal_state()

    def reached(self) -> RestClient:
        """
        :raises ConfigurationError: it has ended, or cannot be asked.
        """
        if not self.running:
            raise ConfigurationError(f"job '{self.name}' ({self.id}) is not running: it is {self.state()}")
        if self.client is None:
            raise ConfigurationError(
                f"job '{self.name}' ({self.id}) runs without a REST server (rest.enabled: false), so it can only be ended by a "
                f"signal to its driver" + (f", process {self.found.entry.pid}" if self.found is not None else "")
            )
        return self.client

    def state(self) -> str:
        """Its status, in words if that alone would not tell."""
        lost = self.found is not None and self.found.lost
        return f"{self.status.name} (its driver died)" if lost else self.status.name


def add_target(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-m", "--jobmanager", dest="address", metavar="host:port",
        help="the server of a job on another machine; its token is in FIRESTEEL_TOKEN or rest.token",
    )  # fmt: skip
    add_definitions(parser)


def known_jobs(given: argparse.Namespace) -> list[KnownJob]:
    """All jobs there are on this machine, or behind the address that was given, the oldest first."""
    client = remote(given)
    if client is None:
        return [_local(found) for found in find_jobs()]
    return [_remote(client, job) for job in client.get("jobs", "overview")["jobs"]]


def remote(given: argparse.Namespace) -> RestClient | None:
    """Of the address that was given, if one was."""
    if given.address is None:
        return None
    hand_over(definitions(given))
    token = settings_in_effect().get("rest.token")
    return RestClient(given.address, token.value if token is not None else None)


def _local(found: FoundJob) -> KnownJob:
    entry = found.entry
    client = RestClient(entry.address, found.token()) if found.alive and entry.address is not None else None
    return KnownJob(entry.job_id, entry.name, found.status, entry.started_ms, found.ended_ms, found, client)


def _remote(client: RestClient, job: dict[str, Any]) -> KnownJob:
    end = job["end-time"]
    return KnownJob(
        job["jid"], job["name"], JobStatus[job["state"]], job["start-time"], end if end >= 0 else None, None, client
    )


def the_job(given: argparse.Namespace) -> KnownJob:
    """The job that is meant by an id, the beginning of one, or a name. Of several runs of a job the last one.

    :raises ConfigurationError: there is none, or there are several.
    """
    jobs, wanted = known_jobs(given), given.job
    meant = [job for job in jobs if job.id == wanted] or [job for job in jobs if job.name == wanted]
    meant = meant or [job for job in jobs if wanted and job.id.startswith(wanted)]
    meant = [job for job in meant if job.running] or meant
    if len({job.id for job in meant}) == 1 and sum(job.running for job in meant) <= 1:
        return meant[-1]
    if meant:
        raise ConfigurationError(f"{wanted!r} is more than one job:{_listed(meant)}")
    raise ConfigurationError(f"there is no job {wanted!r}. There {'are' if jobs else 'are none.'}{_listed(jobs)}")


def _listed(jobs: Sequence[KnownJob]) -> str:
    shown = sorted(jobs, key=lambda job: job.running)[-_SHOWN:]
    more = f"\n  and {len(jobs) - len(shown)} more" if len(jobs) > len(shown) else ""
    return "".join(f"\n  {job.id} {job.name} ({job.state()})" for job in shown) + more


def wait_for(what: str, ask: Callable[[], T | None]) -> T:
    """Ask until there is an answer, saying now and then that it takes time."""
    began = told = time.monotonic()
    while True:
        answer = ask()
        if answer is not None:
            return answer
        time.sleep(_POLL_S)
        now = time.monotonic()
        if now - told >= (1.0 if told == began else _TELL_EVERY_S):
            told = now
            complain(f"{what}: {now - began:.0f} s so far")


def run_operation(job: KnownJob, request: str) -> dict[str, Any]:
    """Wait for what was asked of a job, and say how it ended.

    :raises OperationError: it failed.
    """
    client, silent_since = job.reached(), 0.0

    def ask() -> dict[str, Any] | None:
        nonlocal silent_since
        try:
            answer = client.get("jobs", job.id, "savepoints", request)
        except UnreachableError:
            silent_since = silent_since or time.monotonic()
            if _is_over(job) or time.monotonic() - silent_since > _GIVE_UP_S:
                raise
            return None
        silent_since = 0.0
        return answer["operation"] if answer["status"]["id"] == "COMPLETED" else None

    try:
        operation = wait_for(f"waiting for the savepoint of job '{job.name}'", ask)
    except UnreachableError as error:
        raise OperationError(
            f"the driver of job '{job.name}' ({job.id}) ended before it said whether there is a savepoint: {error}. See its "
            f"log: firesteel logs {job.id}"
        ) from None
    if "failure-cause" in operation:
        raise OperationError(operation["failure-cause"]["stack-trace"])
    return operation


def await_end(job: KnownJob) -> str:
    """Wait until the job has ended and can be started again; its last status, as far as somebody knows it."""
    client = job.reached()

    def ask() -> str | None:
        if job.found is not None:
            return _is_over(job)
        try:
            status: str = client.get("jobs", job.id, "status")["status"]
        except (UnreachableError, ConfigurationError):  # it is gone, and with it its server
            return UNKNOWN
        return status if JobStatus[status].is_terminal_state() else None

    return wait_for(f"waiting for the end of job '{job.name}'", ask)


def _is_over(job: KnownJob) -> str | None:
    """Its last status, once its driver has let go of it."""
    if job.found is None:
        return UNKNOWN
    now = next((one for one in find_jobs() if one.folder == job.found.folder), None)
    if now is None:
        return UNKNOWN
    return None if now.alive else now.status.name
