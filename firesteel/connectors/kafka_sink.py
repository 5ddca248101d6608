"""Writing to Kafka: as often as it takes, or exactly once with transactions."""

from __future__ import annotations

import copy
from typing import Any

from firesteel.connectors.base import (
    CommitterContext,
    NumberedCommitter,
    PrepareContext,
    Sink,
    SinkWriter,
    WriterContext,
)
from firesteel.connectors.guarantee import DeliveryGuarantee
from firesteel.connectors.kafka_cluster import first_look
from firesteel.connectors.kafka_committer import TransactionCommitter
from firesteel.connectors.kafka_records import KafkaRecordSerializationSchema
from firesteel.connectors.kafka_transaction import too_long
from firesteel.connectors.kafka_transactional_writer import TransactionalWriter
from firesteel.connectors.kafka_transactions import TransactionAdmin
from firesteel.connectors.kafka_writer import KafkaWriter
from firesteel.errors import ConfigurationError

_TIMEOUT_MS = 15 * 60 * 1000
"""What brokers allow unless they are told otherwise."""

_LONGEST_TIMEOUT_MS = 60 * 60 * 1000


class KafkaSink(Sink):
    """Messages in Kafka topics. Made by `KafkaSink.builder()`.

    NONE: written as they come, nobody waits. AT_LEAST_ONCE: an epoch waits until all its messages have arrived; after a
    failure some come again. EXACTLY_ONCE: written in transactions that are committed with the checkpoint, so readers with
    `isolation.level=read_committed` see each record once, and not before its checkpoint is complete.
    """

    def __init__(
        self,
        properties: dict[str, str],
        schema: KafkaRecordSerializationSchema,
        delivery_guarantee: DeliveryGuarantee,
        transactional_id_prefix: str,
    ) -> None:
        self.properties = properties
        self.schema = schema
        self.transactional_id_prefix = transactional_id_prefix
        self._guarantee = delivery_guarantee
        self._timeout_ms = int(properties.get("transaction.timeout.ms", _TIMEOUT_MS))
        self._gives_up_lost = False

    @staticmethod
    def builder() -> KafkaSinkBuilder:
        """Collect the settings of one."""
        return KafkaSinkBuilder()

    @property
    def guarantee(self) -> DeliveryGuarantee:
        return self._guarantee

    def ignore_failures_after_transaction_timeout(self) -> KafkaSink:
        """Go on when a transaction of a complete checkpoint has expired: its records are lost, and an error is logged."""
        self._gives_up_lost = True
        return self

    def prepare(self, context: PrepareContext) -> Sink:
        """Say what is wrong before anything has started: no such topic, brokers that refuse, or a timeout that they refuse.
        Brokers that do not answer may still come."""
        topic = self.schema.topic()
        properties = {**self.properties, "client.id": self.properties.get("client.id", "firesteel")}
        there = first_look(properties, f"sink {context.uid!r}")
        if there is None:
            return self
        if topic is not None and topic not in there:
            raise ConfigurationError(
                f"sink {context.uid!r} is to write to the topic {topic!r}, which is not in the cluster, or not for this user"
            )
        if self._guarantee is not DeliveryGuarantee.EXACTLY_ONCE:
            return self
        with TransactionAdmin(self.properties) as admin:
            cap_ms = admin.longest_timeout_ms()
        prepared = copy.copy(self)
        if cap_ms is not None and "transaction.timeout.ms" not in self.properties:
            prepared._timeout_ms = min(cap_ms, _LONGEST_TIMEOUT_MS)
        if cap_ms is not None and prepared._timeout_ms > cap_ms:
            raise too_long(prepared._timeout_ms, cap_ms)
        return prepared

    def create_writer(self, context: WriterContext) -> SinkWriter:
        if self._guarantee is not DeliveryGuarantee.EXACTLY_ONCE:
            sure = self._guarantee is DeliveryGuarantee.AT_LEAST_ONCE
            return KafkaWriter(self.properties, self.schema, context, sure=sure)
        return TransactionalWriter(
            self.properties,
            self.schema,
            context,
            prefix=self.transactional_id_prefix,
            timeout_ms=self._timeout_ms,
        )

    def create_committer(self, context: CommitterContext) -> NumberedCommitter | None:
        if self._guarantee is not DeliveryGuarantee.EXACTLY_ONCE:
            return None
        return TransactionCommitter(
            self.properties, context, prefix=self.transactional_id_prefix, gives_up_lost=self._gives_up_lost
        )


class KafkaSinkBuilder:
    """Collects the settings of a KafkaSink: brokers and a serializer at least."""

    def __init__(self) -> None:
        self._properties: dict[str, str] = {}
        self._guarantee = DeliveryGuarantee.NONE
        self._prefix = "firesteel"
        self._schema: KafkaRecordSerializationSchema | None = None

    def set_bootstrap_servers(self, bootstrap_servers: str) -> KafkaSinkBuilder:
        return self.set_property("bootstrap.servers", bootstrap_servers)

    def set_delivery_guarantee(self, delivery_guarantee: DeliveryGuarantee) -> KafkaSinkBuilder:
        """NONE unless it is set, as in Flink."""
        if not isinstance(delivery_guarantee, DeliveryGuarantee):
            raise ConfigurationError(f"a DeliveryGuarantee is needed, not {delivery_guarantee!r:.200}")
        self._guarantee = delivery_guarantee
        return self

    def set_transactional_id_prefix(self, transactional_id_prefix: str) -> KafkaSinkBuilder:
        """What transactional ids start with, for rules about who may use which. Job and sink are part of an id anyway, so
        it need not tell jobs apart."""
        if not transactional_id_prefix:
            raise ConfigurationError("a prefix of transactional ids has at least one character")
        self._prefix = transactional_id_prefix
        return self

    def set_record_serializer(self, record_serializer: KafkaRecordSerializationSchema) -> KafkaSinkBuilder:
        if not isinstance(record_serializer, KafkaRecordSerializationSchema):
            raise ConfigurationError(
                f"set_record_serializer() takes a KafkaRecordSerializationSchema, not {record_serializer!r:.200}"
            )
        self._schema = record_serializer
        return self

    def set_property(self, key: str, value: Any) -> KafkaSinkBuilder:
        """A property of Kafka's producer."""
        if key == "transactional.id":
            raise ConfigurationError("transactional ids are made by the sink: set_transactional_id_prefix(...)")
        self._properties[key] = str(value)
        return self

    def build(self) -> KafkaSink:
        """
        :raises ConfigurationError: there are no brokers, or no serializer.
        """
        if "bootstrap.servers" not in self._properties:
            raise ConfigurationError("a KafkaSink needs brokers: set_bootstrap_servers(...)")
        if self._schema is None:
            raise ConfigurationError("a KafkaSink needs a serializer: set_record_serializer(...)")
        return KafkaSink(dict(self._properties), self._schema, self._guarantee, self._prefix)
