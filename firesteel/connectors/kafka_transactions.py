"""Transactions from outside of the producer that began them: list, describe, commit, abort, fence.

This is the one home of kafka-python, and uses parts of it that are not public (its version is pinned for that). Facts that
the code rests on, found on a real broker:

* EndTxn up to version 3 ends a transaction in the name of its producer, and can be repeated. Version 5 bumps the epoch and
  must not be mixed with others for one transaction; on a broker whose `transaction.version` is 0 it wedges it.
* OK to a commit means that the decision is in the coordinator's log. Readers see it a moment later.
* InitProducerId on somebody's id aborts what it has open and makes all its later requests fail.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from firesteel.connectors.kafka_client import Properties, kafka_python, kafka_python_settings
from firesteel.errors import ConfigurationError, ExternalSystemError

ONGOING = "Ongoing"
COMMITTING = ("PrepareCommit", "CompleteCommit")

_END_TXN_VERSION = 3
_BOOTSTRAP_MS = 10_000
_REQUEST_MS = 20_000
_FENCING_TIMEOUT_MS = 60_000
_CONCURRENT_S, _CONCURRENT_PAUSE_S = 5.0, 0.02


@dataclass(frozen=True)
class TransactionInfo:
    """A transactional id as its coordinator knows it. Epoch, times and partitions are not in a list."""

    transactional_id: str
    producer_id: int
    state: str
    epoch: int = -1
    timeout_ms: int = -1
    started_ms: int = -1
    partitions: tuple[tuple[str, int], ...] = ()


class RefusedError(Exception):
    """The coordinator will never do this: the transaction is not in that state, or not this producer's."""


class TransactionAdmin:
    """A connection to the coordinators of a cluster's transactions. After an error it is best made anew."""

    def __init__(self, properties: Properties) -> None:
        self._kafka = kafka_python()
        self._servers = properties["bootstrap.servers"]
        with self._complaints("connect"):
            self._client = self._kafka.admin.KafkaAdminClient(
                **kafka_python_settings(properties),
                bootstrap_timeout_ms=_BOOTSTRAP_MS,
                request_timeout_ms=_REQUEST_MS,
            )
        errors = self._kafka.errors
        self._refusals = (
            errors.ProducerFencedError,
            errors.InvalidProducerEpochError,
            errors.InvalidTxnStateError,
            errors.InvalidProducerIdMappingError,
        )

    def __enter__(self) -> TransactionAdmin:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self._client.close()

    # ---- looking

    def list_transactions(self, prefix: str = "", states: Sequence[str] = ()) -> list[TransactionInfo]:
        """The transactional ids that start with this; with `states` only those in one of them."""
        with self._complaints("list transactions"):
            by_broker = self._client.list_transactions(state_filters=list(states) or None)
        return sorted(
            (
                TransactionInfo(each.transactional_id, each.producer_id, str(each.state.value))
                for listed in by_broker.values()
                for each in listed
                if each.transactional_id.startswith(prefix)
            ),
            key=lambda info: info.transactional_id,
        )

    def describe(self, ids: Iterable[str]) -> dict[str, TransactionInfo]:
        """What is known of these. An id that no coordinator knows is left out."""
        from kafka.protocol.admin.transactions import DescribeTransactionsRequest

        def request(ids: list[str]) -> Any:
            return DescribeTransactionsRequest(transactional_ids=ids)

        found: dict[str, TransactionInfo] = {}
        not_found = self._kafka.errors.TransactionalIdNotFoundError
        with self._complaints("describe transactions"):
            for response in self._client._manager.run(self._send_each, list(ids), lambda each: request([each])):
                for each in response.transaction_states:
                    error = self._kafka.errors.for_code(each.error_code)
                    if error is self._kafka.errors.NoError:
                        found[each.transactional_id] = _described(each)
                    elif error is not not_found:
                        raise error(each.transactional_id)
        return found

    def longest_timeout_ms(self) -> int | None:
        """The brokers' cap on a transaction's timeout; None if they do not say, for lack of rights."""
        from kafka.admin import ConfigResource, ConfigResourceType

        name = "transaction.max.timeout.ms"
        with self._complaints(f"read {name}"):
            brokers = [str(broker.node_id) for broker in self._client._manager.cluster.brokers()]
            resources = [ConfigResource(ConfigResourceType.BROKER, each, {name: None}) for each in brokers[:1]]
            try:
                answer = self._client.describe_configs(resources, config_filter="all")
            except self._kafka.errors.AuthorizationError:
                return None
        caps = [
            int(settings[name]["value"])
            for by_name in answer.values()
            for settings in by_name.values()
            if name in settings
        ]
        return min(caps, default=None)

    # ---- deciding

    def end(self, transactions: Sequence[TransactionInfo], *, commit: bool) -> dict[str, RefusedError]:
        """Commit or abort all of these in the name of their producers; those that were refused, and why.

        :raises ExternalSystemError: a coordinator could not be reached, or is not ready. Nobody knows what was ended then.
        """
        from kafka.protocol.producer.transaction import EndTxnRequest

        by_id = {each.transactional_id: each for each in transactions}

        def request(name: str) -> Any:
            return EndTxnRequest(
                transactional_id=name,
                producer_id=by_id[name].producer_id,
                producer_epoch=by_id[name].epoch,
                committed=commit,
                max_version=_END_TXN_VERSION,
            )

        refused: dict[str, RefusedError] = {}
        left, deadline = list(by_id), time.monotonic() + _CONCURRENT_S
        with self._complaints("commit" if commit else "abort"):
            while left:
                again = []
                for name, response in zip(left, self._client._manager.run(self._send_each, left, request), strict=True):
                    error = self._kafka.errors.for_code(response.error_code)
                    if error in self._refusals:
                        refused[name] = RefusedError(error.__name__.removesuffix("Error"))
                    elif error is self._kafka.errors.ConcurrentTransactionsError and time.monotonic() < deadline:
                        again.append(name)  # it is being ended at this moment
                    elif error is not self._kafka.errors.NoError:
                        raise error(name)
                left = again
                if left:
                    threading.Event().wait(_CONCURRENT_PAUSE_S)
        return refused

    def fence(self, ids: Sequence[str]) -> None:
        """Abort what these have open, and shut their producers out for ever."""
        from kafka.protocol.producer.transaction import InitProducerIdRequest

        def request(name: str) -> Any:
            return InitProducerIdRequest(
                transactional_id=name,
                transaction_timeout_ms=_FENCING_TIMEOUT_MS,
                producer_id=-1,
                producer_epoch=-1,
                max_version=4,
            )

        with self._complaints("fence"):
            for name, response in zip(ids, self._client._manager.run(self._send_each, ids, request), strict=True):
                error = self._kafka.errors.for_code(response.error_code)
                # concurrent: it is being ended by somebody at this moment, which is as good
                if error not in (self._kafka.errors.NoError, self._kafka.errors.ConcurrentTransactionsError):
                    raise error(name)

    async def _send_each(self, ids: Sequence[str], request: Callable[[str], Any]) -> list[Any]:
        """One request for each id, to its coordinator, all at the same time."""
        coordinators = await self._client._find_coordinator_ids(
            ids, key_type=self._kafka.protocol.metadata.CoordinatorType.TRANSACTION
        )
        sent = [self._client._manager.send(request(name), node_id=coordinators[name]) for name in ids]
        return [await future for future in sent]

    @contextlib.contextmanager
    def _complaints(self, what: str) -> Any:
        errors = self._kafka.errors
        try:
            yield
        except errors.KafkaConfigurationError as error:
            raise ConfigurationError(f"Kafka's client refuses its properties: {error}") from error
        except (errors.KafkaError, OSError) as error:
            raise ExternalSystemError(
                f"Kafka at {self._servers} cannot {what}: {type(error).__name__}: {error}"
            ) from error


def _described(each: Any) -> TransactionInfo:
    return TransactionInfo(
        each.transactional_id,
        each.producer_id,
        str(each.transaction_state),
        each.producer_epoch,
        each.transaction_timeout_ms,
        each.transaction_start_time_ms,
        tuple(sorted((topic.topic, number) for topic in each.topics for number in topic.partitions)),
    )
