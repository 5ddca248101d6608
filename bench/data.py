"""The workload's readings, made once under build/bench-data, and what a plain loop makes of them."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import xxhash

ROOT = Path(__file__).parent.parent / "build" / "bench-data"

Row = tuple[str, float, float]


@dataclass(frozen=True)
class Events:
    """One data set: `records` readings of `keys` sensors in `files` files, always the same ones."""

    records: int
    keys: int
    files: int

    @property
    def directory(self) -> Path:
        return ROOT / f"{self.records}-{self.keys}-{self.files}"

    def names(self) -> list[Path]:
        return sorted(self.directory.glob("*.parquet"))

    def make(self) -> Events:
        if not self.directory.exists():
            with appearing(self.directory) as directory:
                rng = np.random.default_rng(7)
                ids = np.array([f"sensor_{i}" for i in range(self.keys)])
                per_file = self.records // self.files
                for file in range(self.files):
                    ts = np.arange(file * per_file, (file + 1) * per_file) * 1000
                    table = pa.table(
                        {
                            "id": pa.array(ids[rng.integers(0, self.keys, per_file)]),
                            "ts": pa.array(ts.astype("datetime64[us]")),
                            "temp": pa.array(rng.normal(60, 20, per_file)),
                        }
                    )
                    pq.write_table(table, directory / f"part-{file:04d}.parquet")
        return self

    def batches(self, first: int, measured: int) -> Path:
        """The same readings as two files: a small one to warm up with and the one that is measured."""
        path = ROOT / f"{self.directory.name}-first-{first}-then-{measured}"
        if not path.exists():
            with appearing(path) as directory:
                table = pa.concat_tables(pq.read_table(name, columns=["id", "temp"]) for name in self.names())
                half = -(-measured // 2)  # row groups, so that two cores can read
                pq.write_table(table.slice(0, first), directory / "1.parquet")
                pq.write_table(table.slice(first, measured), directory / "2.parquet", row_group_size=half)
                os.utime(directory / "1.parquet", (1_000_000_000, 1_000_000_000))  # Spark reads the older file first
        return path

    def distinct_keys(self, records: int) -> int:
        """How many keys the first `records` readings have."""
        ids = pa.concat_tables(pq.read_table(name, columns=["id"]) for name in self.names()).column("id")
        return int(pc.count_distinct(ids.slice(0, records)).as_py())

    def expected(self) -> dict[str, int]:
        """The alerts of the readings in the order of the files, as count and checksum."""
        path = self.directory.with_suffix(".json")  # not among the files that are read
        if not path.exists():
            last: dict[str, float] = {}
            path.write_text(json.dumps(multiset(_alerts(self.names(), last))))
        found: dict[str, int] = json.loads(path.read_text())
        return found


@contextlib.contextmanager
def appearing(path: Path) -> Iterator[Path]:
    """A directory that is there once it is complete, so that an interrupted run leaves none that is not."""
    temporary = path.with_name(path.name + ".tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    yield temporary
    temporary.rename(path)


def _alerts(names: Iterable[Path], last: dict[str, float]) -> Iterator[Row]:
    for name in names:
        table = pq.read_table(name, columns=["id", "temp"])
        for key, temp in zip(table.column(0).to_pylist(), table.column(1).to_pylist(), strict=True):
            old = last.get(key)
            if old is not None and abs(temp - old) > 60:
                yield key, temp, abs(temp - old)
            last[key] = temp


def multiset(alerts: Iterable[Row]) -> dict[str, int]:
    """Count and checksum of alerts, whatever their order; one that is missing, doubled or changed changes it."""
    count = checksum = 0
    for alert in alerts:
        count += 1
        checksum += xxhash.xxh64_intdigest(repr(alert).encode())
    return {"count": count, "checksum": checksum % 2**64}


def written_alerts(directory: str) -> list[Row]:
    """What a FileSink has committed."""
    alerts = []
    for path in sorted(Path(directory).iterdir()):
        if not path.name.startswith("."):
            for line in path.read_text().splitlines():
                key, temp, diff = line[1:-1].split(", ")
                alerts.append((key[1:-1], float(temp), float(diff)))
    return alerts


class Pairs:
    """Whether alerts can be true, in whatever order the files were read."""

    def __init__(self, events: Events) -> None:
        table = pa.concat_tables(pq.read_table(name, columns=["id", "temp"]) for name in events.names())
        keys = pc.cast(pc.utf8_slice_codeunits(table.column("id"), len("sensor_")), pa.int64()).to_numpy()
        temps = table.column("temp").to_numpy()
        order = np.lexsort((temps, keys))
        self._temps = temps[order]
        self._starts = np.searchsorted(keys[order], np.arange(events.keys + 1))

    def problems(self, alerts: Iterable[Row]) -> list[str]:
        """Each alert must be a reading of its key and differ as it says from another one of the same key; a reading gives
        one alert at most, and is the one before at most one other."""
        problems: list[str] = []
        readings: set[tuple[str, float]] = set()
        before: set[tuple[str, float]] = set()
        for alert in alerts:
            key, temp, diff = alert
            number = int(key[len("sensor_") :])
            temps = self._temps[self._starts[number] : self._starts[number + 1]]
            previous = temps[np.abs(temps - temp) == diff]
            if not len(previous) or temp not in temps:
                problems.append(f"{alert} is no pair of readings")
            elif (key, temp) in readings or (key, previous[0]) in before:
                problems.append(f"{alert} uses a reading twice")
            else:
                readings.add((key, temp))
                before.add((key, float(previous[0])))
        return problems
