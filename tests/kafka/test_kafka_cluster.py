"""What the driver asks a broker that has just come back."""

from __future__ import annotations

import time
from collections.abc import Callable

from firesteel.connectors.kafka_cluster import KafkaCluster
from firesteel.connectors.kafka_offsets import KafkaTopicPartition
from firesteel.errors import ExternalSystemError
from tests.support.kafka_broker import KafkaBroker
from tests.support.waiting import PATIENCE_S


def test_offsets_are_known_again_soon_after_a_broker_was_restarted(
    kafka: KafkaBroker, topic: Callable[..., str]
) -> None:
    """Its partitions have a new leader epoch then, and librdkafka goes on asking with the one it knows."""
    partition = KafkaTopicPartition(topic(), 0)
    cluster = KafkaCluster({"bootstrap.servers": kafka.bootstrap})
    assert _latest(cluster, partition) == 0
    for _ in range(3):
        kafka.kill()
        kafka.start()
        assert _latest(cluster, partition) == 0
    cluster.close()


def _latest(cluster: KafkaCluster, partition: KafkaTopicPartition) -> int:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return cluster.latest([partition])[partition]
        except ExternalSystemError:
            if time.monotonic() > deadline:
                raise
