"""`firesteel savepoint`, `cancel` and `stop`: savepoints of running jobs, and the end of jobs with or without one."""

from __future__ import annotations

import argparse
import os
from typing import Any

from firesteel.cli.jobs import UNKNOWN, KnownJob, add_target, await_end, remote, run_operation, the_job, wait_for
from firesteel.cli.output import OperationError, write
from firesteel.coordinator.savepoint import dispose
from firesteel.errors import ConfigurationError

_HERE = ""
"""In the place of a directory that was asked for without saying which: the job's own setting decides."""


def add_to(commands: Any) -> None:
    _add_savepoint(commands)
    _add_cancel(commands)
    _add_stop(commands)


def _add_savepoint(commands: Any) -> None:
    parser = commands.add_parser(
        "savepoint",
        help="write or delete a savepoint",
        description="Write a savepoint of a running job, which goes on; or delete one (-d).",
    )
    parser.add_argument("job", nargs="?", help="its id, the beginning of it, or its name")
    parser.add_argument(
        "directory", nargs="?", help="where to; by itself execution.checkpointing.savepoint-dir of the job"
    )
    parser.add_argument("-d", "--dispose", metavar="path", help="delete this savepoint")
    add_target(parser)
    parser.set_defaults(command=savepoint)


def _add_cancel(commands: Any) -> None:
    parser = commands.add_parser(
        "cancel",
        help="end a job at once",
        description="End a job at once, with -s after a savepoint. To end it with all its output committed, use stop.",
    )
    parser.add_argument(
        "-s", "--with-savepoint", "--withSavepoint", dest="savepoint", nargs="?", const=_HERE, metavar="directory",
        help="write a savepoint first, into this directory or the job's own",
    )  # fmt: skip
    _add_job(parser)
    parser.set_defaults(command=cancel)


def _add_stop(commands: Any) -> None:
    parser = commands.add_parser(
        "stop",
        help="end a job with a savepoint",
        description="End a job with a savepoint, and with all its output up to there committed.",
    )
    parser.add_argument(
        "-p", "--savepoint-path", "--savepointPath", dest="savepoint", nargs="?", const=_HERE, metavar="directory",
        help="where to; by itself execution.checkpointing.savepoint-dir of the job",
    )  # fmt: skip
    parser.add_argument(
        "--drain", action="store_true", help="let every timer and window fire first: to end the job for good"
    )
    _add_job(parser)
    parser.set_defaults(command=stop)


def _add_job(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", nargs="?", help="its id, the beginning of it, or its name")
    add_target(parser)


def savepoint(given: argparse.Namespace) -> int:
    if given.dispose is not None:
        if given.job is not None:
            raise ConfigurationError(f"-d deletes {given.dispose}, and nothing is done with the job {given.job}")
        write(f"Disposing savepoint {given.dispose}.")
        _dispose(given, _absolute(given.dispose) or "")
        write(f"Savepoint {given.dispose} disposed.")
        return 0
    job = _the_job(given)
    write(f"Triggering savepoint for job {job.id}.")
    body = {"target-directory": _absolute(given.directory)}
    _finish(job, job.reached().post("jobs", job.id, "savepoints", body=body))
    return 0


def _dispose(given: argparse.Namespace, path: str) -> None:
    client = remote(given)
    if client is None:
        dispose(path)
        return
    request = client.post("savepoint-disposal", body={"savepoint-path": path})["request-id"]

    def ask() -> dict[str, Any] | None:
        answer = client.get("savepoint-disposal", request)
        return answer["operation"] if answer["status"]["id"] == "COMPLETED" else None

    operation = wait_for(f"waiting for {given.address} to delete {path}", ask)
    if "failure-cause" in operation:
        raise OperationError(operation["failure-cause"]["stack-trace"])


def cancel(given: argparse.Namespace) -> int:
    job = _the_job(given)
    if given.savepoint is None:
        write(f"Cancelling job {job.id}.")
        job.reached().patch("jobs", job.id, mode="cancel")
    else:
        write(f"Cancelling job {job.id} with savepoint.")
        body = {"target-directory": _absolute(given.savepoint), "cancel-job": True}
        _finish(job, job.reached().post("jobs", job.id, "savepoints", body=body))
    return _end(job, "Cancelled", ("CANCELED", UNKNOWN))


def stop(given: argparse.Namespace) -> int:
    job = _the_job(given)
    write(
        f"Suspending job {job.id} with a savepoint." if not given.drain else f"Draining job {job.id} with a savepoint."
    )
    body = {"targetDirectory": _absolute(given.savepoint), "drain": given.drain}
    _finish(job, job.reached().post("jobs", job.id, "stop", body=body))
    return _end(job, "Stopped", ("FINISHED", UNKNOWN))


def _the_job(given: argparse.Namespace) -> KnownJob:
    """As in Flink, an option whose directory may be left out does not take the job for it."""
    if given.job is None and getattr(given, "savepoint", None):
        given.job, given.savepoint = given.savepoint, _HERE
    if given.job is None:
        raise ConfigurationError("which job? Give its id or name; firesteel list shows those that run")
    return the_job(given)


def _finish(job: KnownJob, answer: dict[str, Any]) -> None:
    operation = run_operation(job, answer["request-id"])
    write(f"Savepoint completed. Path: {operation['location']}")


def _end(job: KnownJob, word: str, expected: tuple[str, ...]) -> int:
    status = await_end(job)
    if status in expected:
        write(f"{word} job {job.id}.")
        return 0
    write(f"Job {job.id} is {status}.")
    return 1 if status == "FAILED" else 0


def _absolute(path: str | None) -> str | None:
    """The job may run in another directory than this command."""
    if not path:
        return None
    return path if "://" in path else os.path.abspath(path)
