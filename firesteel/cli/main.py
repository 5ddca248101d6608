"""From the command line to a command, and from what went wrong to one line and an exit code.

0: all went well. 1: the program or its job failed, or what was asked of a job. 2: what was asked for cannot be: a setting,
a path, a checkpoint. 130: Ctrl-C.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import NoReturn

from firesteel import __version__
from firesteel.cli import checkpoints, config, info, inspect, list_jobs, logs, run, savepoint, txn
from firesteel.cli.output import OperationError, complain
from firesteel.errors import FiresteelError

FAILED, BAD_INPUT, INTERRUPTED = 1, 2, 130


def entry() -> NoReturn:
    sys.exit(main())


def main(arguments: list[str] | None = None) -> int:
    """Run a command; the exit code."""
    try:
        given = _parser().parse_args(arguments)
        given.command_line = sys.argv[1:] if arguments is None else arguments
        code: int = given.command(given)
        sys.stdout.flush()
    except OperationError as error:
        complain(str(error))
        return FAILED
    except FiresteelError as error:
        complain(str(error))
        return BAD_INPUT
    except KeyboardInterrupt:
        complain("interrupted")
        return INTERRUPTED
    except BrokenPipeError:  # whoever read our output has had enough; Python must not try to flush it once more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return code


class _Parser(argparse.ArgumentParser):
    """What is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"{self.prog}: {message} (see {self.prog} --help)\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="firesteel",
        description="PyFlink programs on Spark. docs/operating.md and docs/configuration.md tell more.",
    )
    parser.add_argument("--version", action="version", version=f"firesteel {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="<command>", required=True)
    for module in (run, list_jobs, info, logs, savepoint, checkpoints, inspect, txn, config):
        module.add_to(commands)
    return parser
