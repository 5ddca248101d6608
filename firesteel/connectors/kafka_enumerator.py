"""The driver's half of the Kafka source: which partitions there are, and how far each one has been planned.

An epoch is planned in offsets: from where the last one stopped to where the partition ends now, or less. Readers read
exactly that, so the offsets of a checkpoint are known before a record of it is read, and there is no group membership and
no rebalancing: a partition stays with its subtask.
"""

from __future__ import annotations

import logging
import re
import time
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from firesteel.connectors.base import Assignment, EnumeratorContext, Json, SplitEnumerator
from firesteel.connectors.kafka_client import Properties
from firesteel.connectors.kafka_cluster import KafkaCluster
from firesteel.connectors.kafka_offsets import KafkaOffsetsInitializer, KafkaTopicPartition
from firesteel.errors import ConfigurationError, DataLossError, ExternalSystemError, RestoreError

log = logging.getLogger("firesteel")

_START_ANEW = "start the job without its checkpoint, under another name, to read what there is now"

OUTAGE_S = 60.0
"""How long brokers may be out of reach before the job fails."""


@dataclass(frozen=True)
class Subscription:
    """Topics, a pattern of topics' names, or partitions."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: tuple[KafkaTopicPartition, ...] = ()

    def find(self, there: dict[str, list[int]]) -> list[KafkaTopicPartition]:
        """The partitions among those that are there.

        :raises ConfigurationError: something that is asked for by name is not there.
        """
        if self.pattern is not None:
            pattern = re.compile(self.pattern)
            names = [name for name in there if pattern.fullmatch(name)]
            return [KafkaTopicPartition(name, number) for name in sorted(names) for number in there[name]]
        wanted = self.topics or {each.topic for each in self.partitions}
        if missing := sorted(name for name in wanted if name not in there):
            known = ", ".join(sorted(name for name in there if not name.startswith("__"))[:10])
            raise ConfigurationError(
                f"the topic{'s' if len(missing) > 1 else ''} {', '.join(missing)} cannot be read: not in the cluster, or not "
                f"for this user, which sees {known or 'none'}"
            )
        if self.partitions:
            if missing := [str(each) for each in self.partitions if each.partition not in there[each.topic]]:
                raise ConfigurationError(f"there is no partition {', '.join(missing)} in the cluster")
            return sorted(self.partitions)
        return [KafkaTopicPartition(name, number) for name in self.topics for number in there[name]]

    def covers(self, partition: KafkaTopicPartition) -> bool:
        if self.pattern is not None:
            return re.fullmatch(self.pattern, partition.topic) is not None
        return partition.topic in self.topics or partition in self.partitions


@dataclass(frozen=True)
class ReadingPlan:
    """What the driver has to know of a Kafka source.

    :ivar beginnings: offsets that were found for a start without a checkpoint. They outlive a restart in this process, so
        that records which came before the first checkpoint are not passed over when "latest" is asked for again.
    """

    properties: Properties
    subscription: Subscription
    start: KafkaOffsetsInitializer
    stop: KafkaOffsetsInitializer | None
    group: str | None
    commits_offsets: bool
    discovery_s: float | None
    most_per_epoch: int | None
    fails_on_data_loss: bool
    beginnings: dict[KafkaTopicPartition, tuple[int, int | None]] = field(default_factory=dict)


@dataclass
class _Partition:
    """How far one has been planned. `end` is where it ended when the broker was asked last."""

    first: int
    position: int
    stop: int | None
    end: int = 0

    @property
    def left(self) -> int:
        return max(0, (self.end if self.stop is None else min(self.end, self.stop)) - self.position)

    @property
    def finished(self) -> bool:
        return self.stop is not None and self.position >= self.stop


class KafkaEnumerator(SplitEnumerator):
    """Plans offsets. A unit is an offset, which is a record, or a gap where one was compacted or a transaction ended."""

    def __init__(
        self,
        plan: ReadingPlan,
        context: EnumeratorContext,
        connect: Callable[[Properties], KafkaCluster] = KafkaCluster,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._plan, self._context, self._connect, self._clock = plan, context, connect, clock
        self._cluster: KafkaCluster | None = None
        self._partitions: dict[KafkaTopicPartition, _Partition] = {}
        self._topic_ids: dict[str, str] = {}
        self._looked: float | None = None
        self._restored = False
        self._reachable = clock()
        self._committing: Callable[[], None] | None = None

    def plan(self, budget: int) -> Assignment:
        try:
            self._discover()
            self._find_ends()
        except ExternalSystemError as error:
            if not self._partitions or self._clock() - self._reachable > OUTAGE_S:
                raise
            log.warning("source %s goes on with what it knows: %s", self._context.uid, error)
        else:
            self._reachable = self._clock()
        if self._plan.most_per_epoch is not None:
            budget = min(budget, self._plan.most_per_epoch)
        ranges: list[list[Json]] = [[] for _ in range(self._context.parallelism)]
        units = 0
        for partition, state, count in self._share(budget):
            ranges[self._owner(partition)].append(
                [partition.topic, partition.partition, state.position, state.position + count]
            )
            state.position += count
            units += count
        # one range for each subtask, of all its partitions: its reader takes turns between them
        left = any(state.left for state in self._partitions.values())
        planned = [[{"partitions": each}] if each else [] for each in ranges]
        return Assignment(planned, units, caught_up=not left, splits=self._splits())

    def _owner(self, partition: KafkaTopicPartition) -> int:
        """The subtask that reads it, from its beginning to its end."""
        return (zlib.crc32(partition.topic.encode()) + partition.partition) % self._context.parallelism

    def _splits(self) -> list[list[str]]:
        """By subtask the partitions that are not read to their end: event time waits for those."""
        splits: list[list[str]] = [[] for _ in range(self._context.parallelism)]
        for partition, state in self._partitions.items():
            if not state.finished:
                splits[self._owner(partition)].append(str(partition))
        return splits

    def _share(self, budget: int) -> Iterable[tuple[KafkaTopicPartition, _Partition, int]]:
        """Even shares of the budget; what short partitions do not need goes to the others."""
        waiting = sorted(
            ((partition, state) for partition, state in self._partitions.items() if state.left),
            key=lambda item: (item[1].left, item[0]),
        )
        for index, (partition, state) in enumerate(waiting):
            count = min(state.left, -(-budget // (len(waiting) - index)))
            if count:
                budget -= count
                yield partition, state, count

    # ---- looking around

    def _discover(self) -> None:
        if self._looked is not None:
            interval = self._plan.discovery_s
            if interval is None or self._clock() - self._looked < interval:
                return
        first = self._looked is None and not self._restored
        if self._cluster is None:
            self._cluster = self._connect(self._plan.properties)
        there = self._find(self._cluster)
        self._know_topics(self._cluster, {partition.topic for partition in there})
        new = [partition for partition in there if partition not in self._partitions]
        for partition, (start, stop) in self._beginnings(self._cluster, new, first).items():
            self._partitions[partition] = _Partition(start, start, stop)
            log.info("source %s reads %s from offset %d", self._context.uid, partition, start)
        if not self._partitions:
            log.warning("source %s finds nothing to read: %s", self._context.uid, self._plan.subscription)
        self._looked = self._clock()

    def _find(self, cluster: KafkaCluster) -> list[KafkaTopicPartition]:
        try:
            return self._plan.subscription.find(cluster.topics())
        except ConfigurationError as error:
            if not self._partitions:
                raise
            # what was there may be back soon, or only this broker not know of it yet
            raise ExternalSystemError(f"source {self._context.uid!r}: {error}") from error

    def _know_topics(self, cluster: KafkaCluster, topics: Iterable[str]) -> None:
        """Offsets are void in a topic that was deleted and made anew, however many records it has by now."""
        for topic, now in cluster.topic_ids(topics).items():
            before = self._topic_ids.setdefault(topic, now)
            if now != before:
                raise DataLossError(
                    f"source {self._context.uid!r} reads the topic {topic!r}, which was deleted and made anew (its id was "
                    f"{before} and is {now}): {_START_ANEW}"
                )

    def _beginnings(
        self, cluster: KafkaCluster, new: list[KafkaTopicPartition], first: bool
    ) -> dict[KafkaTopicPartition, tuple[int, int | None]]:
        known = self._plan.beginnings
        unknown = [partition for partition in new if partition not in known]
        # a partition that came later has been empty until then: all of it is new
        way = self._plan.start if first else KafkaOffsetsInitializer.earliest()
        starts = way.resolve(cluster, unknown, self._plan.group)
        stops = {} if self._plan.stop is None else self._plan.stop.resolve(cluster, unknown, self._plan.group)
        known.update((partition, (start, stops.get(partition))) for partition, start in starts.items())
        return {partition: known[partition] for partition in new}

    def _find_ends(self) -> None:
        assert self._cluster is not None
        for partition, end in self._cluster.latest(p for p, s in self._partitions.items() if not s.finished).items():
            state = self._partitions[partition]
            if end < state.end and end < state.position:
                self._gone(partition, state.position, f"the partition ends at {end}")
            state.end = end

    def _gone(self, partition: KafkaTopicPartition, position: int, why: str) -> None:
        raise DataLossError(
            f"source {self._context.uid!r} has read {partition} up to offset {position}, and {why}: its topic was made anew, "
            f"or lost records: {_START_ANEW}"
        )

    # ---- its place in a job

    def finished(self) -> bool:
        if self._plan.stop is None or self._looked is None:
            return False
        return all(state.finished for state in self._partitions.values())

    def snapshot(self) -> Json:
        return {
            "topics": self._topic_ids,
            "partitions": [
                [partition.topic, partition.partition, state.position, state.stop]
                for partition, state in sorted(self._partitions.items())
            ],
        }

    def restore(self, state: Json) -> None:
        """Go on from these offsets. Partitions that are not among them are new, and read from their beginning."""
        self._restored = True
        self._cluster = self._connect(self._plan.properties)
        self._topic_ids = dict(state["topics"])
        for topic, number, position, stop in state["partitions"]:
            partition = KafkaTopicPartition(topic, number)
            if not self._plan.subscription.covers(partition):
                log.warning("source %s does not read %s any more, which it did", self._context.uid, partition)
                continue
            self._partitions[partition] = _Partition(position, position, stop)
        there = self._cluster.topics()
        for partition in self._partitions:
            if partition.partition not in there.get(partition.topic, ()):
                raise RestoreError(
                    f"source {self._context.uid!r} cannot go on from this checkpoint: {partition} is not in the cluster any "
                    f"more. Take its topic off the source to go on without it"
                )
        self._know_topics(self._cluster, {partition.topic for partition in self._partitions})
        self._check_positions(self._cluster)

    def _check_positions(self, cluster: KafkaCluster) -> None:
        """Find out now what the readers would find out one by one."""
        reading = {p: s for p, s in self._partitions.items() if not s.finished}
        ends = cluster.latest(reading)
        for partition, first in cluster.earliest(reading).items():
            state = reading[partition]
            if ends[partition] < state.position:
                self._gone(partition, state.position, f"the partition ends at {ends[partition]}")
            if first > state.position:
                gone = data_gone(self._context.uid, partition, state.position, first)
                if self._plan.fails_on_data_loss:
                    raise gone
                log.warning("%s. The job goes on without them, as it was told to", str(gone).split(". ")[0])
                state.position = first

    def completed(self, state: Json) -> None:
        """Commit the offsets for the group: for monitoring, and for whoever starts without a checkpoint."""
        if not self._plan.commits_offsets or self._plan.group is None or self._cluster is None:
            return
        self._await_commit()
        offsets = {KafkaTopicPartition(topic, number): position for topic, number, position, _ in state["partitions"]}
        if offsets:
            try:
                self._committing = self._cluster.commit(self._plan.group, offsets)
            except ExternalSystemError as error:
                log.warning("source %s: %s", self._context.uid, error)

    def _await_commit(self) -> None:
        """Nothing depends on it but what others see, so a failure is not the job's."""
        committing, self._committing = self._committing, None
        if committing is not None:
            try:
                committing()
            except ExternalSystemError as error:
                log.warning("source %s: %s", self._context.uid, error)

    def progress(self) -> float | None:
        if self._plan.stop is None or self._looked is None:
            return None
        states = self._partitions.values()
        total = sum(max(0, state.stop - state.first) for state in states if state.stop is not None)
        done = sum(min(state.position, state.stop) - state.first for state in states if state.stop is not None)
        return done / total if total > 0 else 1.0

    def close(self) -> None:
        self._await_commit()
        cluster, self._cluster = self._cluster, None
        if cluster is not None:
            cluster.close()


def data_gone(uid: str, partition: KafkaTopicPartition, position: int, first: int) -> DataLossError:
    return DataLossError(
        f"source {uid!r} has yet to read {partition} from offset {position}, and the broker has nothing before {first} any "
        f"more: {first - position} offsets are gone. Keep records for longer (retention.ms) than the job may be down; to go "
        f"on without them, set_fail_on_data_loss(False)"
    )
