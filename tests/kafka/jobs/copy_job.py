"""Copies a topic into another, exactly once, in one process: the driver and its slots die together."""

from __future__ import annotations

import argparse
import logging
import sys
from typing import Any

from firesteel.common import RestartStrategies, SimpleStringSchema, WatermarkStrategy
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors import DeliveryGuarantee
from firesteel.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from firesteel.errors import FiresteelError
from tests.support.local_engine import LocalRun


def program(given: argparse.Namespace) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(given.parallelism)
    env.enable_checkpointing(1).set_restart_strategy(RestartStrategies.fixed_delay_restart(3, 100))
    source = (
        KafkaSource.builder()
        .set_bootstrap_servers(given.servers)
        .set_topics(given.source)
        .set_value_only_deserializer(SimpleStringSchema())
        .set_bounded(KafkaOffsetsInitializer.latest())
        .set_max_records_per_epoch(given.per_epoch)
        .build()
    )
    schema = KafkaRecordSerializationSchema.builder().set_topic(given.sink)
    schema.set_value_serialization_schema(SimpleStringSchema())
    sink = (
        KafkaSink.builder()
        .set_bootstrap_servers(given.servers)
        .set_record_serializer(schema.build())
        .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
        .set_transactional_id_prefix(f"test-{given.sink}")
        .set_property("transaction.timeout.ms", str(given.timeout))
        .build()
    )
    if given.give_up:
        sink.ignore_failures_after_transaction_timeout()
    stream: Any = env.from_source(source, WatermarkStrategy.no_watermarks(), "in").uid("in").rebalance()
    stream.map(lambda value: f"{value}!").uid("map").sink_to(sink).uid("out")
    return env


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("servers", "source", "sink", "checkpoints"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--parallelism", type=int, default=2)
    parser.add_argument("--per-epoch", type=int, default=25)
    parser.add_argument("--timeout", type=int, default=60_000)
    parser.add_argument("--give-up", action="store_true")
    given = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    try:
        LocalRun(program(given), given.checkpoints).run()
    except FiresteelError as error:
        sys.exit(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
