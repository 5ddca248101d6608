"""What every part of the benchmark is: sizes, repetitions and answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

from bench.data import Events
from bench.figures import Figure


@dataclass(frozen=True)
class Size:
    """How much is measured, and how often."""

    events: Events
    repetitions: int = 5
    slow_repetitions: int = 3  # of what takes a minute each
    warm_up: int = 50_000  # records of transformWithState's first batch, which is not counted
    per_record: int = 250_000
    per_key: int = 1_000_000
    states: int = 10_000_000  # records of each workload and of windows: a run takes some 15 s, so its ends weigh little
    small: int = 1_000  # records of a small epoch
    epochs: int = 220
    first_epochs: int = 20  # not counted
    batches: int = 70
    first_batches: int = 10
    latency_s: int = 24
    latency_rate: int = 5_000
    soak: int = 50_000_000
    state_keys: int = 1_000_000
    changed_keys: int = 20_000  # in a second
    changes: int = 8_000_000  # records at full rate
    changes_s: int = 30  # of records at half of that rate
    kafka_repetitions: int = 2
    kafka_records: tuple[tuple[int, int], ...] = ((100, 800_000), (1000, 300_000))  # how large, how many
    kafka_quix: int = 200_000  # how many for Quix Streams
    large_keys: int = 10_000_000  # more than a slot's cache has room for
    large_changes: int = 400_000
    savepoint_keys: tuple[int, int] = (1_000_000, 10_000_000)
    savepoint_rate: int = 50_000  # keys that change in a second
    savepoint_s: int = 6  # of that before the savepoint


FULL = Size(Events(4_000_000, 100_000, 16))
QUICK = Size(
    Events(1_000_000, 100_000, 16),
    repetitions=1,
    slow_repetitions=1,
    warm_up=5_000,
    per_record=20_000,
    per_key=100_000,
    states=400_000,
    epochs=40,
    first_epochs=10,
    batches=20,
    first_batches=5,
    latency_s=8,
    soak=5_000_000,
    state_keys=100_000,
    changed_keys=2_000,
    changes=400_000,
    changes_s=8,
    kafka_repetitions=1,
    kafka_records=((100, 60_000), (1000, 40_000)),
    kafka_quix=20_000,
    large_keys=500_000,
    large_changes=50_000,
    savepoint_keys=(20_000, 200_000),
    savepoint_rate=10_000,
    savepoint_s=3,
)


class Part(ABC):
    """Something measured. `repeat` is called once per repetition, in turn with the other parts'."""

    name: str

    def __init__(self, size: Size) -> None:
        self.size = size
        self.answers: dict[str, list[dict[str, Any]]] = {}

    def prepare(self) -> None:  # noqa: B027  an optional hook
        """Before the first repetition: make data, check what needs no repetition."""

    def close(self) -> None:  # noqa: B027  an optional hook
        """After the last repetition, or the first failure."""

    @abstractmethod
    def repeat(self, repetition: int) -> None: ...

    @abstractmethod
    def figures(self) -> Iterator[Figure]: ...

    @abstractmethod
    def notes(self) -> Iterator[str]: ...

    def keep(self, name: str, answer: dict[str, Any]) -> dict[str, Any]:
        self.answers.setdefault(name, []).append(answer)
        return answer

    def samples(self, name: str, field: str) -> tuple[float, ...]:
        return tuple(answer[field] for answer in self.answers[name])

    def fewer(self) -> str:
        return f"repeated {self.size.slow_repetitions} of {self.size.repetitions} times, because a run takes a minute"

    def median(self, label: str, name: str, field: str, unit: str, scale: float = 1) -> Figure:
        samples = tuple(sample * scale for sample in self.samples(name, field))
        return Figure(label, median(samples), unit, samples=samples)
