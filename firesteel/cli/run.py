"""`firesteel run job.py`: a program, with settings and a checkpoint to start from."""

from __future__ import annotations

import argparse
import logging
import os
from typing import Any

from firesteel.cli.detached import run_detached
from firesteel.cli.program import run_program
from firesteel.cli.settings import add_definitions, check_settings, on_command_line
from firesteel.coordinator.completed import locate
from firesteel.datastream.configured import hand_over
from firesteel.errors import ConfigurationError
from firesteel.rest.registry import logs_to


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "run",
        help="run a program",
        description="Run a program as `python job.py args` would, with these settings. What the program sets itself wins.",
    )
    start = parser.add_mutually_exclusive_group()
    start.add_argument(
        "-s", "--from-savepoint", "--fromSavepoint", dest="savepoint", metavar="path",
        help="start from this checkpoint, of this or any other job: its directory or its _metadata file",
    )  # fmt: skip
    start.add_argument(
        "--resume", action="store_true", help="go on from the job's newest checkpoint, and fail if it has none"
    )
    parser.add_argument(
        "-n", "--allow-non-restored-state", "--allowNonRestoredState", dest="allow_non_restored_state",
        action="store_true", help="give up state of operators that the program does not have any more",
    )  # fmt: skip
    claim = parser.add_mutually_exclusive_group()
    claim.add_argument(
        "--claim", action="store_const", const="CLAIM", dest="claim",
        help="what -s names is the job's from then on, and deleted when it is not needed any more",
    )  # fmt: skip
    claim.add_argument(
        "--no-claim", action="store_const", const="NO_CLAIM", dest="claim",
        help="what -s names is left alone, which is what happens by itself",
    )  # fmt: skip
    parser.add_argument(
        "-d",
        "--detached",
        action="store_true",
        help="in a process that outlives this terminal; firesteel list finds it",
    )
    parser.add_argument("--log-file", help=argparse.SUPPRESS)  # this is that process
    parser.add_argument(
        "--take-over", action="store_true", help="start even if another driver runs the job, which then has to end"
    )
    parser.add_argument("-p", "--parallelism", metavar="n", help="subtasks of an operator (parallelism.default)")
    parser.add_argument("--master", metavar="url", help="the Spark master, such as local[4] (spark.master)")
    add_definitions(parser)
    parser.add_argument("job", metavar="job.py", help="the program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...", help="its arguments")
    parser.set_defaults(command=run)


def run(given: argparse.Namespace) -> int:
    if not os.path.isfile(given.job):
        what = "is a directory" if os.path.isdir(given.job) else "there is no such file"
        raise ConfigurationError(f"{given.job} cannot be run: {what}")
    if given.log_file is not None:
        logs_to(given.log_file)
    _show_log()
    hand_over(on_command_line(given))
    environment = check_settings()
    if environment.start.restore_from is not None:
        locate(environment.start.restore_from)
    if given.detached and given.log_file is None:
        return run_detached(given.job, given.command_line[1:])
    return run_program(given.job, given.arguments)


def _show_log() -> None:
    log = logging.getLogger("firesteel")
    if not any(isinstance(handler, _UntilConfigured) for handler in log.handlers):
        handler = _UntilConfigured()
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s", "%H:%M:%S"))
        log.addHandler(handler)
        if log.level == logging.NOTSET:
            log.setLevel(logging.INFO)


class _UntilConfigured(logging.StreamHandler):  # type: ignore[type-arg]
    """Shows our log until the program sets up logging as it likes it."""

    def emit(self, record: logging.LogRecord) -> None:
        if not logging.getLogger().handlers:
            super().emit(record)
