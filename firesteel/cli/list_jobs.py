"""`firesteel list`: the jobs of this user on this machine, or those behind an address."""

from __future__ import annotations

import argparse
import json
import time
from datetime import datetime
from typing import Any

from firesteel.cli.jobs import KnownJob, add_target, known_jobs
from firesteel.cli.output import table, write
from firesteel.common.durations import show_duration
from firesteel.common.job_status import JobStatus

_HEADER = ("JOB ID", "NAME", "STATUS", "STARTED", "DURATION", "PID", "ADDRESS")
_SCHEDULED = (JobStatus.CREATED, JobStatus.RESTARTING)


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "list",
        help="list jobs",
        description="List the jobs of this user on this machine. A job whose driver was killed is shown as FAILED.",
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("-r", "--running", action="store_true", help="only those that run")
    which.add_argument("-s", "--scheduled", action="store_true", help="only those that are about to run (again)")
    which.add_argument("-a", "--all", action="store_true", help="also those that have ended, for a week")
    parser.add_argument("--json", action="store_true", help="for programs")
    add_target(parser)
    parser.set_defaults(command=list_jobs)


def list_jobs(given: argparse.Namespace) -> int:
    jobs = [job for job in known_jobs(given) if given.all or _wanted(given, job)]
    if given.json:
        write(json.dumps([_document(job) for job in jobs], indent=1))
    elif jobs:
        write(table(_HEADER, [_row(job) for job in jobs], (4, 5)))
        for job in jobs:
            if job.found is not None and (job.found.lost or job.found.entry.failure):
                write(f"\n{job.id} {job.name}: {_why(job)}")
    else:
        write("no jobs" if given.all else "no running jobs; firesteel list -a shows those that have ended")
    return 0


def _wanted(given: argparse.Namespace, job: KnownJob) -> bool:
    if given.scheduled:
        return job.status in _SCHEDULED
    return job.running and not (given.running and job.status in _SCHEDULED)


def _row(job: KnownJob) -> tuple[str, ...]:
    end = job.ended_ms if job.ended_ms is not None else int(time.time() * 1000)
    entry = job.found.entry if job.found is not None else None
    return (
        job.id,
        job.name,
        job.state(),
        f"{datetime.fromtimestamp(job.started_ms / 1000):%Y-%m-%d %H:%M:%S}",
        show_duration(end - job.started_ms),
        str(entry.pid) if entry is not None and job.running else "",
        (job.client.address if job.client is not None else "none") if job.running else "",
    )


def _why(job: KnownJob) -> str:
    assert job.found is not None
    entry = job.found.entry
    said = [line for line in (entry.failure or "").splitlines() if line.strip()]
    # a traceback's last line, and where
    text = "\n  ".join(said[-2:]) or f"its driver, process {entry.pid}, died without a word"
    return text + (f" (log: {entry.log})" if entry.log else "")


def _document(job: KnownJob) -> dict[str, Any]:
    entry = job.found.entry if job.found is not None else None
    return {
        "jid": job.id,
        "name": job.name,
        "state": job.status.name,
        "start-time": job.started_ms,
        "end-time": -1 if job.ended_ms is None else job.ended_ms,
        "lost": job.found is not None and job.found.lost,
        "pid": entry.pid if entry is not None else None,
        "address": job.client.address if job.client is not None else None,
        "token-file": str(job.found.folder / "token") if job.found is not None and job.client is not None else None,
        "log": entry.log if entry is not None else None,
        "failure": entry.failure if entry is not None else None,
    }
