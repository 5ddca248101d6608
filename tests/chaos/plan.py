"""Which faults happen to which jobs, in which order: worked out from a seed before the first job starts.

A run of at least 200 faults has every crash point at least 5 times, and fails if not all of them were reached as often. A
smaller one takes a random part of that.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

EVERY = ("file", "transactions", "both", "ahead")
FILES, STORE, AHEAD = ("file", "both"), ("transactions", "both"), ("ahead",)

DRIVER_POINTS = {
    "before-epoch": EVERY,
    "after-plan": EVERY,
    "after-epoch": EVERY,
    "before-metadata": EVERY,
    "before-rename": EVERY,
    "after-rename": EVERY,
    "after-one-commit": EVERY,
    "before-confirm": EVERY,
    "durable-before-replace": EVERY,  # of the mark that says so
    "after-confirm": EVERY,
    "half-dropped": EVERY,
    "between-drops": EVERY,
    "after-drop": EVERY,
    "after-one-rename": FILES,
    "txn-after-one-commit": STORE,
    "wal-after-send": AHEAD,
    "wal-after-one-subtask": AHEAD,
}
"""Points where a driver dies while the job runs, and the kinds of jobs that have them."""

RECOVERY_POINTS = {"after-claim": EVERY, "after-fence": EVERY, "after-lineage": EVERY, "recovery-after-sweep": EVERY}
"""Points where a driver dies while it recovers from something else."""

UNCONFIRMED_POINTS = {"recovery-before-confirm": EVERY}
"""Reached only if a driver died between the commit point and the confirmation."""

SLOT_POINTS = {
    "source-reading": EVERY,
    "mid-record": EVERY,
    "slot-mid-epoch": EVERY,
    "slot-after-prepare-commit": EVERY,
    "slot-before-state-file": EVERY,
    "slot-after-state-file": EVERY,
    "txn-after-begin": STORE,
    "txn-after-journal": STORE,
}

OTHERS = {
    "slot-restore": 5,  # a slot dies while it restores; killed once to get there
    "second-restore": 3,  # and again in the restore after that
    "durable-file-empty": 5,  # killed with an empty file
    "torn-file": 4,  # and with a part of it, of many lengths
    "full-disk": 3,
    "late-checkpoint": 3,
    "kill-slot": 3,
    "kill-worker": 3,
    "kill-daemon": 3,
    "kill-jvm": 3,
    "kill-driver": 3,
    "stopped-driver": 3,  # a successor takes over, and then it wakes
    "stopped-slot": 3,  # its driver dies, a successor takes over, and then it wakes
    "flipped-bit": 3,
    "clock-jump": 3,
}
"""All the other faults, and how many of 200 they are."""

POINTS = {**DRIVER_POINTS, **RECOVERY_POINTS, **UNCONFIRMED_POINTS, **SLOT_POINTS}
LONGEST_LIFE = 14
LONG_RUN, EACH_POINT = 200, 5
"""A run of at least so many faults has every crash point at least so many times."""


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong."""

    kind: str  # the crash point's name, or one of OTHERS
    count: int = 1  # the how-manieth time somebody gets to the point
    amount: int = 0  # percent of a torn file, seconds of a jump, ... : a random number below 100
    first: str = ""  # the point where the driver dies before, for UNCONFIRMED_POINTS


@dataclass
class PlannedLife:
    """One job and all that happens to it."""

    kind: str
    tolerable: int | None  # failed checkpoints that do not fail the job
    retained: int
    faults: list[Fault] = field(default_factory=list)


def plan(seed: int, faults: int) -> list[PlannedLife]:
    """The lives of a run with so many faults. Equal arguments give equal plans."""
    chance = random.Random(seed)
    lives = [PlannedLife(kind, chance.choice([None, 0]), chance.choice([1, 1, 3])) for kind in _lives(chance, faults)]
    room = -(-faults // len(lives)) + 3
    for kind in _faults(chance, faults, {life.kind for life in lives}):
        fault = Fault(kind, chance.choice([1, 1, 2, 3]), chance.randrange(100), _before(chance, kind))
        fitting = [life for life in lives if life.kind in POINTS.get(kind, EVERY)]
        chance.choice([life for life in fitting if len(life.faults) < room] or fitting).faults.append(fault)
    return [life for life in lives if life.faults]


def _lives(chance: random.Random, faults: int) -> list[str]:
    if faults <= LONGEST_LIFE:
        return ["both", chance.choice(["file", "transactions", "ahead"])]
    cycle = ["file", "transactions", "both", "ahead", "both", "file", "transactions"]
    return [cycle[i % len(cycle)] for i in range(max(4, -(-faults // LONGEST_LIFE)))]


def _faults(chance: random.Random, faults: int, lives: set[str]) -> list[str]:
    shares = {**dict.fromkeys(POINTS, EACH_POINT), **OTHERS}
    shares = {kind: share for kind, share in shares.items() if lives.intersection(POINTS.get(kind, EVERY))}
    if faults < sum(shares.values()) // 3:
        shares = dict.fromkeys(shares, 1)
    found: list[str] = []
    while len(found) < faults:
        batch = [kind for kind, share in shares.items() for _ in range(share)]
        chance.shuffle(batch)
        found += batch
    return found[:faults]


def _before(chance: random.Random, kind: str) -> str:
    return chance.choice(["after-rename", "after-one-commit", "before-confirm"]) if kind in UNCONFIRMED_POINTS else ""
