"""Offsets of a consumer group, read and committed by somebody who never joins it.

Not with the admin client: librdkafka's requests to a group's coordinator abort the whole process when the broker goes away at
the wrong moment (https://github.com/confluentinc/librdkafka/issues/4605). A consumer asks the coordinator by another way.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from firesteel.connectors.kafka_client import confluent_kafka, make, reason
from firesteel.errors import ExternalSystemError

_TIMEOUT_S = 10.0
_POLL_S = 0.1


class GroupOffsets:
    """Those of one group. Used by one thread.

    :param settings: librdkafka's, without any that only a consumer has.
    :raises ExternalSystemError: by every method, when the coordinator cannot be reached or refuses.
    """

    def __init__(self, settings: Mapping[str, Any], group: str) -> None:
        self._kafka = confluent_kafka()
        self._group, self._servers = group, settings["bootstrap.servers"]
        self._answer: tuple[Any, Sequence[Any]] | None = None
        own = {"group.id": group, "enable.auto.commit": False, "on_commit": self._on_commit}
        self._consumer = make(self._kafka.Consumer, {**settings, **own})

    def committed(self, partitions: Sequence[Any]) -> list[Any]:
        """The partitions with what is committed, a negative offset where nothing is."""
        try:
            found: list[Any] = self._consumer.committed(list(partitions), timeout=_TIMEOUT_S)
        except self._kafka.KafkaException as error:
            raise self._failed("tell the offsets", reason(error)) from error
        self._check("tell the offsets", found)
        return found

    def commit(self, partitions: Sequence[Any]) -> Callable[[], None]:
        """Begin to commit; what is returned waits for the end of it, before which there must not be another."""
        self._answer = None
        try:
            self._consumer.commit(offsets=list(partitions), asynchronous=True)
        except self._kafka.KafkaException as error:
            raise self._failed("commit offsets", reason(error)) from error
        return self._wait

    def _on_commit(self, error: Any, partitions: Sequence[Any]) -> None:
        self._answer = error, partitions

    def _wait(self) -> None:
        deadline = time.monotonic() + _TIMEOUT_S
        while self._answer is None:
            self._consumer.poll(_POLL_S)
            if time.monotonic() > deadline:
                raise self._failed("commit offsets", f"no answer within {_TIMEOUT_S:g} s")
        error, partitions = self._answer
        if error is not None:
            raise self._failed("commit offsets", f"{error.name()}: {error.str()}")
        self._check("commit offsets", partitions)

    def _check(self, what: str, partitions: Sequence[Any]) -> None:
        for each in partitions:
            if each.error is not None:
                raise self._failed(what, str(each.error))

    def _failed(self, what: str, why: str) -> ExternalSystemError:
        return ExternalSystemError(f"Kafka at {self._servers} cannot {what} of group {self._group!r}: {why}")

    def close(self) -> None:
        self._consumer.close()
