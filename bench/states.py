"""One workload of the `states` part as a Firesteel job: `python -m bench.states WORKLOAD RECORDS`"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.watch import Watch, environment
from bench.workloads import OUT_OF_ORDER_MS, WORKLOADS, Ts, Workload, digest, key_of
from firesteel.common import Duration, Encoder, WatermarkStrategy
from firesteel.datastream import DataStream, StreamExecutionEnvironment
from firesteel.datastream.connectors.file_system import FileSink, FileSource, ParquetColumnarRowInputFormat


def build(env: StreamExecutionEnvironment, workload: Workload, records: int, out: str) -> None:
    streams = [
        env.from_source(
            FileSource.for_bulk_file_format(
                ParquetColumnarRowInputFormat(columns=list(workload.columns)), str(numbers.make().directory)
            ).build(),
            _strategy(workload),
            f"numbers {index}",
        ).uid(f"numbers-{index}")
        for index, numbers in enumerate(workload.data(records))
    ]
    results = _results(workload, streams).uid("function")
    if workload.keep is not None:
        results = results.filter(workload.keep)
    results.sink_to(FileSink.for_row_format(out, Encoder.simple_string_encoder()).build()).uid("files")


def _strategy(workload: Workload) -> WatermarkStrategy | None:
    if "ts" not in workload.columns:
        return None
    bounded = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(OUT_OF_ORDER_MS))
    return bounded.with_timestamp_assigner(Ts())


def _results(workload: Workload, streams: list[DataStream]) -> DataStream:
    if workload.function is None:
        return streams[0].key_by(key_of).sum(1)
    if workload.streams == 2:
        return streams[0].connect(streams[1]).key_by(key_of, key_of).process(workload.function())
    return streams[0].key_by(key_of).process(workload.function())


def written(out: str) -> dict[str, int]:
    """What the sink has committed."""
    parts = [path for path in Path(out).iterdir() if not path.name.startswith(".")]
    return digest(line for path in parts for line in path.read_text().splitlines())


def run(name: str, records: int) -> dict[str, Any]:
    workload, env, out = WORKLOADS[name], environment(), tempfile.mkdtemp()
    build(env, workload, records, out)
    watch = Watch(env, name)
    received, made = watch.counts["function"]
    return {
        **written(out),
        "records": received,
        "made": made,
        "per_s": watch.warm_rate(),
        "epochs": len(watch.ends),
        "checkpoints": watch.checkpoints,
    }


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1], int(sys.argv[2]))))
