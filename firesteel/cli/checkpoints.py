"""`firesteel checkpoints <directory>`: which checkpoints there are, and which of them can be restored."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from datetime import datetime
from itertools import groupby
from typing import Any

from firesteel.cli.output import table, write
from firesteel.common.sizes import show_size
from firesteel.coordinator.listing import ListedCheckpoint, list_checkpoints

_HEADER = ("ID", "TIME", "KIND", "SIZE", "DURATION", "CONFIRMED", "RESTORABLE", "PATH")
_NUMBERS = (0, 3, 4)


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "checkpoints",
        help="list checkpoints",
        description="List the checkpoints below a directory: of all jobs, of one job, or of one of its incarnations. With "
        "--verify the exit code is 1 if one of them cannot be restored.",
    )
    parser.add_argument("directory")
    parser.add_argument("--verify", action="store_true", help="read every state file and compare checksums")
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.set_defaults(command=checkpoints)


def checkpoints(given: argparse.Namespace) -> int:
    found = list_checkpoints(given.directory, verify=given.verify)
    if given.json:
        write(json.dumps([{**asdict(one), "restorable": one.problem is None} for one in found], indent=1))
    elif not found:
        write(f"no checkpoints in {given.directory}")
    else:
        jobs = groupby(found, lambda one: (one.job_name, one.job_id))
        write("\n\n".join(_job(name, job_id, list(listed)) for (name, job_id), listed in jobs))
    return 1 if given.verify and any(one.problem for one in found) else 0


def _job(name: str, job_id: str, found: list[ListedCheckpoint]) -> str:
    lines = [f"job {name!r}, id {job_id or 'unknown'}", table(_HEADER, [_row(one) for one in found], _NUMBERS)]
    return "\n".join(lines + [f"checkpoint {one.checkpoint}: {one.problem}" for one in found if one.problem])


def _row(one: ListedCheckpoint) -> tuple[str, ...]:
    created = datetime.fromtimestamp(one.created_ms / 1000) if one.created_ms is not None else None
    return (
        str(one.checkpoint),
        f"{created:%Y-%m-%d %H:%M:%S}" if created else "?",
        one.kind or "?",
        show_size(one.size) if one.size is not None else "?",
        f"{one.duration_ms / 1000:.2f} s" if one.duration_ms is not None else "",
        {True: "yes", False: "no", None: "?"}[one.confirmed],
        "no" if one.problem else "yes",
        one.path,
    )
