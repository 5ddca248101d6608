"""Starts the sensor job once for each list of arguments on standard input, all on one Spark, and says how each ended.

Spark's start would be most of the time of a test that only wants to see a job refuse a checkpoint.
"""

from __future__ import annotations

import json
import logging
import sys

from sensor_job import arguments, program


def main():
    logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    outcomes = []
    for given in json.load(sys.stdin):
        args = arguments(given)
        try:
            program(args).execute(args.name)
        except Exception as error:  # noqa: BLE001  whatever it is, the test wants to see it
            outcomes.append({"kind": type(error).__name__, "message": str(error)})
        else:
            outcomes.append({"kind": None, "message": ""})
    json.dump(outcomes, sys.stdout)


if __name__ == "__main__":
    main()
