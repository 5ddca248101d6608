"""`firesteel run -d`: a program in a process of its own that outlives the terminal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from firesteel.cli.jobs import wait_for
from firesteel.cli.output import complain, write
from firesteel.errors import ConfigurationError
from firesteel.rest.registry import FoundJob, find_jobs, new_log

_TAIL = 100  # lines of the log that are shown of a program that fails
_INTERRUPTED = 130


@dataclass(frozen=True)
class _Outcome:
    job: FoundJob | None
    code: int  # of the program, if there is no job


def run_detached(program: str, arguments: list[str]) -> int:
    """Start it and wait until its job is submitted, or until it is over.

    :param arguments: those of this command, `-d` included.
    """
    try:
        log = new_log(program)
    except OSError as error:
        raise ConfigurationError(
            f"there is no place for the log of {program}: {error}. FIRESTEEL_HOME says where firesteel keeps such files"
        ) from None
    began = int(time.time() * 1000)
    process = _start(log, arguments)

    def outcome() -> _Outcome | None:
        """It may have had a job and be over already; and process ids are used again."""
        code = process.poll()
        job = (one for one in find_jobs() if one.entry.pid == process.pid and one.entry.started_ms >= began)
        found = _Outcome(next(job, None), code or 0)
        return None if code is None and found.job is None else found

    try:
        found = wait_for(f"waiting for {program} to submit its job (log: {log})", outcome)
    except KeyboardInterrupt:
        process.send_signal(signal.SIGINT)
        complain(f"interrupted before there was a job; {program} is told to end (process {process.pid}, log: {log})")
        return _INTERRUPTED
    if found.job is not None:
        entry = found.job.entry
        write(f"Job has been submitted with JobID {entry.job_id}")
        complain(f"process {process.pid} runs job '{entry.name}'; its log is {log}")
        return 0
    _show(log)
    if found.code == 0:
        complain(f"{program} ended without a job")
        return 0
    complain(f"{program} failed before there was a job; its log is {log}")
    return found.code if found.code > 0 else 128 - found.code


def _start(log: Path, arguments: list[str]) -> subprocess.Popen[bytes]:
    """In a session of its own: what happens to the terminal, or is typed there, does not reach it."""
    command = [sys.executable, "-m", "firesteel", "run", "--log-file", str(log), *arguments]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with open(log, "ab") as output:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment, start_new_session=True
        )


def _show(log: Path) -> None:
    lines = log.read_bytes().decode(errors="replace").splitlines()
    for line in lines[-_TAIL:]:
        sys.stderr.write(f"{line}\n")
