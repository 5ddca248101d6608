"""Sums of 10 s windows as a Firesteel job: `python -m bench.windows HOW RECORDS KEYS`, where HOW is `plain` or `combined`
(before the shuffle), or one of these with `-reduce`: by a function of the user's instead of by `sum()`.

`process` is the same stream through a keyed function that keeps one value, as the figure to compare with.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.data import ROOT, appearing
from bench.states import written
from bench.watch import Watch, environment
from bench.workloads import OUT_OF_ORDER_MS, Row, Ts, digest, key_of
from firesteel.common import Duration, Encoder, Time, Types, WatermarkStrategy
from firesteel.datastream import KeyedProcessFunction, RuntimeContext, ValueStateDescriptor
from firesteel.datastream.connectors.file_system import FileSink, FileSource, ParquetColumnarRowInputFormat
from firesteel.datastream.window import TumblingEventTimeWindows

WINDOW_MS = 10_000
PER_KEY = 20  # records of a key in a window, on average
SLICES = 4  # files of each half as Spark reads them, a pair for each micro-batch


@dataclass(frozen=True)
class Readings:
    """Rows (id, number, ts) in two files that cover the same time; what is sorted by time are their rows."""

    records: int
    keys: int

    @property
    def directory(self) -> Path:
        return ROOT / f"windows-{self.records}-{self.keys}"

    def make(self) -> Readings:
        if not self.directory.exists():
            with appearing(self.directory) as directory:
                for name in ("whole", "sliced"):
                    (directory / name).mkdir()
                for half in range(2):
                    self._write(directory, half)
                closing = pa.table({"id": ["closing"], "number": [0], "ts": [10**12]})
                pq.write_table(closing, directory / "sliced" / "closing.parquet")
                os.utime(directory / "sliced" / "closing.parquet", (1_000_000_100, 1_000_000_100))
        return self

    def _write(self, directory: Path, half: int) -> None:
        rng, count = np.random.default_rng(7 + half), self.records // 2
        ids = np.array([f"sensor_{i}" for i in range(self.keys)])
        span = max(1, self.records * WINDOW_MS // (self.keys * PER_KEY))
        table = pa.table(
            {
                "id": pa.array(ids[rng.integers(0, self.keys, count)]),
                "number": pa.array(rng.integers(0, 1000, count)),
                "ts": pa.array(np.arange(count) * span // count + rng.integers(0, OUT_OF_ORDER_MS, count)),
            }
        )
        pq.write_table(table, directory / "whole" / f"half-{half}.parquet", row_group_size=250_000)
        for part in range(SLICES):
            path = directory / "sliced" / f"{part}-{half}.parquet"
            pq.write_table(table.slice(part * count // SLICES, -(-count // SLICES)), path)
            os.utime(path, (1_000_000_000 + part, 1_000_000_000 + part))  # Spark reads older files first

    def expected(self) -> dict[str, int]:
        """Count and checksum of the sums, by Arrow's own aggregation."""
        path = self.directory / "expected.json"
        if not path.exists():
            table = pa.concat_tables(pq.read_table(name) for name in (self.directory / "whole").glob("*.parquet"))
            window = pa.array(table.column("ts").to_numpy() // WINDOW_MS * WINDOW_MS)
            sums = table.append_column("window", window).group_by(["id", "window"]).aggregate([("number", "sum")])
            columns = (sums.column(name).to_pylist() for name in ("id", "window", "number_sum"))
            path.write_text(json.dumps(digest(map(line, *columns))))
        found: dict[str, int] = json.loads(path.read_text())
        return found


def line(key: str, window: int, total: int) -> str:
    """A result as text."""
    return str((key, window, total))


class Last(KeyedProcessFunction):
    """Compares a number with the last one of its key."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.LONG()))

    def process_element(self, value: Row, ctx: Any) -> Iterator[Row]:
        old, number = self.last.value(), value[1]
        if old is not None and abs(number - old) > 900:
            yield value[0], number, old
        self.last.update(number)


def added(first: Row, second: Row) -> Row:
    return first[0], first[1] + second[1], first[2]


def run(how: str, readings: Readings) -> dict[str, Any]:
    env, out = environment(), tempfile.mkdtemp()
    columns = ParquetColumnarRowInputFormat(columns=["id", "number", "ts"])
    source = FileSource.for_bulk_file_format(columns, str(readings.directory / "whole")).build()
    bounded = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(OUT_OF_ORDER_MS))
    keyed = env.from_source(source, bounded.with_timestamp_assigner(Ts()), "readings").uid("readings").key_by(key_of)
    if how == "process":
        results = keyed.process(Last()).uid("function")
    else:
        windowed = keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(WINDOW_MS)))
        windowed = windowed.pre_combine(how.startswith("combined"))
        totals = windowed.reduce(added) if how.endswith("reduce") else windowed.sum(1)
        results = totals.uid("function").map(lambda total: (total[0], total[2] // WINDOW_MS * WINDOW_MS, total[1]))
    results.sink_to(FileSink.for_row_format(out, Encoder.simple_string_encoder()).build()).uid("files")
    watch = Watch(env, f"windows {how}")
    if watch.counts["function"][0] != readings.records:
        sys.exit(f"{watch.counts['function'][0]} of {readings.records} records came to the function")
    if how != "process" and written(out) != readings.expected():
        sys.exit(f"wrong output: {written(out)} instead of {readings.expected()}")
    return {"per_s": watch.warm_rate()}


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1], Readings(*map(int, sys.argv[2:4])).make())))
