"""Running measured programs, each in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from firesteel.engine.java import find_java

ROOT = Path(__file__).parent.parent
LOGS = ROOT / "build" / "bench-logs"


class ProgramError(Exception):
    """A measured program failed, or its output was wrong."""


def run(module: str, *arguments: object, python: str = sys.executable) -> dict[str, Any]:
    """Run `python -m module` and return the JSON of its last line. Its temporary files go when it ends.

    :param python: another one, for programs that need packages which do not go with Firesteel's.
    """
    LOGS.mkdir(parents=True, exist_ok=True)
    words = [module, *map(str, arguments)]
    log = LOGS / (module.replace("bench.", "") + ".log")
    print(f"  {' '.join(words)} ", end="", file=sys.stderr, flush=True)
    started = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as directory,
        open(log, "w") as errors,
    ):
        environ = {**os.environ, "TMPDIR": directory}
        environ.update(find_java().launch_environment(environ, Path(directory)))  # the same Java for all of them
        done = subprocess.run(
            [python, "-m", *words], cwd=ROOT, env=environ, stdout=subprocess.PIPE, stderr=errors, text=True
        )
    print(f"({time.monotonic() - started:.0f} s)", file=sys.stderr)
    if done.returncode:
        tail = "\n".join(log.read_text().splitlines()[-15:])
        raise ProgramError(f"{' '.join(words)} ended with {done.returncode}; the end of {log}:\n{tail}")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer
