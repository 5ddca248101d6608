"""A longer run: `python -m tests.differential --programs 500 --seed 7 [--spark 20]`."""

from __future__ import annotations

import argparse
import sys
import time

from tests.differential.comparing import check_in_harness, check_on_spark, fresh_seed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=200, help="how many to run in the harness (default: 200)")
    parser.add_argument("--spark", type=int, default=0, help="how many of them to run on Spark, too (default: none)")
    parser.add_argument("--seed", type=int, default=None, help="the first program's seed (default: a fresh one)")
    parser.add_argument("--size", type=int, default=300, help="the most records a source has (default: 300)")
    options = parser.parse_args()
    seed = fresh_seed() if options.seed is None else options.seed
    print(f"programs {seed} to {seed + options.programs - 1}, of size {options.size}", flush=True)
    failed, records, started = [], 0, time.monotonic()
    for index in range(options.programs):
        try:
            records += check_in_harness(seed + index, options.size)
            if index < options.spark:
                records += check_on_spark(seed + index, options.size, checkpoints=index % 2 == 1)
        except Exception as error:  # noqa: BLE001  the run goes on, to see whether others fail as well
            failed.append(seed + index)
            print(f"{type(error).__name__}: {error}\n", flush=True)
    took = time.monotonic() - started
    print(f"{options.programs} programs, {records:,} records in {took:.0f} s; failed: {failed or 'none'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
