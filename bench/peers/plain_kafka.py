"""What confluent-kafka does in plain loops, in two processes: `python -m bench.peers.plain_kafka read|write SERVERS PREFIX
RECORDS SIZE`

Each process reads one of the topics PREFIX-0 and PREFIX-1, or writes half of the records. The clock starts with the first
records that have come, and when everybody is ready to write.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.synchronize import Barrier
from typing import Any

from confluent_kafka import Producer

from bench.kafka_records import PRODUCER, TOPICS, count_committed, create, delete, names, reader, texts

Timed = tuple[float, float, int]
"""When it started and ended, and how many records there were in between."""


def read(number: int, together: Barrier, servers: str, prefix: str, records: int, size: int) -> Timed:
    consumer, partitions = reader(servers, [names(prefix)[number]])
    ended = total = before = 0
    started = 0.0
    while ended < partitions:
        values = []
        for message in consumer.consume(4096, 0.1):
            if message.error() is None:
                values.append(message.value().decode())
            else:
                ended += 1
        total += len(values)
        if not started and values:
            started, before = time.time(), total
    done = time.time()
    consumer.close()
    if total != records // TOPICS:
        raise SystemExit(f"{total} of {records // TOPICS} records")
    return started, done, total - before


def write(number: int, together: Barrier, servers: str, prefix: str, records: int, size: int) -> Timed:
    failures: list[Any] = []
    settings = {
        "bootstrap.servers": servers,
        **PRODUCER,
        "queue.buffering.max.messages": 500_000,
        "delivery.report.only.error": True,
        "on_delivery": lambda error, message: failures.append(error),
    }
    producer, topic, count = Producer(settings), f"{prefix}-plain", records // TOPICS
    producer.list_topics(topic, 10)
    together.wait()
    started = time.time()
    for start in range(0, count, 4096):
        for text in texts(number, start, min(start + 4096, count), size):
            while True:
                try:
                    producer.produce(topic, text.encode())
                    break
                except BufferError:
                    producer.poll(0.1)
        producer.poll(0)
    if producer.flush(60) or failures:
        raise SystemExit(f"not all records arrived: {failures[:1]}")
    return started, time.time(), count


def _run(arguments: tuple[Any, ...]) -> Timed:
    what, *rest = arguments
    done: Timed = (read if what == "read" else write)(*rest)
    return done


def main() -> None:
    what, servers, prefix, records, size = *sys.argv[1:4], *map(int, sys.argv[4:6])
    topic = f"{prefix}-plain"
    if what == "write":
        create(servers, topic)
    with multiprocessing.Manager() as manager, ProcessPoolExecutor(TOPICS) as pool:
        together = manager.Barrier(TOPICS)
        arguments = [(what, number, together, servers, prefix, records, size) for number in range(TOPICS)]
        times = list(pool.map(_run, arguments))
    if what == "write":
        if (count := count_committed(servers, topic)) != records:
            raise SystemExit(f"{count} of {records} records in {topic}")
        delete(servers, topic)
    seconds = max(ended for _, ended, _ in times) - min(started for started, _, _ in times)
    print(json.dumps({"per_s": sum(count for _, _, count in times) / seconds}))


if __name__ == "__main__":
    main()
