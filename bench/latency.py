"""From a record's creation to its output: `python -m bench.latency plain|transactional SECONDS RATE KEYS`

plain: records leave with their epoch (bench.paced.ArrivalSink). transactional: they are visible once their checkpoint is
complete and the file they are in got its final name; a thread of the driver watches for that.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
import time
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.figures import percentile
from bench.paced import ArrivalSink, RateSource
from bench.watch import Watch, environment
from firesteel.common import Encoder, Types
from firesteel.datastream import KeyedProcessFunction, RuntimeContext, ValueStateDescriptor
from firesteel.datastream.connectors.file_system import FileSink

_LOOK_S = 0.005
_WARM_UP = 0.25  # the part of the run that is not counted


class Remember(KeyedProcessFunction):
    """The workload's state access, but every reading comes out."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.DOUBLE()))

    def process_element(self, value: tuple[str, float, float], ctx: Any) -> Iterator[tuple[str, float, float]]:
        old = self.last.value()
        self.last.update(value[1])
        yield value[0], value[1] - (old or 0.0), value[2]


class Appearing(threading.Thread):
    """Notes when files get their final names."""

    def __init__(self, directory: str) -> None:
        super().__init__(name="watch files", daemon=True)
        self.seen: dict[str, float] = {}
        self._directory = directory
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.wait(_LOOK_S):
            self._look()

    def end(self) -> None:
        self._ended.set()
        self.join()
        self._look()

    def _look(self) -> None:
        names, now = os.listdir(self._directory), time.time()
        for name in names:
            if not name.startswith("."):
                self.seen.setdefault(name, now)


def run(kind: str, seconds: int, rate: int, keys: int) -> dict[str, Any]:
    env, out = environment(), tempfile.mkdtemp()
    source = RateSource(seconds * rate, rate, keys)
    output = env.from_source(source, None, "readings").key_by(lambda row: row[0]).process(Remember())
    if kind == "plain":
        output.sink_to(ArrivalSink(out))
        Watch(env, "latency, plain output")
        pairs = _arrivals(out)
    else:
        output.sink_to(FileSink.for_row_format(out, Encoder.simple_string_encoder()).build())
        appearing = Appearing(out)
        appearing.start()
        Watch(env, "latency, transactional output")
        appearing.end()
        pairs = _visible(out, appearing.seen)
    if len(pairs) != seconds * rate:
        sys.exit(f"{len(pairs)} records came out instead of {seconds * rate}")
    warm = min(created for created, _ in pairs) + seconds * _WARM_UP
    late = [arrived - created for created, arrived in pairs if created >= warm]
    return {f"p{part}": percentile(late, part) for part in (50, 95, 99)}


def _arrivals(out: str) -> list[tuple[float, float]]:
    pairs: list[tuple[float, float]] = []
    for path in Path(out).iterdir():
        numbers = array("d", path.read_bytes())
        pairs.extend(zip(numbers[::2], numbers[1::2], strict=True))
    return pairs


def _visible(out: str, seen: dict[str, float]) -> list[tuple[float, float]]:
    return [
        (float(line[1:-1].split(", ")[2]), when)
        for name, when in seen.items()
        for line in Path(out, name).read_text().splitlines()
    ]


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1], *map(int, sys.argv[2:]))))
