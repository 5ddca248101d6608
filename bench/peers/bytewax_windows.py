"""The same sums by bytewax: `python -m bench.peers.bytewax_windows RECORDS KEYS`

Two processes, without recovery, which is the fastest it can be run. The clock runs from the first record to the last line
written. There are wheels for few Pythons and platforms; without one, the answer says that it is missing.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.data import appearing
from bench.programs import ROOT
from bench.windows import WINDOW_MS, Readings, line
from bench.workloads import digest

PACKAGES = ROOT / "build" / "bytewax"
VERSION = "bytewax==0.21.1"


def install():
    """Into a directory of its own, once. Says whether there is one."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--only-binary=:all:", "--target"]
    if not PACKAGES.exists():
        try:
            with appearing(PACKAGES) as directory:
                subprocess.run([*pip, directory, VERSION], stdout=sys.stderr, check=True)
        except subprocess.CalledProcessError:
            return False
    return True


def run(readings):
    if not install():
        return {"missing": f"there is no {VERSION} for this Python"}
    flow = Path(__file__).with_name("bytewax_flow.py")
    with tempfile.TemporaryDirectory() as results:
        environ = {
            **os.environ,
            "PYTHONPATH": f"{PACKAGES}{os.pathsep}{flow.parent}",
            "READINGS": str(readings.directory / "whole"),
            "RESULTS": results,
            "WINDOW_MS": str(WINDOW_MS),
        }
        command = [sys.executable, "-m", "bytewax.testing", "bytewax_flow:flow", "-p", "2", "-w", "1"]
        done = subprocess.run(command, env=environ, cwd=results, stdout=subprocess.PIPE, text=True, check=True)
        ended = time.monotonic()
        found = digest(line(key, int(start), int(total)) for key, start, total in rows(results))
    if found != readings.expected():
        sys.exit(f"wrong output: {found} instead of {readings.expected()}")
    # both processes write there, and their lines may run into each other
    started = [float(moment) for moment in re.findall(r"started ([0-9]+\.[0-9]+)", done.stdout)]
    if not started:
        sys.exit(f"bytewax did not say when it started: {done.stdout}")
    return {"per_s": readings.records / (ended - min(started))}


def rows(directory):
    for path in Path(directory).iterdir():
        with open(path) as file:
            yield from map(str.split, file)


if __name__ == "__main__":
    print(json.dumps(run(Readings(*map(int, sys.argv[1:3])).make())))
