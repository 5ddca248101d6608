"""Parts of the Kafka connectors that need no broker."""

from __future__ import annotations

import builtins
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.common import SimpleStringSchema
from firesteel.connectors.base import EnumeratorContext, WriterContext
from firesteel.connectors.kafka_client import confluent_kafka, kafka_python, kafka_python_settings, librdkafka_settings
from firesteel.connectors.kafka_enumerator import KafkaEnumerator
from firesteel.connectors.kafka_transaction import TransactionalId, TransactionalIds, id_prefix
from firesteel.datastream.connectors import DeliveryGuarantee, kafka
from firesteel.datastream.connectors.kafka import (
    FlinkKafkaProducer,
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
    KafkaTopicPartition,
    Semantic,
)
from firesteel.errors import ConfigurationError


def source(**settings: Any) -> KafkaSource:
    made = KafkaSource.builder().set_bootstrap_servers("x:1").set_topics("t").set_group_id("g")
    return made.set_value_only_deserializer(SimpleStringSchema()).set_properties(settings).build()


class Cluster:
    """Partitions with so many offsets."""

    def __init__(self, *ends: int) -> None:
        self.ends = {KafkaTopicPartition("t", number): end for number, end in enumerate(ends)}

    def topics(self) -> dict[str, list[int]]:
        return {"t": [each.partition for each in self.ends]}

    def topic_ids(self, topics: Any) -> dict[str, str]:
        return dict.fromkeys(topics, "the same")

    def earliest(self, partitions: Any) -> dict[KafkaTopicPartition, int]:
        return dict.fromkeys(partitions, 0)

    def latest(self, partitions: Any) -> dict[KafkaTopicPartition, int]:
        return {each: self.ends[each] for each in partitions}


@given(
    ends=st.lists(st.integers(0, 500), min_size=1, max_size=8),
    budgets=st.lists(st.integers(0, 300), min_size=1, max_size=10),
    parallelism=st.integers(1, 5),
)
def test_plans_keep_to_the_budget_leave_nothing_out_and_never_move_a_partition(
    ends: list[int], budgets: list[int], parallelism: int
) -> None:
    cluster: Any = Cluster(*ends)
    context = EnumeratorContext("numbers", parallelism)
    enumerator = KafkaEnumerator(source().plan, context, lambda properties: cluster)
    positions = dict.fromkeys(cluster.ends, 0)
    owners: dict[KafkaTopicPartition, int] = {}
    for budget in [*budgets, 10_000]:
        left = sum(cluster.ends[each] - positions[each] for each in positions)
        assignment = enumerator.plan(budget)
        assert assignment.units == min(budget, left)
        assert assignment.caught_up == (assignment.units == left)
        for subtask, ranges in enumerate(assignment.ranges):
            for topic, number, start, stop in ranges[0]["partitions"] if ranges else ():
                each = KafkaTopicPartition(topic, number)
                assert positions[each] == start < stop
                assert owners.setdefault(each, subtask) == subtask
                positions[each] = stop
    assert positions == cluster.ends


def test_java_properties_are_understood() -> None:
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="me" password="s\\"cret";'
    properties = {
        "bootstrap.servers": "a:1,b:2",
        "security.protocol": "sasl_ssl",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": jaas,
        "key.serializer": "org.apache.kafka.common.serialization.StringSerializer",
        "max.request.size": "5",
        "ssl.ca.location": "/ca.pem",
        "partition.discovery.interval.ms": "10",
    }
    settings = librdkafka_settings(properties)
    assert settings["sasl.username"] == "me"
    assert settings["sasl.password"] == 's"cret'
    assert settings["message.max.bytes"] == "5"
    assert not {"key.serializer", "sasl.jaas.config", "partition.discovery.interval.ms"} & set(settings)
    assert kafka_python_settings(properties) == {
        "bootstrap_servers": ["a:1", "b:2"],
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "me",
        "sasl_plain_password": 's"cret',
        "ssl_cafile": "/ca.pem",
    }
    with pytest.raises(ConfigurationError, match=r"'ssl\.truststore\.location' is about Java's key stores"):
        librdkafka_settings({"ssl.truststore.location": "/store.jks"})
    with pytest.raises(ConfigurationError, match="does not name a username and a password"):
        librdkafka_settings({"sasl.jaas.config": "com.sun.security.auth.module.Krb5LoginModule required;"})


@pytest.mark.parametrize(
    ("find", "module", "package"),
    [(confluent_kafka, "confluent_kafka", "confluent-kafka"), (kafka_python, "kafka", "kafka-python")],
)
def test_a_missing_library_says_what_to_install(
    find: Any, module: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = builtins.__import__

    def refusing(name: str, *arguments: Any, **options: Any) -> Any:
        if name.split(".")[0] == module:
            raise ImportError(f"No module named {name!r}")
        return usual(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", refusing)
    with pytest.raises(ConfigurationError, match=rf"need {package}, .*: pip install 'firesteel\[kafka\]'"):
        find()


@given(prefix=st.text(min_size=1), incarnation=st.integers(1), subtask=st.integers(0, 999), number=st.integers(1, 99))
def test_a_transactional_id_says_whose_it_is(prefix: str, incarnation: int, subtask: int, number: int) -> None:
    context = WriterContext("a job", "a-sink", incarnation, subtask, 1000)
    ids = TransactionalIds(prefix, context)
    names = [ids.take() for _ in range(number)]
    assert len(set(names)) == number
    parsed = TransactionalId.parse(names[-1])
    assert parsed is not None
    assert (parsed.incarnation, parsed.subtask, parsed.number) == (incarnation, subtask, number)
    assert str(parsed) == names[-1]
    assert names[-1].startswith(id_prefix(prefix, context))
    ids.give_back(names[0])
    assert ids.take() == names[0]
    assert not set(names) & {TransactionalIds(prefix, context).take()}, "another writer's are others"


def test_ids_of_others_are_nobodys() -> None:
    assert TransactionalId.parse("kafka-sink-0-1") is None


def test_settings_that_cannot_be() -> None:
    made = KafkaSource.builder()
    with pytest.raises(ConfigurationError, match="needs brokers"):
        made.build()
    made.set_bootstrap_servers("x:1")
    with pytest.raises(ConfigurationError, match="needs topics"):
        made.build()
    made.set_topics("t")
    with pytest.raises(ConfigurationError, match="needs a deserializer"):
        made.build()
    with pytest.raises(ConfigurationError, match="only one can be set"):
        made.set_topic_pattern("t.*")
    made.set_value_only_deserializer(SimpleStringSchema())
    with pytest.raises(ConfigurationError, match="those of a consumer group"):
        made.set_starting_offsets(KafkaOffsetsInitializer.committed_offsets()).build()
    with pytest.raises(ConfigurationError, match="is no regular expression"):
        KafkaSource.builder().set_topic_pattern("(")
    with pytest.raises(ConfigurationError, match="needs a topic"):
        KafkaRecordSerializationSchema.builder().set_value_serialization_schema(SimpleStringSchema()).build()
    with pytest.raises(ConfigurationError, match="needs a value"):
        KafkaRecordSerializationSchema.builder().set_topic("t").build()
    with pytest.raises(ConfigurationError, match="needs a serializer"):
        KafkaSink.builder().set_bootstrap_servers("x:1").build()


def test_a_flink_kafka_producer_is_a_sink() -> None:
    with pytest.warns(DeprecationWarning, match="FlinkKafkaProducer is KafkaSink today"):
        sink = FlinkKafkaProducer(
            "t", SimpleStringSchema(), {"bootstrap.servers": "x:1"}, semantic=Semantic.EXACTLY_ONCE
        )
    assert sink.guarantee is DeliveryGuarantee.EXACTLY_ONCE
    assert sink.schema.topic() == "t"
    assert sink.set_flush_on_checkpoint(False).guarantee is DeliveryGuarantee.NONE


def test_pyflinks_names_are_here() -> None:
    names = {
        "FlinkKafkaConsumer", "FlinkKafkaProducer", "KafkaSource", "KafkaSourceBuilder", "KafkaSink", "KafkaSinkBuilder",
        "Semantic", "KafkaTopicPartition", "KafkaOffsetsInitializer", "KafkaOffsetResetStrategy",
        "KafkaRecordSerializationSchema", "KafkaRecordSerializationSchemaBuilder", "KafkaTopicSelector",
    }  # fmt: skip
    assert names <= set(kafka.__all__)
    assert all(hasattr(kafka, name) for name in kafka.__all__)
