"""Memory over a long run: `python -m bench.soak RECORDS KEYS`"""

from __future__ import annotations

import json
import sys
import tempfile
from statistics import median

import psutil

from bench.watch import Watch, environment
from firesteel.common import Encoder
from firesteel.coordinator.engine import EpochResult
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.file_system import FileSink

EARLY, LATE = 0.3, 0.7


class SoakWatch(Watch):
    """Also notes, at every epoch's end, what the slots and the driver (with Spark's JVM) hold."""

    def __init__(self, env: StreamExecutionEnvironment, name: str) -> None:
        self.slots: list[int] = []
        self.driver: list[int] = []
        super().__init__(env, name)

    def epoch(self, number: int, seconds: float, result: EpochResult, base: int | None, part: float | None) -> None:
        super().epoch(number, seconds, result, base, part)
        me = psutil.Process()
        jvms = [child for child in me.children() if "java" in child.name()]
        self.driver.append(sum(process.memory_info().rss for process in [me, *jvms]))
        self.slots.append(sum(self.slots_rss.values()))


def growth(samples: list[int]) -> float:
    """The last part of a run against an early one, when caches are filled and the JVM has settled."""
    early = samples[len(samples) // 10 : int(len(samples) * EARLY)]
    return median(samples[int(len(samples) * LATE) :]) / median(early)


def run(records: int, keys: int) -> dict[str, object]:
    env = environment(progress=True)
    totals = env.from_sequence(1, records).uid("numbers").key_by(lambda n: n % keys).reduce(lambda a, b: a + b)
    rare = totals.uid("totals").filter(lambda total: total % 1000 == 0)
    rare.sink_to(FileSink.for_row_format(tempfile.mkdtemp(), Encoder.simple_string_encoder()).build())
    watch = SoakWatch(env, "soak")
    if watch.counts["totals"][0] != records:
        sys.exit(f"{watch.counts['totals'][0]} of {records} records")
    return {
        "slots": growth(watch.slots),
        "driver": growth(watch.driver),
        "slots_end": watch.slots[-1],
        "driver_end": watch.driver[-1],
        "per_s": records / (watch.ended - watch.first_epoch),
    }


if __name__ == "__main__":
    print(json.dumps(run(*map(int, sys.argv[1:]))))
