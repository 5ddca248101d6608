"""A producer in a slot that never loses a record without saying so."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from firesteel.connectors.kafka_client import (
    Properties,
    complaint,
    confluent_kafka,
    librdkafka_settings,
    make,
    reason,
)
from firesteel.connectors.kafka_records import KafkaProducerRecord, KafkaRecordSerializationSchema
from firesteel.connectors.user_code import user_error
from firesteel.errors import ExternalSystemError, FiresteelError

_POLL_S = 0.1
_CALLBACKS = 1000
"""After how many records callbacks are looked at."""


class _Failures:
    """What did not arrive. Apart from the producer, which holds on to it: a cycle of both would outlive its last use."""

    def __init__(self) -> None:
        self.count = 0
        self.first = ""
        self.trouble = ""  # with brokers, which may pass

    def on_delivery(self, error: Any, message: Any) -> None:
        if error is not None:
            self.note(f"{message.topic()}: {error.name()}: {error.str()}")

    def on_error(self, error: Any) -> None:
        said = complaint(error)
        if error.fatal():
            self.note(said)
        else:
            self.trouble = said or self.trouble

    def note(self, what: str) -> None:
        self.count += 1
        self.first = self.first or what


class RecordProducer:
    """Sends records, and raises for those that did not arrive.

    :ivar client: the confluent-kafka producer.
    :ivar sent: how many were sent.
    """

    def __init__(
        self, properties: Properties, schema: KafkaRecordSerializationSchema, uid: str, **settings: Any
    ) -> None:
        self._kafka = confluent_kafka()
        self._schema, self._uid = schema, uid
        self._failures = _Failures()
        given = librdkafka_settings(properties)
        self._servers = given["bootstrap.servers"]
        self.sent = 0
        self.client = make(
            self._kafka.Producer,
            {
                "partitioner": "murmur2_random",  # keys go where those of Java's producers do
                "linger.ms": 5,
                "queue.buffering.max.messages": 500_000,
                **given,
                "delivery.report.only.error": True,
                "on_delivery": self._failures.on_delivery,
                "error_cb": self._failures.on_error,
                **settings,
            },
        )

    def send(self, values: Sequence[Any]) -> None:
        """Take records; some may still be on their way when this returns."""
        for start in range(0, len(values), _CALLBACKS):
            self._send(values[start : start + _CALLBACKS])
            self._serve(self.client.poll, 0)
        self.sent += len(values)
        self.check()

    def _send(self, values: Sequence[Any]) -> None:
        produce, messages, taken = self.client.produce, self._schema._plain_messages(values), 0
        if messages is None:
            produce, messages = self._produce_record, zip(map(self._schema.serialize, values))
        try:
            for message in messages:
                try:
                    produce(*message)
                except BufferError:
                    self._patiently(produce, message)
                taken += 1
            if taken < len(values):  # a StopIteration has ended the loop, and would take the records behind it along
                raise RuntimeError("the serializer raised StopIteration")
        except self._kafka.KafkaException as error:
            raise self.failed("write", reason(error)) from error
        except FiresteelError:
            raise
        except Exception as error:
            raise user_error(error, f"on the record {values[taken]!r:.500} of sink {self._uid!r}") from error

    def _produce_record(self, record: KafkaProducerRecord) -> None:
        arguments: dict[str, Any] = {}
        if record.headers is not None:
            arguments["headers"] = record.headers
        if record.timestamp is not None:
            arguments["timestamp"] = record.timestamp
        if record.partition is not None:
            arguments["partition"] = record.partition
        self.client.produce(record.topic, record.value, record.key, **arguments)

    def _patiently(self, produce: Callable[..., None], message: tuple[Any, ...]) -> None:
        """More than fits is on its way: wait until some has arrived."""
        while True:
            self._serve(self.client.poll, _POLL_S)
            self.check()
            try:
                return produce(*message)
            except BufferError:
                continue

    def _serve(self, call: Callable[[float], int], timeout_s: float) -> int:
        """Let callbacks come. A fatal error is raised right here, and on top of it whatever it made a callback do."""
        try:
            return call(timeout_s)
        except (self._kafka.KafkaException, SystemError) as error:
            raise self.failed("write", reason(error.__cause__ or error)) from error

    def deliver(self) -> None:
        """Wait until all records have arrived, for as long as `delivery.timeout.ms` lets them try."""
        while self._serve(self.client.flush, _POLL_S * 10):
            self.check()
        self.check()

    def check(self) -> None:
        if self._failures.count:
            raise self.failed(f"write {self._failures.count} records", self._failures.first)

    def failed(self, what: str, why: str) -> ExternalSystemError:
        trouble = self._failures.trouble
        also = f" ({trouble})" if trouble and trouble not in why else ""
        return ExternalSystemError(f"sink {self._uid!r} cannot {what} to Kafka at {self._servers}: {why}{also}")


def now_ms() -> int:
    return time.time_ns() // 1_000_000
