"""From a producer to a reader of committed records: `python -m bench.kafka_latency SERVERS SECONDS RATE SIZE`

A record's age counts from when it is due, whenever the producer gets to it, and ends when a consumer in a process of its own
has it. The producer starts when that consumer has seen the first records come through.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import time
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Event
from typing import Any

from confluent_kafka import Producer

from bench.figures import percentile
from bench.kafka import builder, counts, sink
from bench.kafka_records import KEYS, PARTITIONS, create, reader
from bench.watch import CHECKPOINT_MS, Watch, environment
from firesteel.common import WatermarkStrategy
from firesteel.datastream.connectors import DeliveryGuarantee
from firesteel.datastream.connectors.kafka import KafkaOffsetsInitializer, KafkaTopicPartition

_WARM_UP = 0.25  # the part of the run that is not counted
_PAUSE_S = 0.002


def text(number: int, created: float, size: int) -> str:
    return f"sensor_{number * 7919 % KEYS},{number},{created!r},{'.' * size}"[:size]


def produce(servers: str, topic: str, records: int, rate: int, size: int, seen: Event) -> None:
    """A record for each partition first, and the others when those have come through."""
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 0})
    for number in range(PARTITIONS):
        producer.produce(topic, text(number, time.time(), size), partition=number)
    producer.flush(30)
    seen.wait()
    origin = time.time()
    number = 0
    while number < records:
        due = min(records, int((time.time() - origin) * rate))
        for each in range(number, due):
            producer.produce(topic, text(each, origin + each / rate, size), partition=each % PARTITIONS)
        number = due
        producer.poll(0)
        time.sleep(_PAUSE_S)
    producer.flush(30)


def consume(servers: str, topic: str, records: int, seen: Event, result: Queue[list[tuple[float, float]]]) -> None:
    consumer = reader(servers, topic)
    pairs: list[tuple[float, float]] = []
    while len(pairs) < records + PARTITIONS:
        first = consumer.poll(1)  # consume() would wait for as many as it may take
        messages = [] if first is None else [first, *consumer.consume(10_000, 0)]
        now = time.time()
        pairs += [(float(m.value().split(b",", 3)[2]), now) for m in messages if m.error() is None]
        if len(pairs) >= PARTITIONS:
            seen.set()
    consumer.close()
    result.put(pairs)


def run(servers: str, seconds: int, rate: int, size: int) -> dict[str, Any]:
    records = seconds * rate // PARTITIONS * PARTITIONS
    source, out = (create(servers, f"latency-{name}-{time.time_ns()}") for name in ("in", "out"))
    context = multiprocessing.get_context("spawn")
    seen, result = context.Event(), context.Queue()
    children = [
        context.Process(target=produce, args=(servers, source, records, rate, size, seen), daemon=True),
        context.Process(target=consume, args=(servers, out, records, seen, result), daemon=True),
    ]
    for child in children:
        child.start()
    env = environment()
    ends = {KafkaTopicPartition(source, number): records // PARTITIONS + 1 for number in range(PARTITIONS)}
    made = builder(servers, source).set_unbounded(KafkaOffsetsInitializer.offsets(ends)).build()
    stream = env.from_source(made, WatermarkStrategy.no_watermarks(), "in").uid("in")
    counts(stream).sink_to(sink(servers, out, DeliveryGuarantee.EXACTLY_ONCE)).uid("out")
    watch = Watch(env, "kafka, latency")
    pairs = result.get(timeout=30)[PARTITIONS:]
    for child in children:
        child.join()
    if len(pairs) != records:
        sys.exit(f"{len(pairs)} records came out instead of {records}")
    warm = min(created for created, _ in pairs) + seconds * _WARM_UP
    late = [arrived - created for created, arrived in pairs if created >= warm]
    answer = {f"p{part}": percentile(late, part) for part in (50, 99)}
    return {**answer, "checkpoints": watch.checkpoints, "interval": CHECKPOINT_MS}


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1], *map(int, sys.argv[2:5]))))
