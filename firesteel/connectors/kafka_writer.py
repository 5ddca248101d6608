"""A slot's half of a Kafka sink without transactions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from firesteel.connectors.base import SinkWriter, WriterContext
from firesteel.connectors.kafka_client import Properties
from firesteel.connectors.kafka_producer import RecordProducer
from firesteel.connectors.kafka_records import KafkaRecordSerializationSchema

_CLOSE_S = 5.0


class KafkaWriter(SinkWriter):
    """Writes as records come. If it has to be sure of them, an epoch ends when all have arrived."""

    def __init__(
        self, properties: Properties, schema: KafkaRecordSerializationSchema, context: WriterContext, *, sure: bool
    ) -> None:
        self._sure = sure
        settings = {"enable.idempotence": True} if sure and "acks" not in properties else {}
        self._producer = RecordProducer(properties, schema, context.uid, **settings)

    def write(self, values: Sequence[Any]) -> None:
        self._producer.send(values)

    def flush(self) -> None:
        if self._sure:
            self._producer.deliver()
        else:
            self._producer.check()

    def close(self) -> None:
        self._producer.client.flush(0 if self._sure else _CLOSE_S)  # what is sure was delivered by flush()
