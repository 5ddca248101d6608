"""A slot's half of the exactly-once Kafka sink.

1. `write` begins a transaction with the first record after a barrier. The slot closes: it is aborted. It is killed: the next
   incarnation's sweep fences it.
2. `prepare_commit` describes it, `persist` waits until all of it is in Kafka's log, and so does the first record after it. The
   job rolls back: the driver aborts it, or the next incarnation's sweep does.
3. The checkpoint is complete: the driver commits it in the producer's name. From then on the id is free again.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from firesteel.common.crashpoints import crash_point
from firesteel.connectors.base import Json, SinkWriter, WriterContext
from firesteel.connectors.kafka_client import Properties
from firesteel.connectors.kafka_records import KafkaRecordSerializationSchema
from firesteel.connectors.kafka_transaction import Making, Transaction, TransactionalIds
from firesteel.errors import FiresteelError

log = logging.getLogger("firesteel")


class TransactionalWriter(SinkWriter):
    """One transaction from barrier to barrier, and none when there are no records."""

    def __init__(
        self,
        properties: Properties,
        schema: KafkaRecordSerializationSchema,
        context: WriterContext,
        *,
        prefix: str,
        timeout_ms: int,
    ) -> None:
        self._uid = context.uid
        self._ids = TransactionalIds(prefix, context)
        self._arguments = (properties, schema, context.uid, timeout_ms)
        self._open: Transaction | None = None
        self._next = self._prepare_next()
        self._prepared: dict[str, Transaction] = {}  # until all of it has arrived
        self._unconfirmed: list[tuple[int | None, str]] = []  # the checkpoint of an id's last transaction
        self._completed = -1

    def _prepare_next(self) -> Making:
        name, (properties, schema, uid, timeout_ms) = self._ids.take(), self._arguments
        return Making(lambda: Transaction(properties, schema, uid, name, timeout_ms))

    def write(self, values: Sequence[Any]) -> None:
        if not values:
            return
        if self._open is None:
            # Producers do not wait for each other: records of this one could come before what the last has yet to send.
            for transaction in tuple(self._prepared.values()):
                transaction.deliver()
            self._open = self._next.result()
        self._open.send(values)
        crash_point("kafka-mid-transaction")

    def prepare_commit(self) -> list[Json]:
        self._free_ids()
        transaction = self._open
        if transaction is None:
            return []
        self._open = None  # from here on it is the committer's to abort
        self._prepared[transaction.name] = transaction
        self._unconfirmed.append((None, transaction.name))
        self._next = self._prepare_next()
        return [transaction.describe()]

    def persist(self, committables: Sequence[Json]) -> None:
        for committable in committables:
            self._prepared[committable["id"]].deliver()
            crash_point("kafka-after-flush")
            del self._prepared[committable["id"]]

    # ---- when an id is free

    def snapshot_state(self, context: Any) -> None:
        checkpoint = context.get_checkpoint_id()
        self._unconfirmed = [(checkpoint if n is None else n, name) for n, name in self._unconfirmed]

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Complete, but perhaps not committed yet."""
        self._completed = max(self._completed, checkpoint_id)

    def _free_ids(self) -> None:
        """A barrier is ordered only when the checkpoint before is done with: committed and confirmed if it is complete. If it
        was dropped, the next one that is complete commits its transactions too."""
        waiting = []
        for checkpoint, name in self._unconfirmed:
            if checkpoint is not None and checkpoint <= self._completed:
                self._ids.give_back(name)
            else:
                waiting.append((checkpoint, name))
        self._unconfirmed = waiting

    def close(self) -> None:
        opened, self._open = self._open, None
        if opened is not None:
            try:
                opened.abort()
            except FiresteelError as error:  # the slot ends for another reason; the next incarnation sweeps it
                log.warning("%s", error)
