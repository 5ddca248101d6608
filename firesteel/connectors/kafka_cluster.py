"""What the driver asks a Kafka cluster: which partitions there are, how far they go, what a group has committed."""

from __future__ import annotations

import contextlib
import logging
import re
import time
from collections.abc import Callable, Iterable
from concurrent.futures import TimeoutError as TimedOut
from typing import Any, TypeVar

from firesteel.connectors.kafka_client import (
    Properties,
    complaint,
    confluent_kafka,
    librdkafka_settings,
    make,
    reason,
)
from firesteel.connectors.kafka_group import GroupOffsets
from firesteel.connectors.kafka_offsets import KafkaTopicPartition, Offsets
from firesteel.errors import ConfigurationError, ExternalSystemError

log = logging.getLogger("firesteel")

_T = TypeVar("_T")

_TIMEOUT_S = 10.0
_LOOK_S = 1.0
_NO_RECORD = -1
"""What the broker says when no record has the timestamp or a later one."""

_CONSUMER_ONLY = re.compile(
    r"group\..*|auto\.offset\.reset|enable\.auto\..*|auto\.commit\..*|isolation\.level|fetch\..*|max\.poll\..*|queued\..*"
    r"|session\.timeout\.ms|heartbeat\..*|enable\.partition\.eof|max\.partition\.fetch\.bytes|partition\.assignment.*|check\.crcs"
)


class _Complaints:
    """What librdkafka says by itself: why brokers do not answer."""

    def __init__(self, kafka: Any) -> None:
        self._refusals = (kafka.KafkaError._AUTHENTICATION, kafka.KafkaError._SSL)
        self._last, self._when = "", 0.0
        self.refusal = ""

    def on_error(self, error: Any) -> None:
        if said := complaint(error):
            self._last, self._when = said, time.monotonic()
        if error.code() in self._refusals:
            self.refusal = said

    def recent(self) -> str:
        return self._last if time.monotonic() - self._when < _TIMEOUT_S else ""


class KafkaCluster:
    """A connection of the driver's. Used by one thread.

    :raises ExternalSystemError: by every method, when the cluster cannot be reached or refuses.
    """

    def __init__(self, properties: Properties) -> None:
        self._kafka = confluent_kafka()
        settings = librdkafka_settings(properties)
        self._servers = settings["bootstrap.servers"]
        # stated by readers, unlike by librdkafka's own default, when a program gives none
        self._committed_only = settings.get("isolation.level", "read_committed") == "read_committed"
        self._settings = {key: value for key, value in settings.items() if not _CONSUMER_ONLY.fullmatch(key)}
        self._complaints = _Complaints(self._kafka)
        self._client = make(self._kafka.admin.AdminClient, {**self._settings, "error_cb": self._complaints.on_error})
        self._groups: dict[str, GroupOffsets] = {}

    def topics(self) -> dict[str, list[int]]:
        """All topics that this user may see, with the numbers of their partitions."""
        deadline = time.monotonic() + _TIMEOUT_S
        while True:
            try:
                listed = self._client.list_topics(timeout=_LOOK_S).topics
                break
            except self._kafka.KafkaException as error:
                self._client.poll(0)  # lets complaints come
                if self._complaints.refusal or time.monotonic() > deadline:
                    raise self._failed("list topics", error) from error
        return {name: sorted(topic.partitions) for name, topic in listed.items() if topic.partitions}

    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        """What tells a topic from another of the same name that came after it; not of brokers before Kafka 3."""
        names = list(topics)
        asked = (
            self._client.describe_topics(self._kafka.TopicCollection(names), request_timeout=_TIMEOUT_S)
            if names
            else {}
        )
        described = {name: self._result(f"describe the topic {name}", future.result) for name, future in asked.items()}
        return {name: str(topic.topic_id) for name, topic in described.items() if topic.topic_id is not None}

    def earliest(self, partitions: Iterable[KafkaTopicPartition]) -> dict[KafkaTopicPartition, int]:
        return self._offsets(partitions, self._kafka.admin.OffsetSpec.earliest())

    def latest(self, partitions: Iterable[KafkaTopicPartition]) -> dict[KafkaTopicPartition, int]:
        """Where each ends now: before the first open transaction, unless uncommitted records are read too."""
        return self._offsets(partitions, self._kafka.admin.OffsetSpec.latest())

    def at_time(self, partitions: Iterable[KafkaTopicPartition], time_ms: int) -> dict[KafkaTopicPartition, int]:
        found = self._offsets(partitions, self._kafka.admin.OffsetSpec.for_timestamp(time_ms), _NO_RECORD)
        return found | self.latest(each for each, offset in found.items() if offset == _NO_RECORD)

    def _offsets(
        self, partitions: Iterable[KafkaTopicPartition], spec: Any, least: int = 0
    ) -> dict[KafkaTopicPartition, int]:
        wanted = {self._kafka.TopicPartition(each.topic, each.partition): each for each in partitions}
        if not wanted:
            return {}
        levels = self._kafka.IsolationLevel
        asked = self._client.list_offsets(
            dict.fromkeys(wanted, spec),
            isolation_level=levels.READ_COMMITTED if self._committed_only else levels.READ_UNCOMMITTED,
            request_timeout=_TIMEOUT_S,
        )
        return {wanted[each]: self._offset(wanted[each], future.result, least) for each, future in asked.items()}

    def _offset(self, partition: KafkaTopicPartition, result: Callable[[float], Any], least: int) -> int:
        offset: int = self._result(f"tell the offsets of {partition}", result).offset
        if offset < least:  # librdkafka's mark for none at all, which it may give for a broker that is going down
            raise ExternalSystemError(f"Kafka at {self._servers} cannot tell the offsets of {partition} now")
        return offset

    def committed(self, group: str, partitions: Iterable[KafkaTopicPartition]) -> dict[KafkaTopicPartition, int]:
        """What the group has committed; partitions without are left out."""
        wanted = [self._kafka.TopicPartition(each.topic, each.partition) for each in partitions]
        found = self._offsets_of(group).committed(wanted) if wanted else []
        return {KafkaTopicPartition(each.topic, each.partition): each.offset for each in found if each.offset >= 0}

    def commit(self, group: str, offsets: Offsets) -> Callable[[], None]:
        """Begin to commit for a group; what is returned waits for the end of it, before which there must not be another."""
        return self._offsets_of(group).commit(
            [self._kafka.TopicPartition(each.topic, each.partition, offset) for each, offset in offsets.items()]
        )

    def _offsets_of(self, group: str) -> GroupOffsets:
        if group not in self._groups:
            self._groups[group] = GroupOffsets(self._settings, group)
        return self._groups[group]

    def close(self) -> None:
        for group in self._groups.values():
            group.close()
        self._groups = {}

    def _result(self, what: str, result: Callable[[float], _T]) -> _T:
        try:
            return result(_TIMEOUT_S + 5)
        except (self._kafka.KafkaException, TimedOut) as error:
            self._look_anew(error)
            raise self._failed(what, error) from error

    def _look_anew(self, error: Exception) -> None:
        """Whoever leads a partition now, and since when, is not asked for again by librdkafka's admin client on its own: it
        would go on asking as if nothing had changed, and be refused."""
        codes = self._kafka.KafkaError
        outdated = (codes.FENCED_LEADER_EPOCH, codes.UNKNOWN_LEADER_EPOCH, codes.NOT_LEADER_FOR_PARTITION)
        if isinstance(error, self._kafka.KafkaException) and error.args[0].code() in outdated:
            with contextlib.suppress(self._kafka.KafkaException):
                self._client.list_topics(timeout=_LOOK_S)

    def _failed(self, what: str, error: Exception) -> ExternalSystemError:
        self._client.poll(0)
        said = self._complaints.recent()
        return ExternalSystemError(f"Kafka at {self._servers} cannot {what}: {reason(error)}{said and f' ({said})'}")

    @property
    def refusal(self) -> str:
        """Why brokers do not let this user in, or are not trusted; empty if that is not known to be so."""
        return self._complaints.refusal


def first_look(properties: Properties, what: str) -> dict[str, list[int]] | None:
    """The topics there are, asked for before a job starts; None if no broker answers, which may pass.

    :param what: whose brokers they are.
    :raises ConfigurationError: they do not let this user in, or are not trusted.
    """
    cluster = KafkaCluster(properties)
    try:
        return cluster.topics()
    except ExternalSystemError as error:
        if cluster.refusal:
            raise ConfigurationError(
                f"{what}: Kafka at {properties['bootstrap.servers']} is not to be connected to: {cluster.refusal}. Check "
                f"security.protocol and the properties that start with sasl. and ssl."
            ) from error
        log.warning("%s: the job starts without having seen its brokers: %s", what, error)
        return None
