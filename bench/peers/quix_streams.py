"""The same from Kafka to Kafka with Quix Streams, exactly once, in two processes:
`python -m bench.peers.quix_streams SERVERS PREFIX RECORDS`

Records have their keys in Kafka already, by which Quix Streams keeps state, so nothing is moved between processes. Each process
has a topic of its own, PREFIX-0 and PREFIX-1, with half of the records, so that it knows when it is done, and commits every 5
seconds. The clock starts with the first record.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from bench.kafka_records import PROCESSES, check, counted, create, delete

COMMIT_S = 5.0


def copy(arguments: tuple[int, str, str, str, int]) -> tuple[float, float]:
    number, servers, prefix, out, count = arguments
    from quixstreams import Application

    app = Application(
        servers,
        consumer_group=f"{out}-{number}",
        auto_offset_reset="earliest",
        processing_guarantee="exactly-once",
        commit_interval=COMMIT_S,
        state_dir=tempfile.mkdtemp(),
        loglevel="WARNING",
    )
    started = 0.0

    def update(value: str, state: Any) -> str:
        nonlocal started
        if not started:
            started = time.time()
        seen = state.get("count", 0) + 1
        state.set("count", seen)
        return counted(value, seen)

    source = app.topic(f"{prefix}-{number}", value_deserializer="string", key_deserializer="string")
    sink = app.topic(out, value_serializer="string", key_serializer="string")
    app.dataframe(source).apply(update, stateful=True).to_topic(sink)
    app.run(count=count, collect=False)
    return started, time.time()


def main() -> None:
    servers, prefix, records = sys.argv[1], sys.argv[2], int(sys.argv[3])
    out = create(servers, f"{prefix}-quix-{time.time_ns()}")
    with ProcessPoolExecutor(PROCESSES) as pool:
        times = list(pool.map(copy, [(n, servers, prefix, out, records // PROCESSES) for n in range(PROCESSES)]))
    check(servers, out, records)
    delete(servers, out)
    seconds = max(ended for _, ended in times) - min(started for started, _ in times)
    print(json.dumps({"per_s": records / seconds}))


if __name__ == "__main__":
    main()
