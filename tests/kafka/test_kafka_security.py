"""Passwords and certificates: the right ones work for every client there is, the wrong ones are said before the start."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from firesteel.common import SimpleStringSchema
from firesteel.connectors.base import PrepareContext
from firesteel.datastream.connectors import DeliveryGuarantee
from firesteel.datastream.connectors.kafka import KafkaRecordSerializationSchema, KafkaSink, KafkaSource
from firesteel.errors import ConfigurationError
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_halves import Halves
from tests.support.kafka_reading import LATEST, Reading
from tests.support.kafka_security import PASSWORD, USER, Authority, secured_broker
from tests.support.waiting import PATIENCE_S

HERE = PrepareContext("it", "", False, None)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"), "authority")


@pytest.fixture(scope="module")
def guarded(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    broker = secured_broker(tmp_path_factory.mktemp("broker"), authority)
    try:
        yield broker.start()
    finally:
        broker.close()


def login(guarded: KafkaBroker, password: str) -> dict[str, str]:
    return {
        "bootstrap.servers": guarded.addresses["PASSWORD"],
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": USER,
        "sasl.password": password,
    }


def tls(guarded: KafkaBroker, authority: Authority) -> dict[str, str]:
    return {
        "bootstrap.servers": guarded.addresses["TLS"],
        "security.protocol": "SSL",
        "ssl.ca.location": str(authority.certificate),
    }


def source(topic: str, properties: dict[str, str]) -> KafkaSource:
    made = KafkaSource.builder().set_topics(topic).set_value_only_deserializer(SimpleStringSchema())
    return made.set_bounded(LATEST).set_group_id(f"group-{topic}").set_properties(properties).build()


def sink(topic: str, properties: dict[str, str]) -> KafkaSink:
    schema = KafkaRecordSerializationSchema.builder().set_topic(topic)
    schema.set_value_serialization_schema(SimpleStringSchema())
    made = KafkaSink.builder().set_record_serializer(schema.build())
    made.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
    for key, value in properties.items():
        made.set_property(key, value)
    return made.build()


@pytest.mark.parametrize("how", ["password", "tls"])
def test_records_go_in_and_come_out_exactly_once(guarded: KafkaBroker, authority: Authority, how: str) -> None:
    properties = login(guarded, PASSWORD) if how == "password" else tls(guarded, authority)
    topic = guarded.create_topic(f"through-{how}")
    prepared = sink(topic, properties).prepare(HERE)
    assert isinstance(prepared, KafkaSink)
    both = Halves(prepared)
    made = both.checkpoint(1, "a", "b")
    both.committer.sweep(())
    both.committer.commit_checkpoint(1, made)
    both.committer.close()
    deadline = time.monotonic() + PATIENCE_S
    while len(guarded.messages(topic)) < 2:  # the marker of a commit is on its way for a moment
        assert time.monotonic() < deadline
    reading = Reading(source(topic, properties).prepare(HERE))
    assert sorted(reading.all()) == ["a", "b"]
    reading.enumerator.completed(reading.enumerator.snapshot())
    reading.close()
    assert guarded.group_offsets(f"group-{topic}", topic) == {0: 3}, "two records and the marker"


def test_a_wrong_password_is_said_at_once_and_not_shown(guarded: KafkaBroker) -> None:
    started = time.monotonic()
    for made in (source("x", login(guarded, "not this one")), sink("x", login(guarded, "not this one"))):
        with pytest.raises(
            ConfigurationError,
            match=rf"(source|sink) 'it': Kafka at {guarded.addresses['PASSWORD']} is not to be connected to: "
            r"_AUTHENTICATION: .*Invalid username or password.*Check security\.protocol",
        ) as error:
            made.prepare(HERE)
        assert "not this one" not in str(error.value)
    assert time.monotonic() - started < 15, "nobody waits for what cannot come"


def test_a_broker_whose_certificate_somebody_else_signed_is_not_trusted(guarded: KafkaBroker, tmp_path: Path) -> None:
    for made in (
        source("x", tls(guarded, Authority(tmp_path, "somebody"))),
        sink("x", tls(guarded, Authority(tmp_path, "else"))),
    ):
        with pytest.raises(ConfigurationError, match=r"(source|sink) 'it': .*_SSL: .*certificate.*ssl\.ca\.location"):
            made.prepare(HERE)


def test_a_certificate_file_that_is_not_there_is_named(guarded: KafkaBroker, tmp_path: Path) -> None:
    properties = {**tls(guarded, Authority(tmp_path, "some")), "ssl.ca.location": str(tmp_path / "nowhere.pem")}
    with pytest.raises(ConfigurationError, match=r"ssl\.ca\.location failed.*"):
        source("x", properties).prepare(HERE)
