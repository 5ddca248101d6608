"""The Kafka workload without Firesteel: its records, its function, and what must be true of the output.

Every record comes out once, with the number of records of its key so far, in as many bytes as it had.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

KEYS = 10_000
TOPICS = 2  # one for each process of those who cannot share a topic evenly
PARTITIONS = 2  # of each
PRODUCER = {"partitioner": "murmur2_random", "linger.ms": 5, "enable.idempotence": True}
"""What Firesteel's own producers have, so that nobody is ahead by a setting."""


def texts(topic: int, start: int, stop: int, size: int) -> list[str]:
    """Records of one of the topics, `sensor_1234,17,....`; no key is in two topics."""
    padding = "." * size
    return [f"sensor_{n * 7919 % (KEYS // TOPICS) * TOPICS + topic},{n},{padding}"[:size] for n in range(start, stop)]


def key_of(text: str) -> str:
    return text[: text.index(",")]


def counted(text: str, count: int) -> str:
    """The record that comes out."""
    key, _, rest = text.split(",", 2)
    return f"{key},{count},{rest}"


def names(prefix: str) -> list[str]:
    return [f"{prefix}-{number}" for number in range(TOPICS)]


def create(servers: str, topic: str) -> str:
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(30)
    return topic


def delete(servers: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    admin.delete_topics([topic])[topic].result(30)


def fill(servers: str, prefix: str, records: int, size: int) -> None:
    """Half of the records in each of two new topics, with their keys."""
    producer = Producer({"bootstrap.servers": servers, **PRODUCER})
    for number, topic in enumerate(names(prefix)):
        create(servers, topic)
        for start in range(0, records // TOPICS, 1000):
            for text in texts(number, start, min(start + 1000, records // TOPICS), size):
                while True:
                    try:
                        producer.produce(topic, text, key_of(text))
                        break
                    except BufferError:
                        producer.poll(0.1)
            producer.poll(0)
    if producer.flush(60):
        raise SystemExit("the input did not get to Kafka")


def reader(servers: str, topics: Iterable[str]) -> tuple[Any, int]:
    """A consumer of committed records from the beginning, and how many partitions it has."""
    settings = {
        "bootstrap.servers": servers,
        "group.id": "bench",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
        "isolation.level": "read_committed",
    }
    consumer = Consumer(settings)
    partitions = [
        TopicPartition(topic, number, 0)
        for topic in topics
        for number in consumer.list_topics(topic, 10).topics[topic].partitions
    ]
    consumer.assign(partitions)
    return consumer, len(partitions)


def check(servers: str, topic: str, records: int) -> None:
    """As many as went in, and of each key the counts 1 to n."""
    consumer, partitions = reader(servers, [topic])
    found: dict[bytes, list[int]] = {}
    ended = total = 0
    while ended < partitions:
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
    consumer, partitions = reader(servers, [topic])
    ended = total = 0
    while ended < partitions:
        for message in consumer.consume(5000, 0.2):
            if message.error() is None:
                total += 1
            else:
                ended += 1
    consumer.close()
    return total
