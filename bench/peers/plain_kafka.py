"""What confluent-kafka does in plain loops, in two processes: `python -m bench.peers.plain_kafka read|write SERVERS TOPIC
RECORDS SIZE`

Each process reads half of the partitions, or writes half of the records. The clock starts with the first records that have
come, and when everybody is ready to write.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.synchronize import Barrier
from typing import Any, NamedTuple

from confluent_kafka import Producer

from bench.kafka_records import PARTITIONS, PROCESSES, PRODUCER, count_committed, create, delete, reader, texts


class Timed(NamedTuple):
    """When a process started and ended, how many records it had, and how many of them since the start."""

    started: float
    ended: float
    records: int
    counted: int


def read(number: int, together: Barrier, servers: str, topic: str, records: int, size: int) -> Timed:
    mine = range(number, PARTITIONS, PROCESSES)
    consumer = reader(servers, topic, mine)
    ended = total = before = 0
    started = 0.0
    while ended < len(mine):
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
    return Timed(started, done, total, total - before)


def write(number: int, together: Barrier, servers: str, topic: str, records: int, size: int) -> Timed:
    failures: list[Any] = []
    settings = {
        "bootstrap.servers": servers,
        **PRODUCER,
        "queue.buffering.max.messages": 500_000,
        "delivery.report.only.error": True,
        "on_delivery": lambda error, message: failures.append(error),
    }
    producer, topic, count = Producer(settings), f"{topic}-plain", records // PROCESSES
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
    return Timed(started, time.time(), count, count)


def _run(arguments: tuple[Any, ...]) -> Timed:
    what, *rest = arguments
    done: Timed = (read if what == "read" else write)(*rest)
    return done


def main() -> None:
    what, servers, topic, records, size = *sys.argv[1:4], *map(int, sys.argv[4:6])
    if what == "write":
        out = create(servers, f"{topic}-plain")
    with multiprocessing.Manager() as manager, ProcessPoolExecutor(PROCESSES) as pool:
        together = manager.Barrier(PROCESSES)
        arguments = [(what, number, together, servers, topic, records, size) for number in range(PROCESSES)]
        times = list(pool.map(_run, arguments))
    count = sum(each.records for each in times)
    if what == "write":
        count = count_committed(servers, out)
        delete(servers, out)
    if count != records:
        raise SystemExit(f"{count} of {records} records")
    seconds = max(each.ended for each in times) - min(each.started for each in times)
    print(json.dumps({"per_s": sum(each.counted for each in times) / seconds}))


if __name__ == "__main__":
    main()
