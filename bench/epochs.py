"""How long an epoch with few records takes: `python -m bench.epochs COUNT RECORDS KEYS`"""

from __future__ import annotations

import json
import sys
import tempfile

from bench.keyed import Alert
from bench.paced import StepSource
from bench.watch import Watch, environment
from firesteel.common import Encoder
from firesteel.datastream.connectors.file_system import FileSink


def run(count: int, records: int, keys: int) -> dict[str, object]:
    env = environment()
    readings = env.from_source(StepSource(count * records, records, keys), None, "readings").uid("readings")
    alerts = readings.key_by(lambda row: row[0]).process(Alert()).uid("alerts")
    alerts.sink_to(FileSink.for_row_format(tempfile.mkdtemp(), Encoder.simple_string_encoder()).build())
    watch = Watch(env, "small epochs")
    if watch.counts["alerts"][0] != count * records or len(watch.ends) != count:
        sys.exit(f"{watch.counts['alerts'][0]} records in {len(watch.ends)} epochs instead of {count} times {records}")
    return {"cycles": watch.cycles(), "seconds": watch.seconds, "checkpoints": watch.checkpoints}


if __name__ == "__main__":
    print(json.dumps(run(*map(int, sys.argv[1:]))))
