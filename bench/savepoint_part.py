"""The part `savepoints`: how long they and restores from them take, and how that grows with the state."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from bench.figures import Figure
from bench.part import Part
from bench.programs import run
from bench.watch import PARALLELISM

TIMES = {
    "savepoint": "savepoint_s",
    "restore": f"restore_{PARALLELISM}_s",
    f"restore, {PARALLELISM} slots to {PARALLELISM + 1}": f"restore_{PARALLELISM + 1}_s",
}
SLACK = 1.5  # of what growing with the number of keys would be


class Savepoints(Part):
    """Savepoints of a job that goes on, and new jobs that start from them."""

    name = "savepoints"

    def repeat(self, repetition: int) -> None:
        few, many = self.size.savepoint_keys
        if repetition < self.size.slow_repetitions:
            self._run(few, "hashmap")
        if repetition == 0:
            self._run(many, "hashmap")
            self._run(few, "rocksdb")

    def _run(self, keys: int, backend: str) -> None:
        size = self.size
        answer = run("bench.savepoints", keys, backend, size.savepoint_rate, size.savepoint_s)
        slowed = answer["epoch_p99"] / answer["epoch_p99_before"]
        self.keep(_name(keys, backend), {**answer, "slowed": slowed, "per_key": answer["size"] / keys})

    def figures(self) -> Iterator[Figure]:
        few, many = self.size.savepoint_keys
        for keys, backend in ((few, "hashmap"), (many, "hashmap"), (few, "rocksdb")):
            yield from self._state(keys, _name(keys, backend))
        for label, field in TIMES.items():
            grown = self._median(many, field) / self._median(few, field)
            yield Figure(f"savepoints: {label}, {many:,} / {few:,} keys", grown, "", many / few * SLACK, False)

    def _state(self, keys: int, name: str) -> Iterator[Figure]:
        for label, field in TIMES.items():
            yield self.median(f"{name}: {label}", name, field, "s")
            rates = tuple(keys / seconds for seconds in self.samples(name, field))
            yield Figure(f"{name}: {label}, rate", median(rates), "keys/s", samples=rates)
        yield self.median(f"{name}: size of the savepoint", name, "size", "MB", 1e-6)
        yield self.median(f"{name}: bytes per key", name, "per_key", "")
        yield self.median(f"{name}: epoch p99 before the savepoint", name, "epoch_p99_before", "ms", 1000)
        yield self.median(f"{name}: epoch p99 meanwhile", name, "epoch_p99", "ms", 1000)
        yield self.median(f"{name}: epoch p99 meanwhile / before", name, "slowed", "")
        yield self.median(f"{name}: memory per slot, highest", name, "rss", "MB", 1e-6)
        yield self.median(f"{name}: the same after the restore", name, f"restore_{PARALLELISM}_rss", "MB", 1e-6)

    def _median(self, keys: int, field: str) -> float:
        return median(self.samples(_name(keys, "hashmap"), field))

    def notes(self) -> Iterator[str]:
        size = self.size
        yield (
            f"Savepoints: a count for each key in {PARALLELISM} slots, of which {size.savepoint_rate:,} change in a second; a "
            f"checkpoint every second. The savepoint's time is from asking for it to having its path, with the checkpoint that "
            f"it is made of; epochs before it are those of {size.savepoint_s} s. A restore is the deployment of a new job's "
            "slots with their state, their start included and Spark's not. Every key's count is compared after each restore. "
            f"Repetitions of the smaller state in memory: {size.slow_repetitions}; everything else is measured once."
        )


def _name(keys: int, backend: str) -> str:
    return f"savepoints: {keys:,} keys, {backend}"
