"""Two sinks in one job, one of which fails after the other has pre-committed: neither shows records twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Encoder, RestartStrategies, SimpleStringSchema, WatermarkStrategy
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors import DeliveryGuarantee, FileSink
from firesteel.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from firesteel.testing import FailingSink
from tests.support.kafka_broker import KafkaBroker
from tests.support.local_engine import LocalRun


def sink(kafka: KafkaBroker, topic: str) -> KafkaSink:
    schema = KafkaRecordSerializationSchema.builder().set_topic(topic)
    schema.set_value_serialization_schema(SimpleStringSchema())
    made = KafkaSink.builder().set_bootstrap_servers(kafka.bootstrap).set_record_serializer(schema.build())
    made.set_transactional_id_prefix(f"test-{topic}")
    return made.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE).build()


@pytest.mark.parametrize("step", ["prepare_commit", "persist", "commit"])
def test_neither_shows_records_twice(kafka: KafkaBroker, topic: Callable[..., str], tmp_path: Path, step: str) -> None:
    source, one, two = topic(2), topic(2), topic(1)
    for partition in range(2):
        kafka.produce(source, range(partition * 20, partition * 20 + 20), partition)
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2).enable_checkpointing(1)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(5, 0))
    read = KafkaSource.builder().set_bootstrap_servers(kafka.bootstrap).set_topics(source)
    read.set_value_only_deserializer(SimpleStringSchema()).set_bounded(KafkaOffsetsInitializer.latest())
    stream: Any = env.from_source(read.set_max_records_per_epoch(15).build(), WatermarkStrategy.no_watermarks(), "in")
    stream.sink_to(sink(kafka, one)).uid("one")
    stream.sink_to(FailingSink(sink(kafka, two), at=step, notes=str(tmp_path / "notes"), failures=2)).uid("two")
    files = FileSink.for_row_format(str(tmp_path / "files"), Encoder.simple_string_encoder()).build()
    stream.sink_to(files).uid("files")
    LocalRun(env, str(tmp_path / "checkpoints")).run()
    assert len(list((tmp_path / "notes").iterdir())) == 2, "it failed as it was told to"
    expected = sorted(str(number) for number in range(40))
    lines = [line for file in (tmp_path / "files").iterdir() for line in file.read_text().splitlines()]
    assert (kafka.values(one), kafka.values(two), sorted(lines)) == (expected, expected, expected)
    for name in (one, two):
        assert kafka.undecided(f"test-{name}") == []
