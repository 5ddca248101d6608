"""What checkpoints cost: `python -m bench.checkpoints full|paced|restore KEYS CHANGED RECORDS RATE CHECKPOINTS`

State of KEYS keys is made first, at full speed. Then come RECORDS records, as fast as they are taken (`full`) or RATE of them
a second (`paced`), of which the keys change slowly: CHANGED different ones among every RATE records. CHECKPOINTS is `on`, one
every second, or `off`. `restore` runs `full` and starts the job again from its last checkpoint.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bench.figures import percentile
from bench.paced import Numbers
from bench.watch import Watch, environment
from firesteel.common import Types
from firesteel.connectors.base import (
    Assignment,
    EnumeratorContext,
    Json,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
)
from firesteel.coordinator.engine import EpochResult
from firesteel.coordinator.metadata import CheckpointMetadata
from firesteel.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment, ValueStateDescriptor
from firesteel.state.files import StateFile

NAME = "checkpoints"


@dataclass(frozen=True)
class SlowlyChanging(Source):
    """The numbers of all keys once, and then those that change, at a rate or as fast as they are taken."""

    keys: int
    changed: int
    records: int
    rate: int
    paced: bool

    def create_enumerator(self, context: EnumeratorContext) -> SplitEnumerator:
        return _Enumerator(self, context.parallelism)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return _Reader(self)


class _Enumerator(Numbers):
    def __init__(self, source: SlowlyChanging, parallelism: int) -> None:
        super().__init__(source.keys + source.records, parallelism)
        self._source = source
        self._origin: float | None = None

    def plan(self, budget: int) -> Assignment:
        position, keys = self.snapshot(), self._source.keys
        if position < keys:
            return self._take(min(budget, keys - position))
        if not self._source.paced:
            return self._take(budget)
        self._origin = self._origin or time.monotonic()
        due = keys + int((time.monotonic() - self._origin) * self._source.rate)
        return self._take(min(budget, due - position))


class _Reader(SourceReader):
    def __init__(self, source: SlowlyChanging) -> None:
        self._source = source

    def read(self, planned: Json) -> Iterator[list[Any]]:
        keys, changed, rate = self._source.keys, self._source.changed, self._source.rate
        start, stop = planned["start"], planned["stop"]
        if start < keys:
            yield list(range(start, stop))
        else:
            after = range(start - keys, stop - keys)
            yield [(n // rate * changed + n % changed) % keys for n in after]


class Count(KeyedProcessFunction):
    """One read and one write of state for every record."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: int, ctx: Any) -> None:
        self.count.update((self.count.value() or 0) + 1)


class CheckpointWatch(Watch):
    """Also notes barriers and what new state files hold."""

    def __init__(self, env: StreamExecutionEnvironment, keys: int, directory: str) -> None:
        self._keys, self._directory = keys, os.path.join(directory, NAME)
        self._seen: set[str] = set()
        self.barriers: list[float] = []
        self.delta_bytes = self.delta_entries = 0
        super().__init__(env, NAME)

    def epoch(self, number: int, seconds: float, result: EpochResult, base: int | None, part: float | None) -> None:
        super().epoch(number, seconds, result, base, part)
        if self.reads[-1] > self._keys:
            self.barriers += [report["barrier_ms"] for report in result.reports if report["checkpoint"] is not None]

    def checkpoint(self, metadata: CheckpointMetadata) -> None:
        super().checkpoint(metadata)
        new = {h["file"]: h for chain in metadata.state for h in chain if h["file"] not in self._seen}
        self._seen.update(new)
        if self.reads and self.reads[-1] > self._keys:
            for name, handle in new.items():
                if "-chk-" in name:  # and no compaction
                    self.delta_bytes += handle["size"]
                    self.delta_entries += _entries(os.path.join(self._directory, name))

    def steady(self) -> list[int]:
        """Epochs after the state was made."""
        return [i for i, read in enumerate(self.reads) if i and self.reads[i - 1] >= self._keys]


def _entries(path: str) -> int:
    try:
        with StateFile(path) as file:
            return sum(block[4] for state in file.footer["states"] for block in state["blocks"])
    except OSError:
        return 0


def run(kind: str, source: SlowlyChanging, checkpoints: bool) -> dict[str, object]:
    directory = tempfile.mkdtemp()
    watch = _run(source, checkpoints, directory)
    if watch.counts["count"][0] != source.keys + source.records:
        sys.exit(f"{watch.counts['count'][0]} of {source.keys + source.records} records")
    steady = watch.steady()
    first = watch.ends[steady[0] - 1]
    seconds = [watch.seconds[i] for i in steady]
    answer: dict[str, object] = {
        "per_s": source.records / (watch.ends[-1] - first),
        "late_s": watch.ends[-1] - first - source.records / source.rate,
        "epoch_p50": percentile(seconds, 50),
        "epoch_p99": percentile(seconds, 99),
        "checkpoints": watch.checkpoints,
    }
    if watch.delta_entries:
        answer["bytes_per_key"] = watch.delta_bytes / watch.delta_entries
        answer["barrier_p50"], answer["barrier_p99"] = (percentile(watch.barriers, part) for part in (50, 99))
    if kind == "restore":
        answer["restore_s"] = _run(source, checkpoints, directory).restore_s
    return answer


def _run(source: SlowlyChanging, checkpoints: bool, directory: str) -> CheckpointWatch:
    env = environment(progress=True, checkpoints=checkpoints, directory=directory)
    numbers = env.from_source(source, None, "numbers").uid("numbers")
    numbers.key_by(lambda key: key).process(Count()).uid("count").add_sink(lambda value: None)
    return CheckpointWatch(env, source.keys, directory)


def main() -> None:
    kind, keys, changed, records, rate = sys.argv[1], *map(int, sys.argv[2:6])
    source = SlowlyChanging(keys, changed, records, rate, paced=kind == "paced")
    print(json.dumps(run(kind, source, sys.argv[6] == "on")))


if __name__ == "__main__":
    main()
