"""Which faults happen to which jobs, in which order: worked out from a seed before the first job starts.

A run of at least 200 faults has every crash point at least 5 times, and fails if not all of them were reached as often. A
smaller one takes a random part of that. A good part of the faults are two in a row: the second crash comes before the job
has made a checkpoint after the first.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field

ALONE = ("file", "transactions", "both", "ahead", "rocksdb")
KAFKA = ("kafka", "kafka-both", "kafka-both-prepared")
TOKEN, PREPARED = (
    ("postgres", "mariadb", "kafka-both"),
    ("postgres-prepared", "mariadb-prepared", "kafka-both-prepared"),
)
DATABASE = (*TOKEN, *PREPARED)
SERVED = ("kafka", *DATABASE)
EVERY = (*ALONE, *SERVED)
FILES, STORE, AHEAD = ("file", "both", "rocksdb"), ("transactions", "both", "rocksdb"), ("ahead",)
ROCKSDB = ("rocksdb",)

LIVES = [*ALONE, *SERVED, "both", "kafka", "kafka-both"]
"""Kinds of the jobs of a long run."""

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
    "kafka-before-first-commit": KAFKA,
    "kafka-after-commits": KAFKA,
    "jdbc-token-locked": TOKEN,
    "jdbc-rows-written": TOKEN,
    "jdbc-before-commit": DATABASE,
    "jdbc-after-commit": DATABASE,
}
"""Points where a driver dies while the job runs, and the kinds of jobs that have them."""

RECOVERY_POINTS = {"after-claim": EVERY, "after-fence": EVERY, "after-lineage": EVERY, "recovery-after-sweep": EVERY}
"""Points where a driver dies while it recovers from something else."""

UNCONFIRMED_POINTS = {"recovery-before-confirm": EVERY}
"""Reached only if a driver died between the commit point and the confirmation."""

COMMITTING = {
    "after-rename",
    "after-one-commit",
    "before-confirm",
    *("after-one-rename", "txn-after-one-commit", "wal-after-send", "wal-after-one-subtask"),
    *("kafka-before-first-commit", "kafka-after-commits"),
    *("jdbc-token-locked", "jdbc-rows-written", "jdbc-before-commit", "jdbc-after-commit"),
}
"""Points between the two."""

SLOT_POINTS = {
    "source-reading": EVERY,
    "mid-record": EVERY,
    "slot-mid-epoch": EVERY,
    "slot-after-prepare-commit": EVERY,
    "slot-before-state-file": EVERY,
    "slot-after-state-file": EVERY,
    "rocksdb-written": ROCKSDB,
    "slot-mid-upload": ROCKSDB,
    "txn-after-begin": STORE,
    "txn-after-journal": STORE,
    "kafka-mid-transaction": KAFKA,
    "kafka-after-flush": KAFKA,
    "jdbc-before-prepare": PREPARED,
    "jdbc-after-prepare": PREPARED,
}

OUTAGES = {"broker-kill": SERVED, "broker-restart": SERVED, "database-kill": DATABASE}
"""A server that all jobs share goes away and comes back. A job may sit that out without a rollback."""

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
    "broker-kill": 5,
    "broker-restart": 4,
    "database-kill": 5,
}
"""All the other faults, and how many of 200 they are."""

POINTS = {**DRIVER_POINTS, **RECOVERY_POINTS, **UNCONFIRMED_POINTS, **SLOT_POINTS}
WHERE = {**POINTS, **OUTAGES}
LONGEST_LIFE = 14
LONG_RUN, EACH_POINT = 200, 5
"""A run of at least so many faults has every crash point at least so many times."""


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong."""

    kind: str  # the crash point's name, or one of OTHERS
    count: int = 1  # the how-manieth time somebody gets to the point
    amount: int = 0  # percent of a torn file, seconds of a jump, ... : a random number below 100
    first: str = ""  # the point where somebody dies before


@dataclass
class PlannedLife:
    """One job and all that happens to it."""

    kind: str
    tolerable: int | None  # failed checkpoints that do not fail the job
    retained: int
    backends: tuple[str, ...]  # of the first start, the second, ..., and over again
    faults: list[Fault] = field(default_factory=list)


def plan(seed: int, faults: int) -> list[PlannedLife]:
    """The lives of a run with so many faults. Equal arguments give equal plans."""
    chance = random.Random(seed)
    lives = [_life(chance, kind) for kind in _lives(chance, faults)]
    kinds = _kinds(chance, faults, {life.kind for life in lives})
    room = -(-len(kinds) // len(lives)) + 3
    given: list[list[str]] = [[] for _ in lives]
    for kind in kinds:
        fitting = [mine for mine, life in zip(given, lives, strict=True) if life.kind in WHERE.get(kind, EVERY)]
        chance.choice([mine for mine in fitting if len(mine) < room] or fitting).append(kind)
    firsts = _pair(chance, given, len(kinds) - faults)
    for life, mine, first in zip(lives, given, firsts, strict=True):
        life.faults = [
            Fault(kind, chance.choice([1, 1, 2, 3]), chance.randrange(100), before or _before(chance, kind))
            for kind, before in zip(mine, first, strict=True)
        ]
    return [life for life in lives if life.faults]


def _life(chance: random.Random, kind: str) -> PlannedLife:
    backends = ["rocksdb"] if kind in ROCKSDB else chance.sample(["hashmap"] * 2 + ["rocksdb"] * 3, 5)
    return PlannedLife(kind, chance.choice([None, 0]), chance.choice([1, 1, 3]), tuple(backends))


def _lives(chance: random.Random, faults: int) -> list[str]:
    if faults <= LONGEST_LIFE:
        return [chance.choice(ALONE), chance.choice(SERVED)]
    cycle = chance.sample(LIVES, len(LIVES))
    return [cycle[i % len(cycle)] for i in range(max(4, -(-faults // LONGEST_LIFE)))]


def _kinds(chance: random.Random, faults: int, lives: set[str]) -> list[str]:
    """What happens, one by one: more than there are faults, if these are many, so that some happen in pairs."""
    shares = {**dict.fromkeys(POINTS, EACH_POINT), **OTHERS}
    shares = {kind: share for kind, share in shares.items() if lives.intersection(WHERE.get(kind, EVERY))}
    wanted = faults
    if faults < sum(shares.values()) // 3:
        shares = dict.fromkeys(shares, 1)
    elif faults >= LONG_RUN:
        wanted = max(sum(shares.values()), faults + faults // 4)
    found: list[str] = []
    while len(found) < wanted:
        batch = [kind for kind, share in shares.items() for _ in range(share)]
        chance.shuffle(batch)
        found += batch
    return found[:wanted]


def _pair(chance: random.Random, given: list[list[str]], pairs: int) -> list[list[str]]:
    """Take so many crashes out of the lists, and say for each that stays which of them comes before it, if any does."""
    firsts = [[""] * len(mine) for mine in given]
    while pairs:
        mine, before = chance.choice(list(zip(given, firsts, strict=True)))
        second = chance.randrange(len(mine))
        fitting = [place for place in _before_which(mine[second], mine) if not before[place] and place != second]
        if fitting and not before[second]:
            first = chance.choice(fitting)
            before[second] = mine[first]
            del mine[first], before[first]
            pairs -= 1
    return firsts


def _before_which(kind: str, others: list[str]) -> Iterable[int]:
    """After which of the others this one can come."""
    if kind in UNCONFIRMED_POINTS:
        allowed: Iterable[str] = COMMITTING
    elif kind in RECOVERY_POINTS or kind == "slot-restore":
        allowed = DRIVER_POINTS
    elif kind in POINTS:
        allowed = {*DRIVER_POINTS, *SLOT_POINTS}
    else:
        allowed = ()
    return [place for place, other in enumerate(others) if other in allowed]


def _before(chance: random.Random, kind: str) -> str:
    return chance.choice(["after-rename", "after-one-commit", "before-confirm"]) if kind in UNCONFIRMED_POINTS else ""
