"""Where reading of a Kafka partition starts and stops, under PyFlink's names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from firesteel.errors import ConfigurationError

if TYPE_CHECKING:
    from firesteel.connectors.kafka_cluster import KafkaCluster


@dataclass(frozen=True, order=True)
class KafkaTopicPartition:
    """A topic and a partition of it."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


Offsets = Mapping[KafkaTopicPartition, int]


class KafkaOffsetResetStrategy(Enum):
    """What to do where there is no offset to start from."""

    LATEST = 0
    EARLIEST = 1
    NONE = 2


@dataclass(frozen=True)
class KafkaOffsetsInitializer:
    """A way to find an offset for each partition. Offsets in a checkpoint always come first."""

    kind: str
    reset: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.EARLIEST
    time_ms: int = 0
    given: tuple[tuple[KafkaTopicPartition, int], ...] = ()

    @staticmethod
    def earliest() -> KafkaOffsetsInitializer:
        """The first record that the broker still has."""
        return KafkaOffsetsInitializer("earliest")

    @staticmethod
    def latest() -> KafkaOffsetsInitializer:
        """The end of the partition at the moment the job first looks."""
        return KafkaOffsetsInitializer("latest")

    @staticmethod
    def timestamp(timestamp: int) -> KafkaOffsetsInitializer:
        """The first record with this timestamp (milliseconds since 1970) or a later one; the end if there is none."""
        return KafkaOffsetsInitializer("timestamp", time_ms=timestamp)

    @staticmethod
    def committed_offsets(
        offset_reset_strategy: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.NONE,
    ) -> KafkaOffsetsInitializer:
        """What the consumer group has committed.

        :param offset_reset_strategy: for partitions without; NONE refuses to start.
        """
        return KafkaOffsetsInitializer("committed", offset_reset_strategy)

    @staticmethod
    def offsets(
        offsets: Mapping[KafkaTopicPartition, int],
        offset_reset_strategy: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.EARLIEST,
    ) -> KafkaOffsetsInitializer:
        """These.

        :param offset_reset_strategy: for partitions that are not among them and have no committed offset either.
        """
        return KafkaOffsetsInitializer("offsets", offset_reset_strategy, given=tuple(sorted(offsets.items())))

    def resolve(
        self, cluster: KafkaCluster, partitions: Iterable[KafkaTopicPartition], group: str | None
    ) -> dict[KafkaTopicPartition, int]:
        """Ask the cluster.

        :raises ConfigurationError: there is no offset for one of them, and nothing says what to do then.
        """
        partitions = list(partitions)
        if self.kind == "earliest":
            return cluster.earliest(partitions)
        if self.kind == "latest":
            return cluster.latest(partitions)
        if self.kind == "timestamp":
            return cluster.at_time(partitions, self.time_ms)
        found = {each: offset for each, offset in self.given if each in partitions}
        missing = [each for each in partitions if each not in found]
        if group is not None:
            found |= cluster.committed(group, missing)
        missing = [each for each in missing if each not in found]
        return found | self._reset(cluster, missing, group)

    def _reset(
        self, cluster: KafkaCluster, missing: list[KafkaTopicPartition], group: str | None
    ) -> dict[KafkaTopicPartition, int]:
        if not missing:
            return {}
        if self.reset is KafkaOffsetResetStrategy.EARLIEST:
            return cluster.earliest(missing)
        if self.reset is KafkaOffsetResetStrategy.LATEST:
            return cluster.latest(missing)
        raise ConfigurationError(
            f"the consumer group {group!r} has no committed offset for {', '.join(map(str, missing))}, and no reset strategy "
            f"says where to start then: KafkaOffsetsInitializer.committed_offsets(KafkaOffsetResetStrategy.EARLIEST)"
        )
