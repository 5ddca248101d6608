"""The driver's half of the exactly-once Kafka sink: ends transactions in the names of the producers that began them.

Why a commit is refused, and what that means:

* The transaction is committed already (by us, before a crash): the coordinator has it in that state, with the same producer
  and epoch. Fine.
* Anything else (it has timed out, or somebody has used its id): its records can never become visible. After the checkpoint is
  complete that is a loss, and said so; before, `check` finds it, and the job goes back and writes them again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from firesteel.common.crashpoints import crash_point
from firesteel.connectors.base import CommitterContext, Json, NumberedCommitter
from firesteel.connectors.kafka_client import Properties
from firesteel.connectors.kafka_producer import now_ms
from firesteel.connectors.kafka_transaction import TransactionalId, as_info, id_prefix
from firesteel.connectors.kafka_transactions import COMMITTING, ONGOING, TransactionAdmin, TransactionInfo
from firesteel.errors import CheckpointError, DataLossError, ExternalSystemError

log = logging.getLogger("firesteel")

_T = TypeVar("_T")

_PATIENCE_S = 15.0
_PAUSE_S = 0.2
_SWEEP_S = 5.0
_LATE = 0.5
"""A transaction that is committed after this part of its timeout is worth a warning."""


class TransactionCommitter(NumberedCommitter):
    """Used by one thread at a time. Connects when there is something to do."""

    def __init__(
        self,
        properties: Properties,
        context: CommitterContext,
        *,
        prefix: str,
        gives_up_lost: bool,
        connect: Callable[[Properties], TransactionAdmin] = TransactionAdmin,
    ) -> None:
        self._properties, self._context, self._connect = properties, context, connect
        self._prefix = id_prefix(prefix, context)
        self._gives_up_lost = gives_up_lost
        self._admin: TransactionAdmin | None = None
        self._swept: float | None = None
        self._put_off: Sequence[Json] | None = (
            None  # what the last sweep had to keep, if it came too soon after the one before
        )

    def check(self, committables: Sequence[Json]) -> None:
        """Every transaction must be open, be of the writer that described it, and stay so for long enough."""
        found = self._patiently(lambda admin: admin.describe(each["id"] for each in committables))
        for each in committables:
            info = found.get(each["id"])
            if info is None or info.state != ONGOING or not _same(info, each):
                raise CheckpointError(
                    f"sink {self._context.uid!r}: {_shown(each)} cannot be committed any more: {_state(info)}. The "
                    f"checkpoint is not completed, and the job goes back to the one before"
                )
            left_ms = each["begun_ms"] + each["timeout_ms"] - now_ms()
            if left_ms < each["timeout_ms"] / 10:
                raise CheckpointError(
                    f"sink {self._context.uid!r}: {_shown(each)} has {left_ms} ms left of its timeout of {each['timeout_ms']} "
                    f"ms, too little to commit it safely. Take checkpoints more often, or set a longer transaction.timeout.ms"
                )

    def commit_checkpoint(self, checkpoint: int, committables: Sequence[Json]) -> None:
        crash_point("kafka-before-first-commit")
        by_id = {each["id"]: each for each in committables}
        for name, each in by_id.items():
            age_ms = now_ms() - each["begun_ms"]
            if age_ms > each["timeout_ms"] * _LATE:
                log.warning(
                    "sink %s commits the transaction %s %d ms after it began, and its timeout is %d ms",
                    self._context.uid, name, age_ms, each["timeout_ms"],
                )  # fmt: skip
        refused = self._do(lambda admin: admin.end([as_info(each) for each in committables], commit=True))
        if not refused:
            crash_point("kafka-after-commits")
            return
        now = self._do(lambda admin: admin.describe(refused))
        lost = {
            name: f"{_shown(by_id[name])}: {refused[name]}, {_state(now.get(name))}"
            for name in refused
            if not _committed(now.get(name), by_id[name])
        }
        if lost:
            self._on_loss(checkpoint, lost, sum(by_id[name]["records"] for name in lost))

    def _on_loss(self, checkpoint: int, lost: dict[str, str], records: int) -> None:
        text = (
            f"sink {self._context.uid!r} cannot commit {len(lost)} transactions of checkpoint {checkpoint}, which is complete: "
            f"{records} records are not in Kafka and never will be. {'; '.join(lost.values())}"
        )
        if not self._gives_up_lost:
            raise DataLossError(
                f"{text}. Most likely the job was down for longer than transaction.timeout.ms. Start from an older checkpoint "
                f"to write them again (with those after them), or call ignore_failures_after_transaction_timeout() on the sink "
                f"to go on without them"
            )
        log.error("%s. They are given up, as the sink was told to", text)

    def abort(self, committables: Sequence[Json]) -> None:
        """Refused means that it is aborted already, or committed: an abort never touches that."""
        self._do(lambda admin: admin.end([as_info(each) for each in committables], commit=False))

    def sweep(self, keep: Sequence[Json]) -> None:
        """Fence what older incarnations have open. One open transaction hides everything behind it from readers, so this
        is done again and again, for writers that do not know yet that they are dead."""
        if self._swept is not None and time.monotonic() - self._swept < _SWEEP_S:
            self._put_off = keep
            return
        self._put_off = None
        try:
            self._do(lambda admin: self._sweep(admin, {each["id"] for each in keep}))
        except ExternalSystemError as error:
            log.warning(
                "sink %s could not look for open transactions of older incarnations: %s", self._context.uid, error
            )
        else:
            self._swept = time.monotonic()

    def _sweep(self, admin: TransactionAdmin, keep: set[str]) -> None:
        left = []
        for info in admin.list_transactions(self._prefix, (ONGOING,)):
            name = TransactionalId.parse(info.transactional_id)
            if name is not None and name.incarnation < self._context.incarnation and str(name) not in keep:
                left.append(str(name))
        if left:
            admin.fence(left)
            log.info("sink %s aborted %d transactions of older incarnations", self._context.uid, len(left))

    # ---- the connection

    def _do(self, request: Callable[[TransactionAdmin], _T]) -> _T:
        try:
            if self._admin is None:
                self._admin = self._connect(self._properties)
            return request(self._admin)
        except ExternalSystemError:
            self._disconnect()  # brokers may have moved; the next attempt looks for them anew
            raise

    def _patiently(self, request: Callable[[TransactionAdmin], _T]) -> _T:
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            try:
                return self._do(request)
            except ExternalSystemError:
                if time.monotonic() > deadline:
                    raise
                threading.Event().wait(_PAUSE_S)

    def close(self) -> None:
        """A job that ends sweeps once more: what a dead writer began since the last time would hide what is behind it until
        its timeout. Not if there is no connection at the moment, since somebody may wait for this to restart."""
        if self._put_off is not None and self._admin is not None:
            self._swept = None
            self.sweep(self._put_off)
        self._disconnect()

    def _disconnect(self) -> None:
        admin, self._admin = self._admin, None
        if admin is not None:
            admin.close()


def _same(info: TransactionInfo, committable: Json) -> bool:
    return (info.producer_id, info.epoch) == (committable["producer"], committable["epoch"])


def _committed(info: TransactionInfo | None, committable: Json) -> bool:
    return info is not None and info.state in COMMITTING and _same(info, committable)


def _shown(committable: Json) -> str:
    return (
        f"transaction {committable['id']} (producer {committable['producer']}, epoch {committable['epoch']}, "
        f"{committable['records']} records)"
    )


def _state(info: TransactionInfo | None) -> str:
    if info is None:
        return "the broker does not know it"
    return f"now it is in state {info.state}, of producer {info.producer_id} and epoch {info.epoch}"
