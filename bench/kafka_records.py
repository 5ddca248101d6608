"""The Kafka workload without Firesteel: its records, its function, and what must be true of the output.

Every record comes out once, with the number of records of its key so far, in as many bytes as it had.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

KEYS = 10_000
PARTITIONS = 4
PROCESSES = 2
PRODUCER = {"partitioner": "murmur2_random", "linger.ms": 5, "enable.idempotence": True}
"""What Firesteel's own producers have, so that nobody is ahead by a setting."""


def texts(half: int, start: int, stop: int, size: int) -> list[str]:
    """Records of one half of the keys: `sensor_1234,17,....`."""
    padding, keys = "." * size, KEYS // PROCESSES
    return [f"sensor_{n * 7919 % keys * PROCESSES + half},{n},{padding}"[:size] for n in range(start, stop)]


def key_of(text: str) -> str:
    return text[: text.index(",")]


def counted(text: str, count: int) -> str:
    """The record that comes out."""
    key, _, rest = text.split(",", 2)
    return f"{key},{count},{rest}"


def create(servers: str, topic: str) -> str:
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(30)
    return topic


def delete(servers: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    admin.delete_topics([topic])[topic].result(30)


def fill(servers: str, topic: str, half: int, records: int, size: int) -> None:
    """Records with their keys."""
    producer = Producer({"bootstrap.servers": servers, **PRODUCER})
    for start in range(0, records, 1000):
        for text in texts(half, start, min(start + 1000, records), size):
            while True:
                try:
                    producer.produce(topic, text, key_of(text))
                    break
                except BufferError:
                    producer.poll(0.1)
        producer.poll(0)
    if producer.flush(60):
        raise SystemExit("the input did not get to Kafka")


def reader(servers: str, topic: str, numbers: Iterable[int] = range(PARTITIONS)) -> Any:
    """A consumer of committed records of these partitions, from their beginning."""
    settings = {
        "bootstrap.servers": servers,
        "group.id": "bench",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
        "isolation.level": "read_committed",
    }
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(topic, number, 0) for number in numbers])
    return consumer


def check(servers: str, topic: str, records: int) -> None:
    """As many as went in, and of each key the counts 1 to n."""
    consumer = reader(servers, topic)
    found: dict[bytes, list[int]] = {}
    ended = total = 0
    while ended < PARTITIONS:
        for message in consumer.consume(5000, 0.2):
            if message.error() is not None:
                ended += 1
                continue
            key, count, _ = message.value().split(b",", 2)
            seen = found.setdefault(key, [0, 0])
            seen[0] += 1
            seen[1] += int(count)
            total += 1
    consumer.close()
    wrong = [key for key, (seen, counts) in found.items() if counts != seen * (seen + 1) // 2]
    if total != records or wrong:
        raise SystemExit(f"{total} of {records} records in {topic}, {len(wrong)} keys with wrong counts: {wrong[:5]}")


def count_committed(servers: str, topic: str) -> int:
    consumer = reader(servers, topic)
    ended = total = 0
    while ended < PARTITIONS:
        for message in consumer.consume(5000, 0.2):
            if message.error() is None:
                total += 1
            else:
                ended += 1
    consumer.close()
    return total
