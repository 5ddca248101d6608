"""Random faults against an oracle: `python -m tests.chaos --seed 7 --faults 200`, or `make chaos SEED=7 FAULTS=200`."""

from __future__ import annotations

import argparse
import functools
import random
import signal
import sys

from tests.chaos.plan import EACH_POINT, plan
from tests.chaos.run import LANES, Run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=None, help="the same seed gives the same plan of faults")
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument("--lanes", type=int, default=LANES, help="how many jobs run at the same time")
    parser.add_argument("--plan", action="store_true", help="only say what would be done")
    args = parser.parse_args()
    seed = random.SystemRandom().randrange(10**6) if args.seed is None else args.seed
    if args.plan:
        for number, life in enumerate(plan(seed, args.faults), 1):
            print(f"job {number} ({life.kind}), tolerable {life.tolerable}, retained {life.retained}:")
            for fault in life.faults:
                print(f"  {fault}")
        return 0
    for number in (signal.SIGINT, signal.SIGTERM):  # whoever ends the run, its jobs and servers end with it
        signal.signal(number, signal.default_int_handler)
    print(f"chaos: {args.faults} faults, seed {seed}", flush=True)
    result = Run(seed, args.faults, functools.partial(print, flush=True), args.lanes).run()
    print("\nfaults survived and rollbacks, by kind; of crash points also how often somebody got there:")
    for kind in sorted(result.by_kind.keys() | result.points.keys()):
        counts = result.by_kind[kind], result.rollbacks_by_kind[kind], result.points[kind] or ""
        print("  {:28} {:3} {:3} {:>3}".format(kind, *counts))
    for point in result.rare_points():
        print(f"crash point {point} was reached {result.points[point]} times, fewer than {EACH_POINT}")
    print(f"{result.rollbacks} rollbacks and recoveries, {result.seconds:.0f} s in all")
    print(result.line())
    return 0 if result.good() else 1


if __name__ == "__main__":
    sys.exit(main())
