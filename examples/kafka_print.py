"""Prints what is in a Kafka topic, and what comes: python kafka_print.py localhost:9092 readings

With a third argument, `now`, it stops where the topic ends at the start.
"""

import sys

from firesteel.common import SimpleStringSchema, WatermarkStrategy
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.kafka import KafkaOffsetsInitializer, KafkaSource


def main(servers, topic, until=""):
    env = StreamExecutionEnvironment.get_execution_environment()
    builder = (
        KafkaSource.builder()
        .set_bootstrap_servers(servers)
        .set_topics(topic)
        .set_group_id("kafka-print")
        .set_starting_offsets(KafkaOffsetsInitializer.earliest())
        .set_value_only_deserializer(SimpleStringSchema())
    )
    if until == "now":
        builder.set_bounded(KafkaOffsetsInitializer.latest())
    env.from_source(builder.build(), WatermarkStrategy.no_watermarks(), "Kafka").print()
    env.execute("kafka-print")


if __name__ == "__main__":
    main(*sys.argv[1:])
