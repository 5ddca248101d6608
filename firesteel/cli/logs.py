"""`firesteel logs`: what a detached program has written."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import deque
from typing import Any

from firesteel.cli.jobs import KnownJob, known_jobs, the_job
from firesteel.errors import ConfigurationError

_POLL_S = 0.2


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "logs", help="show a detached job's log", description="Show what a detached program has written."
    )
    parser.add_argument("job", help="its id, the beginning of it, or its name")
    parser.add_argument("-f", "--follow", action="store_true", help="go on until the job ends")
    parser.add_argument("-n", "--lines", type=int, metavar="n", help="only the last so many lines")
    parser.set_defaults(command=logs, address=None)


def logs(given: argparse.Namespace) -> int:
    job = the_job(given)
    path = job.found.entry.log if job.found is not None else None
    if path is None:
        raise ConfigurationError(
            f"job '{job.name}' ({job.id}) has no log of its own: it was not started with firesteel run -d, so what it writes "
            f"is where it was started"
        )
    try:
        with open(path, "rb") as file:
            _copy(file, given, job)
    except OSError as error:
        raise ConfigurationError(f"the log {path} cannot be read: {error.strerror}") from None
    return 0


def _copy(file: Any, given: argparse.Namespace, job: KnownJob) -> None:
    out = sys.stdout
    if given.lines is not None:
        for line in deque(file, maxlen=max(0, given.lines)):
            out.write(line.decode(errors="replace"))
    while True:
        over = not (given.follow and _runs(job, given))  # asked first: what it wrote last is read after that
        while data := file.read(1 << 16):
            out.write(data.decode(errors="replace"))
        out.flush()
        if over:
            return
        time.sleep(_POLL_S)


def _runs(job: KnownJob, given: argparse.Namespace) -> bool:
    """Its process, and not only the job: a program may write more after its job's end."""
    assert job.found is not None
    folder = job.found.folder
    if any(one.found is not None and one.found.folder == folder and one.running for one in known_jobs(given)):
        return True
    return os.path.exists(f"/proc/{job.found.entry.pid}") and _is_driver(job.found.entry.pid, job.found.entry.log)


def _is_driver(pid: int, log: str | None) -> bool:
    """Whether the process still writes to that log; the number may be another's by now."""
    try:
        return os.readlink(f"/proc/{pid}/fd/1") == log
    except OSError:
        return False
