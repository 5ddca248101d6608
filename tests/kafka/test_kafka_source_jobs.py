"""Jobs that read from a real broker: rollbacks, timestamps, and messages that cannot be read."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import (
    DeserializationSchema,
    RestartStrategies,
    Row,
    SimpleStringSchema,
    Types,
    WatermarkStrategy,
)
from firesteel.connectors import kafka_cluster, kafka_group
from firesteel.connectors.kafka_cluster import KafkaCluster
from firesteel.connectors.kafka_offsets import KafkaTopicPartition
from firesteel.datastream import DataStream, OutputTag, ProcessFunction, StreamExecutionEnvironment
from firesteel.datastream.connectors import DeliveryGuarantee
from firesteel.datastream.connectors.kafka import (
    BadRecordPolicy,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from firesteel.datastream.formats.avro import AvroRowDeserializationSchema, AvroRowSerializationSchema
from firesteel.datastream.formats.json import JsonRowDeserializationSchema
from firesteel.errors import BadRecordError, ExternalSystemError, SideOutputError
from firesteel.graph.nodes import Collect
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_reading import LATEST, builder, numbers
from tests.support.local_engine import LocalRun

Topic = Callable[..., str]


def run(env: StreamExecutionEnvironment, stream: DataStream, directory: Path, *fail_at: int) -> list[Any]:
    stream._end(Collect(), "Collect")
    return LocalRun(env, str(directory), fail_at=fail_at).run().collected()


def environment(parallelism: int = 2) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment().set_parallelism(parallelism).enable_checkpointing(1)
    return env.set_restart_strategy(RestartStrategies.fixed_delay_restart(5, 0))


def test_offsets_are_rewound_with_a_rollback_and_committed_with_a_checkpoint(
    kafka: KafkaBroker, topic: Topic, tmp_path: Path
) -> None:
    name = topic(2)
    for partition in range(2):
        kafka.produce(name, numbers(partition * 50, partition * 50 + 50), partition)
    env = environment()
    made = builder(kafka, name).set_bounded(LATEST).set_group_id(f"group-{name}").set_max_records_per_epoch(13)
    stream = env.from_source(made.build(), WatermarkStrategy.no_watermarks(), "kafka")
    assert sorted(run(env, stream, tmp_path, 2, 5), key=int) == numbers(0, 100)
    assert kafka.group_offsets(f"group-{name}", name) == {0: 50, 1: 50}


def test_offsets_are_committed_again_when_the_broker_is_back(
    kafka: KafkaBroker, topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not by way of librdkafka's admin client, which aborts the process when a coordinator goes away at the wrong moment."""
    monkeypatch.setattr(kafka_group, "_TIMEOUT_S", 1.0)
    name = topic()
    group, partition = f"group-{name}", KafkaTopicPartition(name, 0)
    cluster = KafkaCluster(
        {"bootstrap.servers": kafka.bootstrap, "group.id": group, "isolation.level": "read_committed"}
    )

    def commit(offset: int) -> None:
        deadline = time.monotonic() + 60
        while True:
            try:
                return cluster.commit(group, {partition: offset})()
            except ExternalSystemError:
                assert time.monotonic() < deadline

    assert cluster.committed(group, [partition]) == {}
    commit(1)
    kafka.kill()
    with pytest.raises(ExternalSystemError, match=f"cannot commit offsets of group '{group}'"):
        cluster.commit(group, {partition: 2})()
    kafka.start()
    commit(3)
    assert cluster.committed(group, [partition]) == {partition: 3}
    cluster.close()


def test_records_have_their_kafka_timestamps(kafka: KafkaBroker, topic: Topic, tmp_path: Path) -> None:
    name = topic()
    for number in range(3):
        kafka.produce(name, [number], timestamp=1000 + number)

    class Stamp(ProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Any:
            yield value, ctx.timestamp()

    env = environment(1)
    stream = env.from_source(
        builder(kafka, name).set_bounded(LATEST).build(), WatermarkStrategy.for_monotonous_timestamps(), "kafka"
    )
    assert run(env, stream.process(Stamp()), tmp_path) == [("0", 1000), ("1", 1001), ("2", 1002)]


def test_a_partition_that_is_ahead_in_time_makes_no_record_of_another_late(
    kafka: KafkaBroker, topic: Topic, tmp_path: Path
) -> None:
    name = topic(2)
    kafka.produce(name, ["ahead"] * 6000, 0, timestamp=1_000_000)
    kafka.produce(name, ["behind"] * 6000, 1, timestamp=1_000)

    class Late(ProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Any:
            yield value, ctx.timestamp() <= ctx.timer_service().current_watermark()

    env = environment(1)
    made = builder(kafka, name).set_bounded(LATEST).set_max_records_per_epoch(3000).build()
    stream = env.from_source(made, WatermarkStrategy.for_monotonous_timestamps(), "kafka")
    results = run(env, stream.process(Late()), tmp_path, 2)
    assert sorted(set(results)) == [("ahead", False), ("behind", False)] and len(results) == 12_000


def test_a_bad_record_is_named(kafka: KafkaBroker, topic: Topic, tmp_path: Path) -> None:
    class Number(DeserializationSchema):
        def deserialize(self, message: bytes) -> Any:
            return int(message)

    name = topic()
    kafka.produce(name, ["1", "x" * 100])
    env = environment(1).set_restart_strategy(RestartStrategies.no_restart())
    made = builder(kafka, name).set_value_only_deserializer(Number()).set_bounded(LATEST)
    stream = env.from_source(made.build(), WatermarkStrategy.no_watermarks(), "kafka").uid("numbers")
    with pytest.raises(
        BadRecordError, match=f"{name} partition 0 at offset 1 .100 bytes that start with b'xxx.*ValueError"
    ):
        run(env, stream, tmp_path)


def test_a_broker_that_is_down_when_the_job_starts_is_waited_for_by_restarts(
    kafka: KafkaBroker, topic: Topic, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(kafka_cluster, "_TIMEOUT_S", 1.0)
    name, out = topic(), topic()
    kafka.produce(name, numbers(0, 100))
    env = environment(1).set_restart_strategy(RestartStrategies.fixed_delay_restart(100, 100))
    schema = KafkaRecordSerializationSchema.builder().set_topic(out)
    schema.set_value_serialization_schema(SimpleStringSchema())
    sink = KafkaSink.builder().set_bootstrap_servers(kafka.bootstrap).set_record_serializer(schema.build())
    sink.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
    made = builder(kafka, name).set_bounded(LATEST).set_max_records_per_epoch(40).build()
    env.from_source(made, WatermarkStrategy.no_watermarks(), "kafka").uid("in").sink_to(sink.build()).uid("out")
    kafka.kill()
    with ThreadPoolExecutor(1) as aside:
        done = aside.submit(lambda: LocalRun(env, str(tmp_path)).run())
        deadline = time.monotonic() + 60
        while "cannot list topics" not in caplog.text:
            assert time.monotonic() < deadline and not done.done(), caplog.text
            time.sleep(0.05)
        kafka.start()
        done.result(120)
    assert kafka.values(out) == sorted(numbers(0, 100))


def test_a_broker_that_stays_down_fails_the_job_when_the_restarts_are_used_up(
    kafka: KafkaBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_cluster, "_TIMEOUT_S", 0.2)
    env = environment(1).set_restart_strategy(RestartStrategies.fixed_delay_restart(2, 0))
    made = builder(kafka, "x").set_bootstrap_servers("127.0.0.1:1").build()
    with pytest.raises(ExternalSystemError, match=r"Kafka at 127\.0\.0\.1:1 cannot list topics: .*refused"):
        run(env, env.from_source(made, WatermarkStrategy.no_watermarks(), "kafka"), tmp_path)


# ---- messages that cannot be read


def test_a_message_of_another_avro_schema_is_named(kafka: KafkaBroker, topic: Topic, tmp_path: Path) -> None:
    fields = [[{"name": "id", "type": "string"}, {"name": "t", "type": kind}] for kind in ("double", "int")]
    wanted, other = (json.dumps({"type": "record", "name": "Reading", "fields": each}) for each in fields)
    name = topic()
    good = AvroRowSerializationSchema(avro_schema_string=wanted).serialize(Row(id="oven", t=20.5))
    kafka.produce(name, [good, AvroRowSerializationSchema(avro_schema_string=other).serialize(Row(id="oven", t=20))])
    schema = AvroRowDeserializationSchema(avro_schema_string=wanted)
    made = builder(kafka, name).set_value_only_deserializer(schema).set_bounded(LATEST)
    env = environment(1).set_restart_strategy(RestartStrategies.no_restart())
    with pytest.raises(
        BadRecordError, match=f"source 'readings' cannot read the message of {name} partition 0 at offset 1 "
    ):
        run(env, env.from_source(made.build(), None, "readings").uid("readings"), tmp_path / "fails")
    tag = OutputTag("bad")
    env = environment(1)
    stream = env.from_source(made.set_bad_record_policy(BadRecordPolicy.side_output(tag)).build(), None, "readings")
    bad = stream.get_side_output(tag).map(lambda each: each.record.offset)
    assert run(env, stream.map(lambda row: row["t"]).union(bad), tmp_path / "goes on") == [20.5, 1]


def mixed(kafka: KafkaBroker, topic: Topic) -> str:
    name = topic()
    kafka.produce(name, ['{"n": 1}', "{", '{"n": "two"}', '{"n": 3}'], timestamp=77)
    return name


def json_numbers(kafka: KafkaBroker, name: str, policy: BadRecordPolicy) -> KafkaSource:
    schema = JsonRowDeserializationSchema.builder().type_info(Types.ROW_NAMED(["n"], [Types.LONG()])).build()
    made = builder(kafka, name).set_value_only_deserializer(schema).set_bounded(LATEST)
    return made.set_bad_record_policy(policy).build()


def test_bad_records_can_be_left_out_and_are_counted(
    kafka: KafkaBroker, topic: Topic, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    name = mixed(kafka, topic)
    env = environment(1)
    stream = env.from_source(json_numbers(kafka, name, BadRecordPolicy.skip()), None, "numbers").uid("numbers")
    stream._end(Collect(), "Collect")
    done = LocalRun(env, str(tmp_path)).run()
    assert done.collected() == [Row(n=1), Row(n=3)]
    assert done.job.metrics["numbers"]["numRecordsInErrors"] == 2
    assert f"{name} partition 0 at offset 1 (1 bytes that start with b'{{')" in caplog.text


def test_bad_records_can_go_to_a_side_output(kafka: KafkaBroker, topic: Topic, tmp_path: Path) -> None:
    name = mixed(kafka, topic)
    tag = OutputTag("bad")
    env = environment(1)
    source = json_numbers(kafka, name, BadRecordPolicy.side_output(tag))
    stream = env.from_source(source, WatermarkStrategy.for_monotonous_timestamps(), "numbers")
    bad = stream.get_side_output(tag).map(lambda each: (each.record.offset, each.record.value, each.error))
    assert run(env, stream.map(lambda row: row["n"]).union(bad), tmp_path) == [
        1,
        3,
        (1, b"{", "JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        (2, b'{"n": "two"}', "ValueError: field 'n': an integer is declared, and not 'two'"),
    ]
    env = environment(1).set_restart_strategy(RestartStrategies.no_restart())
    with pytest.raises(SideOutputError, match="has records for the side output 'bad', which nobody reads"):
        run(env, env.from_source(source, None, "numbers"), tmp_path / "unread")
