"""`python -m bench`: measure, print a table, write build/bench.json; exit code 1 if a target is missed.

Ratios are what counts: all figures come from one run on one machine, with repetitions of all programs taking turns.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

from bench.figures import save, table
from bench.part import FULL, QUICK
from bench.parts import PARTS
from bench.programs import ROOT, ProgramError


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, one repetition: to try it, not to judge by")
    names = [part.name for part in PARTS]
    parser.add_argument("--only", action="append", choices=names, help="measure this part; may be given again")
    options = parser.parse_args()
    size = QUICK if options.quick else FULL
    parts = [part(size) for part in PARTS if options.only is None or part.name in options.only]
    started = time.monotonic()
    try:
        for part in parts:
            part.prepare()
        for repetition in range(size.repetitions):
            print(f"repetition {repetition + 1} of {size.repetitions}", file=sys.stderr)
            for part in parts:
                part.repeat(repetition)
    except ProgramError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    finally:
        for part in parts:
            part.close()
    figures = [figure for part in parts for figure in part.figures()]
    save(figures, ROOT / "build" / "bench.json")
    print(f"\n{table(figures)}\n")
    print(
        f"Medians; {os.cpu_count()} cores, Python {sys.version.split()[0]}, {time.monotonic() - started:.0f} s in all."
    )
    for part in parts:
        for note in part.notes():
            print(f"- {note}")
    missed = [figure.name for figure in figures if figure.ok is False]
    if options.quick:
        print("Quick sizes are mostly start-up: their targets do not set the exit code.")
        return 0
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
