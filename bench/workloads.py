"""The workloads of the `states` part: data, and the functions that Firesteel and the bare loop both run.

**Results that can be compared.** A data set is two files, and a key is in one of them only. A file is read from its start to
its end by one subtask, so every key's records come in one order, whoever reads them, and there is one right output. Two
things are left to timing, and no output may depend on them: how records of two connected streams are interleaved (so both
methods of `CountBoth` count in the same way) and when a watermark comes (so a timer tells only that it fired, and no record
is ever late).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

from bench.data import ROOT, appearing
from firesteel.common import TimestampAssigner, Types
from firesteel.datastream import (
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ListStateDescriptor,
    MapStateDescriptor,
    RuntimeContext,
    ValueStateDescriptor,
)

HALVES = 2  # files of a data set, and processes that read them
ENTRIES = 1000  # numbers are below this one
OUT_OF_ORDER_MS = 1000
_ROW_GROUP = 250_000

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Numbers:
    """One data set: `records` rows (id, number, ts) of `keys` keys, half of the keys in each file."""

    records: int
    keys: int
    seed: int

    @property
    def directory(self) -> Path:
        return ROOT / f"numbers-{self.records}-{self.keys}-{self.seed}"

    def names(self) -> list[Path]:
        return sorted(self.directory.glob("*.parquet"))

    def make(self) -> Numbers:
        if not self.directory.exists():
            with appearing(self.directory) as directory:
                rng = np.random.default_rng(self.seed)
                ids = np.array([f"sensor_{i}" for i in range(self.keys)])
                count = self.records // HALVES
                for half in range(HALVES):
                    table = pa.table(
                        {
                            "id": pa.array(ids[half::HALVES][rng.integers(0, self.keys // HALVES, count)]),
                            "number": pa.array(rng.integers(0, ENTRIES, count)),
                            "ts": pa.array(np.arange(count) + rng.integers(0, OUT_OF_ORDER_MS, count)),
                        }
                    )
                    pq.write_table(table, directory / f"half-{half}.parquet", row_group_size=_ROW_GROUP)
        return self


class CountEntries(KeyedProcessFunction):
    """How often each number was seen with the key."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.counts = runtime_context.get_map_state(MapStateDescriptor("counts", Types.LONG(), Types.LONG()))

    def process_element(self, value: Row, ctx: Any) -> Iterator[Row]:
        number = value[1]
        count = (self.counts.get(number) or 0) + 1
        self.counts.put(number, count)
        if (count + number) % 16 == 0:
            yield value[0], number, count


class Collect(KeyedProcessFunction):
    """The key's numbers since a number of full hundreds, which is one in a hundred."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.numbers = runtime_context.get_list_state(ListStateDescriptor("numbers", Types.LONG()))

    def process_element(self, value: Row, ctx: Any) -> Iterator[Row]:
        number = value[1]
        self.numbers.add(number)
        if number % 100 == 0:
            numbers = list(self.numbers.get())
            self.numbers.clear()
            yield value[0], len(numbers), sum(numbers)


class Remind(KeyedProcessFunction):
    """A timer for every record, at the end of the second after it."""

    def process_element(self, value: Row, ctx: KeyedProcessFunction.Context) -> None:
        ctx.timer_service().register_event_time_timer((ctx.timestamp() // 1000 + 2) * 1000)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Row]:
        yield ctx.get_current_key(), timestamp


class CountBoth(KeyedCoProcessFunction):
    """How many records the key has in both streams."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.LONG()))

    def process_element1(self, value: Row, ctx: Any) -> Iterator[Row]:
        seen = (self.seen.value() or 0) + 1
        self.seen.update(seen)
        if seen % 8 == 0:
            yield value[0], seen

    def process_element2(self, value: Row, ctx: Any) -> Iterator[Row]:
        seen = (self.seen.value() or 0) + 1
        self.seen.update(seen)
        if seen % 8 == 0:
            yield value[0], seen


class Ts(TimestampAssigner):
    def extract_timestamp(self, value: Row, record_timestamp: int) -> int:
        return int(value[2])


def key_of(row: Row) -> Any:
    return row[0]


@dataclass(frozen=True)
class Workload:
    """`function` is None for the rolling sum, which is the library's own.

    :ivar keep: which results are written. Where nearly every record has one, a sink would be what is measured.
    """

    keys: int
    columns: tuple[str, ...]
    function: Callable[[], Any] | None
    streams: int = 1
    keep: Callable[[Row], bool] | None = None

    def data(self, records: int) -> list[Numbers]:
        return [Numbers(records // self.streams, self.keys, 7 + stream) for stream in range(self.streams)]


WORKLOADS = {
    "map_state": Workload(100, ("id", "number"), CountEntries),
    "list_state": Workload(10_000, ("id", "number"), Collect),
    "rolling_sum": Workload(100_000, ("id", "number"), None, keep=lambda row: row[1] % 32 == 0),
    "timers": Workload(10_000, ("id", "number", "ts"), Remind, keep=lambda row: row[1] % 32_000 == 0),
    "connect": Workload(100_000, ("id", "number"), CountBoth, streams=2),
}


def digest(lines: Iterable[str]) -> dict[str, int]:
    """Count and checksum of results as text, whatever their order."""
    count = checksum = 0
    for line in lines:
        count += 1
        checksum += xxhash.xxh64_intdigest(line.encode())
    return {"count": count, "checksum": checksum % 2**64}
