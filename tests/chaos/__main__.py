"""Random faults against an oracle: `python -m tests.chaos --seed 7 --faults 200`, or `make chaos SEED=7 FAULTS=200`."""

from __future__ import annotations

import argparse
import functools
import random
import sys

from tests.chaos.plan import plan
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
    print(f"chaos: {args.faults} faults, seed {seed}", flush=True)
    result = Run(seed, args.faults, functools.partial(print, flush=True), args.lanes).run()
    print("\nfaults survived, by kind; of crash points also how often somebody got there to die, stop, wait or fail:")
    for kind in sorted(result.by_kind.keys() | result.points.keys()):
        print(f"  {kind:28} {result.by_kind[kind]:3} {result.points[kind] or '':>3}")
    print(f"{result.rollbacks} rollbacks and recoveries, {result.seconds:.0f} s in all")
    print(result.line())
    return 0 if result.good() else 1


if __name__ == "__main__":
    sys.exit(main())
