"""`firesteel info`: the plan of a program, or what there is to know about a job."""

from __future__ import annotations

import argparse
import json
import os
from datetime import datetime
from typing import Any, NoReturn

from firesteel.cli.jobs import KnownJob, add_target, the_job
from firesteel.cli.output import complain, write
from firesteel.cli.program import run_program
from firesteel.cli.settings import check_settings, on_command_line
from firesteel.common.sizes import show_size
from firesteel.datastream.configured import hand_over
from firesteel.datastream.launching import instead_of_running
from firesteel.graph.explain import execution_plan, explain
from firesteel.graph.guarantee import end_to_end
from firesteel.graph.plan import JobPlan
from firesteel.graph.settings import JobSettings


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "info",
        help="show the plan of a program, or a job",
        description="Show the plan of a program, as JSON that Flink's plan visualizer reads: it is run up to its first "
        "execute(). Or show what there is to know about a job.",
    )
    parser.add_argument("--text", action="store_true", help="the plan for people")
    parser.add_argument("--json", action="store_true", help="a job as its server describes it")
    parser.add_argument("-p", "--parallelism", metavar="n", help="subtasks of an operator (parallelism.default)")
    add_target(parser)
    parser.add_argument(
        "job", metavar="job.py | job", help="the program; or the job's id, the beginning of it, or its name"
    )
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...", help="the program's arguments")
    parser.set_defaults(
        command=info, master=None, savepoint=None, allow_non_restored_state=False, resume=False, take_over=False,
        claim=None,
    )  # fmt: skip


def info(given: argparse.Namespace) -> int:
    return _plan(given) if os.path.isfile(given.job) else _job(given)


class _Planned(BaseException):
    """In the place of the job that would start: ends the program, whatever it catches."""

    def __init__(self, plan: JobPlan, settings: JobSettings) -> None:
        super().__init__()
        self.plan, self.settings = plan, settings


def _plan(given: argparse.Namespace) -> int:
    hand_over(on_command_line(given))
    check_settings()

    def planned(plan: JobPlan, settings: JobSettings) -> NoReturn:
        raise _Planned(plan, settings)

    with instead_of_running(planned):
        try:
            code = run_program(given.job, given.arguments)
        except _Planned as found:
            plan, checkpoints = found.plan, found.settings.checkpoints
            guarantee = end_to_end(plan, checkpoints.enabled, checkpoints.mode)
            write(explain(plan, found.settings.name, guarantee) if given.text else execution_plan(plan))
            return 0
    if code == 0:
        complain(f"{given.job} runs no job: it has no execute()")
    return code or 1


def _job(given: argparse.Namespace) -> int:
    job = the_job(given)
    if given.json:
        write(json.dumps(job.reached().get("jobs", job.id), indent=1))
        return 0
    lines = [f"job {job.name!r}, id {job.id}", f"status: {job.state()}", f"started: {_time(job.started_ms)}"]
    if job.ended_ms is not None:
        lines.append(f"ended: {_time(job.ended_ms)}")
    if job.found is not None:
        entry = job.found.entry
        lines.append(f"driver: process {entry.pid} on {entry.host}")
        if entry.log is not None:
            lines.append(f"log: {entry.log}")
        if entry.failure is not None:
            lines += ["failure:", *(f"  {line}" for line in entry.failure.strip().splitlines())]
    if job.running and job.client is not None:
        lines += _live(job)
    write("\n".join(lines))
    return 0


def _live(job: KnownJob) -> list[str]:
    server = job.reached()
    details, checkpoints = server.get("jobs", job.id), server.get("jobs", job.id, "checkpoints")
    failures = server.get("jobs", job.id, "exceptions")["exceptionHistory"]["entries"]
    counts, latest = checkpoints["counts"], checkpoints["latest"]["completed"]
    lines = [f"address: {server.address}", "operators (records in, out):"]
    for vertex in details["vertices"]:
        metrics = vertex["metrics"]
        read, written = metrics["read-records"], metrics["write-records"]
        lines.append(f"  {vertex['name']} x{vertex['parallelism']} (uid {vertex['id']}): {read:,}, {written:,}")
    lines.append(
        f"checkpoints: {counts['completed']} completed, {counts['failed']} failed, {counts['restored']} restored"
    )
    if latest is not None:
        size, took = show_size(latest["state_size"]), latest["end_to_end_duration"] / 1000
        lines.append(f"  last: {latest['id']}, {size} in {took:.2f} s, {latest['external_path']}")
    if failures:
        last = failures[0]
        lines += [f"last failure, {_time(last['timestamp'])}:"]
        lines += [f"  {line}" for line in last["stacktrace"].strip().splitlines()[-12:]]
    return lines


def _time(ms: int) -> str:
    return f"{datetime.fromtimestamp(ms / 1000):%Y-%m-%d %H:%M:%S}"
