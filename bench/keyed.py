"""Keyed updates per second: `python -m bench.keyed RECORDS KEYS FILES [in-order] [rocksdb]`

**What is checked.** An alert compares a reading with the one before it of the same key. Two subtasks read different files at
the same time, and which of two files' readings of a key comes first depends on timing (Flink and Spark are no different), so
two right runs may give different alerts. Therefore:

- a timed run must have handed every record to the function once (by the operators' counts), committed as many alerts as the
  function made, each of them a true pair of that key's readings with no reading used twice (bench.data.Pairs), and about as
  many as a plain loop;
- the same program is run once, untimed, with `in-order`: the source has one subtask and reads the files in their order. Then
  there is only one right answer, and count and checksum of all alerts must be those of a plain loop.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

from bench.data import Events, Pairs, multiset, written_alerts
from bench.watch import Watch, environment
from firesteel.common import Encoder, Types
from firesteel.datastream import KeyedProcessFunction, RuntimeContext, ValueStateDescriptor
from firesteel.datastream.connectors.file_system import FileSink, FileSource, ParquetColumnarRowInputFormat

_ABOUT = 0.02  # five standard deviations of the number of alerts are 1.4 % at 4 million records


class Alert(KeyedProcessFunction):
    """The workload: compare a reading with the last one of its sensor, and remember it."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.DOUBLE()))

    def process_element(self, value: tuple[str, float], ctx: Any) -> Iterator[tuple[str, float, float]]:
        old, temp = self.last.value(), value[1]
        if old is not None and abs(temp - old) > 60:
            yield value[0], temp, abs(temp - old)
        self.last.update(temp)


def run(events: Events, in_order: bool, backend: str) -> dict[str, Any]:
    env = environment(backend=backend)
    out = tempfile.mkdtemp()
    columns = ParquetColumnarRowInputFormat(columns=["id", "temp"])
    source = FileSource.for_bulk_file_format(columns, str(events.directory)).build()
    readings = env.from_source(source, None, "readings").uid("readings")
    if in_order:
        readings = readings.set_parallelism(1)
    alerts = readings.key_by(lambda row: row[0]).process(Alert()).uid("alerts")
    alerts.sink_to(FileSink.for_row_format(out, Encoder.simple_string_encoder()).build()).uid("files")
    watch = Watch(env, "keyed updates")
    problems = check(events, watch, out, in_order)
    if problems:
        sys.exit("wrong output: " + "; ".join(problems[:10]))
    return {
        "per_s": watch.warm_rate(),
        "per_s_with_start": events.records / (watch.ended - watch.called),
        "epochs": len(watch.ends),
        "checkpoints": watch.checkpoints,
        "rss": max(watch.rss.values(), default=0),
    }


def check(events: Events, watch: Watch, out: str, in_order: bool) -> list[str]:
    problems = []
    read, (received, made), written = watch.counts["readings"][1], watch.counts["alerts"], watch.counts["files"][0]
    if (read, received) != (events.records, events.records):
        problems.append(f"{events.records} records, {read} read, {received} processed")
    alerts = written_alerts(out)
    if not made == written == len(alerts):
        problems.append(f"{made} alerts made, {written} written, {len(alerts)} committed")
    expected = events.expected()
    if in_order:
        found = multiset(alerts)
        return problems if found == expected else [*problems, f"alerts {found} instead of {expected}"]
    if abs(len(alerts) / expected["count"] - 1) > _ABOUT:
        problems.append(f"{len(alerts)} alerts, a plain loop makes {expected['count']}")
    return problems + Pairs(events).problems(alerts)


if __name__ == "__main__":
    events, options = Events(*map(int, sys.argv[1:4])).make(), sys.argv[4:]
    print(json.dumps(run(events, "in-order" in options, "rocksdb" if "rocksdb" in options else "hashmap")))
