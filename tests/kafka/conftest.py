"""One broker for all tests here, and one with transactions of the older kind; each test has topics of its own."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.kafka_broker import KafkaBroker

_numbers = itertools.count(1)


def _broker(transaction_version: int | None = None) -> Iterator[KafkaBroker]:
    broker = KafkaBroker(Path(tempfile.mkdtemp(prefix="fskafka-")), transaction_version=transaction_version)
    try:
        yield broker.start()
    finally:
        broker.close()


@pytest.fixture(scope="session")
def broker() -> Iterator[KafkaBroker]:
    yield from _broker()


@pytest.fixture(scope="session")
def old_broker() -> Iterator[KafkaBroker]:
    """Finalised at transaction.version=0, as clusters are that came from Kafka 3."""
    yield from _broker(transaction_version=0)


@pytest.fixture
def kafka(broker: KafkaBroker) -> KafkaBroker:
    """The broker, running; a test may kill it."""
    return broker.running()


@pytest.fixture
def topic(kafka: KafkaBroker) -> Callable[..., str]:
    """Makes a topic with a name that no other test has."""

    def make(partitions: int = 1, **config: object) -> str:
        return kafka.create_topic(f"topic-{next(_numbers)}", partitions, **config)

    return make
