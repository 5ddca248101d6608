"""A slot's half of the Kafka source: reads exactly the offsets that were planned.

Not every offset has a record. Transactions end with markers that take one, records of aborted transactions are left out,
and compaction removes some. So a range is over when a record at or behind its end has come, or when the broker says that it has
nothing more and how far that is (an "end of partition").
"""

from __future__ import annotations

import logging
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from firesteel.common.crashpoints import crash_point
from firesteel.connectors.base import CHUNK, Aside, Json, ReaderContext, SourceReader, Timestamped
from firesteel.connectors.kafka_client import (
    Properties,
    complaint,
    confluent_kafka,
    librdkafka_settings,
    make,
    reason,
)
from firesteel.connectors.kafka_enumerator import OUTAGE_S, data_gone
from firesteel.connectors.kafka_offsets import KafkaTopicPartition
from firesteel.errors import DataLossError, ExternalSystemError

log = logging.getLogger("firesteel")

Convert = Callable[[list[Any]], Iterator[Timestamped | Aside]]
"""From messages of one partition to records."""

_POLL_S = 0.2
_AHEAD = 4 * CHUNK
"""How many messages of a partition may wait for their turn."""


@dataclass
class _Cursor:
    """A partition that this slot reads, and what has come of it ahead of its turn."""

    partition: KafkaTopicPartition
    position: int
    waiting: list[Any] = field(default_factory=list)
    ended: int = -1  # the broker had nothing more behind this
    paused: bool = False

    def over(self, stop: int) -> bool:
        """Whether nothing before `stop` is yet to come."""
        if self.waiting:
            return bool(self.waiting[0].offset() >= stop)
        return max(self.position, self.ended) >= stop


class KafkaReader(SourceReader):
    """One consumer for all of the slot's partitions. It is told what to read and never joins a group."""

    def __init__(
        self, properties: Properties, convert: Convert, context: ReaderContext, *, fails_on_data_loss: bool
    ) -> None:
        self._kafka = confluent_kafka()
        self._convert, self._uid, self._fails_on_data_loss = convert, context.uid, fails_on_data_loss
        settings = {"isolation.level": "read_committed", **librdkafka_settings(properties)}
        settings |= {
            "group.id": settings.get("group.id", f"firesteel-{context.uid}"),
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "error_cb": self._on_error,
        }
        self._servers = settings["bootstrap.servers"]
        self._consumer = make(self._kafka.Consumer, settings)
        self._cursors: dict[tuple[str, int], _Cursor] = {}
        self._by_number: dict[int, _Cursor] = {}  # as many, unless a number is that of two topics
        self._trouble = ""

    def splits_of(self, planned: Json) -> Sequence[str]:
        return [str(KafkaTopicPartition(topic, number)) for topic, number, _, _ in planned["partitions"]]

    def read(self, planned: Json) -> Iterator[Timestamped | Aside]:
        """Chunk by chunk, the partitions taking turns, so that none of them runs far ahead of the others in time."""
        turns: deque[tuple[_Cursor, int]] = deque()
        for topic, number, start, stop in planned["partitions"]:
            turns.append((self._cursor(topic, number, start), stop))
        while turns:
            cursor, stop = turns.popleft()
            messages = self._take(cursor, stop)
            if not cursor.over(stop):
                turns.append((cursor, stop))
            else:
                cursor.position = stop
            for chunk in self._convert(messages) if messages else ():
                yield replace(chunk, split=str(cursor.partition)) if isinstance(chunk, Timestamped) else chunk
                crash_point("source-reading")

    def _cursor(self, topic: str, number: int, start: int) -> _Cursor:
        cursor = self._cursors.get((topic, number))
        if cursor is None or cursor.position != start:
            if cursor is not None:
                self._consumer.incremental_unassign([self._kafka.TopicPartition(topic, number)])
            cursor = self._cursors[topic, number] = _Cursor(KafkaTopicPartition(topic, number), start)
            self._consumer.incremental_assign([self._kafka.TopicPartition(topic, number, start)])
            self._by_number = {number: each for (_, number), each in self._cursors.items()}
        return cursor

    def _take(self, cursor: _Cursor, stop: int) -> list[Any]:
        """A chunk of messages before `stop`; the same ones whatever the network did."""
        taken: list[Any] = []
        waiting = cursor.waiting
        patience = time.monotonic() + OUTAGE_S
        while True:
            most = min(len(waiting), CHUNK - len(taken))
            if most and waiting[most - 1].offset() >= stop:
                most = bisect_left(waiting, stop, 0, most, key=self._kafka.Message.offset)
            taken += waiting[:most]
            del waiting[:most]
            if taken:
                cursor.position = taken[-1].offset() + 1
            if len(taken) == CHUNK or cursor.over(stop):
                return taken
            if self._fetch(cursor):
                patience = time.monotonic() + OUTAGE_S
            elif time.monotonic() > patience:
                raise ExternalSystemError(
                    f"source {self._uid!r} waits for {cursor.partition} at offset {cursor.position} of {stop}, and nothing "
                    f"came from Kafka at {self._servers} for {OUTAGE_S:g} s{self._trouble and ': ' + self._trouble}"
                )

    def _fetch(self, wanted: _Cursor) -> bool:
        """Take what has come, of whichever partition; whether it was anything."""
        if wanted.paused:
            self._consumer.resume([self._at(wanted)])
            wanted.paused = False
        first = self._consumer.poll(_POLL_S)  # consume() would wait for as many as it may take
        if first is None:
            return False
        messages = [first, *self._consumer.consume(CHUNK, 0)]
        if len(self._by_number) < len(self._cursors) or any(map(self._kafka.Message.error, messages)):
            for message in messages:
                cursor = self._cursors[message.topic(), message.partition()]
                if message.error() is None:
                    cursor.waiting.append(message)
                else:
                    self._on_partition_error(cursor, message)
        else:
            self._sort(messages)
        for cursor in self._cursors.values():
            if len(cursor.waiting) > _AHEAD and cursor is not wanted and not cursor.paused:
                self._consumer.pause([self._at(cursor)])
                cursor.paused = True
        return True

    def _sort(self, messages: list[Any]) -> None:
        """Records to their partitions, whose numbers are enough to tell them apart. Most often all are of one, since brokers
        send many of a partition together."""
        numbers = list(map(self._kafka.Message.partition, messages))
        different = set(numbers)
        for number in different:
            one = len(different) == 1
            mine = messages if one else [m for m, its in zip(messages, numbers, strict=True) if its == number]
            self._by_number[number].waiting += mine

    def _at(self, cursor: _Cursor) -> Any:
        return self._kafka.TopicPartition(cursor.partition.topic, cursor.partition.partition)

    # ---- what else may come than records

    def _on_partition_error(self, cursor: _Cursor, message: Any) -> None:
        error, codes = message.error(), self._kafka.KafkaError
        if error.code() == codes._PARTITION_EOF:
            cursor.ended = message.offset()
        elif error.code() in (codes._AUTO_OFFSET_RESET, codes.OFFSET_OUT_OF_RANGE):
            self._on_data_gone(cursor)
        elif error.retriable():
            self._trouble = reason(self._kafka.KafkaException(error))
        else:
            raise ExternalSystemError(
                f"source {self._uid!r} cannot read {cursor.partition} at offset {cursor.position} from Kafka at "
                f"{self._servers}: {error.name()}: {error.str()}"
            )

    def _on_data_gone(self, cursor: _Cursor) -> None:
        """librdkafka asks where to go on behind what it has given out. If the broker has that offset, then there."""
        first, end = self._consumer.get_watermark_offsets(self._at(cursor), timeout=OUTAGE_S) or (-1, -1)
        if first < 0 or end < 0:
            raise ExternalSystemError(f"Kafka at {self._servers} cannot tell the offsets of {cursor.partition} now")
        wanted = cursor.waiting[-1].offset() + 1 if cursor.waiting else cursor.position
        if wanted > end:
            raise DataLossError(
                f"source {self._uid!r} is told to read {cursor.partition} from offset {wanted}, and the partition ends at "
                f"{end}: its topic was made anew, or lost records"
            )
        if wanted < first:
            gone = data_gone(self._uid, cursor.partition, wanted, first)
            if self._fails_on_data_loss:
                raise gone
            log.warning("%s. The job goes on without them, as it was told to", str(gone).split(". ")[0])
            wanted = first
            if not cursor.waiting:
                cursor.position = first
        topic, number = cursor.partition.topic, cursor.partition.partition
        self._consumer.incremental_unassign([self._at(cursor)])
        self._consumer.incremental_assign([self._kafka.TopicPartition(topic, number, wanted)])

    def _on_error(self, error: Any) -> None:
        """Brokers out of reach, most of all: librdkafka goes on trying, and `_take` loses patience some time."""
        self._trouble = complaint(error) or self._trouble

    def close(self) -> None:
        self._consumer.close()
