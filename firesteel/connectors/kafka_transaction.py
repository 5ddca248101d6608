"""A Kafka transaction that is begun in a slot and ended by the driver.

A transaction belongs to a transactional id, and to the producer id and epoch that the broker gave for it. Whoever knows all
three can end it. librdkafka tells the latter two in its statistics only.
"""

from __future__ import annotations

import contextlib
import json
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from firesteel.connectors.base import CommitterContext, Json, WriterContext
from firesteel.connectors.kafka_client import Properties, confluent_kafka, reason
from firesteel.connectors.kafka_producer import RecordProducer, now_ms
from firesteel.connectors.kafka_records import KafkaRecordSerializationSchema
from firesteel.connectors.kafka_transactions import TransactionInfo
from firesteel.connectors.part_names import short_hash
from firesteel.errors import ConfigurationError, ExternalSystemError

_INIT_S = 60.0
_ABORT_S = 5.0
_STATISTICS_MS = 50
_NAME = re.compile(r"(.*)-([0-9a-f]{16})-([0-9a-f]{16})-(\d+)-(\d+)-([0-9a-f]{8})-(\d+)", re.DOTALL)


@dataclass(frozen=True)
class TransactionalId:
    """Whose transactions they are. The token is of one writer: no two attempts ever share an id, for the later one's start
    would abort what the earlier one has prepared."""

    prefix: str
    job: str
    sink: str
    incarnation: int
    subtask: int
    token: str
    number: int

    def __str__(self) -> str:
        counters = f"{self.incarnation}-{self.subtask}-{self.token}-{self.number}"
        return f"{self.prefix}-{self.job}-{self.sink}-{counters}"

    @staticmethod
    def parse(name: str) -> TransactionalId | None:
        """None: not one of ours."""
        match = _NAME.fullmatch(name)
        if match is None:
            return None
        prefix, job, sink, incarnation, subtask, token, number = match.groups()
        return TransactionalId(prefix, job, sink, int(incarnation), int(subtask), token, int(number))


def id_prefix(prefix: str, context: WriterContext | CommitterContext) -> str:
    """What the transactional ids of all incarnations of a sink start with."""
    return f"{prefix}-{short_hash(context.job_id)}-{short_hash(context.uid)}-"


class TransactionalIds:
    """A writer's own ids. One is used again only when its last commit is confirmed, so that a handful is enough for ever:
    a new one for each checkpoint would stay with the broker for a week."""

    def __init__(self, prefix: str, context: WriterContext) -> None:
        self._prefix, self._context = prefix, context
        self._token = uuid.uuid4().hex[:8]
        self._free: list[str] = []
        self._made = 0

    def take(self) -> str:
        if self._free:
            return self._free.pop(0)
        self._made += 1
        context = self._context
        job, sink = short_hash(context.job_id), short_hash(context.uid)
        return str(
            TransactionalId(self._prefix, job, sink, context.incarnation, context.subtask, self._token, self._made)
        )

    def give_back(self, name: str) -> None:
        self._free.append(name)


class _Identity:
    """The producer id and epoch, as soon as statistics tell them. It knows nothing of the producer: see `_Failures`."""

    def __init__(self) -> None:
        self.known: tuple[int, int] | None = None

    def on_statistics(self, text: str) -> None:
        if self.known is None:
            eos = json.loads(text)["eos"]
            if eos["producer_id"] >= 0 and eos["txn_state"] in ("Ready", "InTransaction"):
                self.known = (eos["producer_id"], eos["producer_epoch"])


class Transaction:
    """From the first record after a barrier to the barrier. Never closed, which would abort it: only dropped."""

    def __init__(
        self,
        properties: Properties,
        schema: KafkaRecordSerializationSchema,
        uid: str,
        name: str,
        timeout_ms: int,
    ) -> None:
        """Ready to begin: the broker has fenced whoever used the id before, and said who we are."""
        self.name, self._timeout_ms = name, timeout_ms
        self._begun_ms: int | None = None
        self._identity = _Identity()
        self._producer = RecordProducer(
            properties,
            schema,
            uid,
            **{
                "transactional.id": name,
                "transaction.timeout.ms": timeout_ms,
                "statistics.interval.ms": _STATISTICS_MS,
                "stats_cb": self._identity.on_statistics,
            },
        )
        deadline = time.monotonic() + _INIT_S
        self._do(f"start the transactional id {name}", lambda client: client.init_transactions(_INIT_S))
        while self._identity.known is None:
            self._producer.client.poll(_STATISTICS_MS / 1000)
            if time.monotonic() > deadline:
                raise self._producer.failed(f"learn the producer id of {name}", "librdkafka gives no statistics of it")

    def send(self, values: Sequence[Any]) -> None:
        if self._begun_ms is None:
            self._begun_ms = now_ms()
            self._do(f"begin a transaction of {self.name}", lambda client: client.begin_transaction())
        with self._explained():
            self._producer.send(values)

    def deliver(self) -> None:
        """Everything is in Kafka's log when this returns: the transaction is prepared."""
        with self._explained():
            self._producer.deliver()

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """To a producer whose transaction has timed out the broker says that somebody else uses its id."""
        try:
            yield
        except ExternalSystemError as error:
            age_ms = now_ms() - (self._begun_ms or now_ms())
            if age_ms < self._timeout_ms:
                raise
            raise ExternalSystemError(
                f"{error}. The transaction began {age_ms} ms before, and its timeout is {self._timeout_ms} ms: take "
                f"checkpoints more often, or set a longer transaction.timeout.ms"
            ) from error

    def describe(self) -> Json:
        """All that the driver needs to end it."""
        assert self._identity.known is not None
        producer_id, epoch = self._identity.known
        return {
            "id": self.name,
            "producer": producer_id,
            "epoch": epoch,
            "records": self._producer.sent,
            "begun_ms": self._begun_ms,
            "timeout_ms": self._timeout_ms,
        }

    def abort(self) -> None:
        """
        :raises ExternalSystemError: it stays open until the broker's timeout, or until somebody sweeps it.
        """
        self._do(f"abort {self.name}", lambda client: client.abort_transaction(_ABORT_S))

    def _do(self, what: str, call: Callable[[Any], None]) -> None:
        try:
            call(self._producer.client)
        except confluent_kafka().KafkaException as error:
            if error.args[0].name() == "INVALID_TRANSACTION_TIMEOUT":
                raise too_long(self._timeout_ms) from error
            raise self._producer.failed(what, reason(error)) from error


def too_long(timeout_ms: int, cap_ms: int | None = None) -> ConfigurationError:
    allowed = f"{cap_ms}" if cap_ms is not None else "less"
    return ConfigurationError(
        f"transaction.timeout.ms is {timeout_ms}, and the brokers allow {allowed} (their transaction.max.timeout.ms): ask for "
        f"less, or have them allow more. It must outlast the time between two checkpoints and the longest outage of the job"
    )


def as_info(committable: Json) -> TransactionInfo:
    return TransactionInfo(committable["id"], committable["producer"], "", committable["epoch"])


class Making:
    """The next transaction, made ready while the slot is busy with other things: brokers take their time."""

    def __init__(self, make: Callable[[], Transaction]) -> None:
        self._made: Future[Transaction] = Future()
        threading.Thread(target=self._run, args=(make,), name="kafka-transaction", daemon=True).start()

    def _run(self, make: Callable[[], Transaction]) -> None:
        try:
            self._made.set_result(make())
        except BaseException as error:  # noqa: BLE001  raised where the transaction is wanted
            self._made.set_exception(error)

    def result(self) -> Transaction:
        return self._made.result()
