"""From one Kafka topic to another. The record `name4` fails the job once, and still every record comes out once:

    python kafka_exactly_once.py localhost:9092 names greetings

Readers of the second topic need `isolation.level=read_committed`; they see records when their checkpoint is complete.
"""

import os
import sys
import tempfile

from firesteel.common import RestartStrategies, SimpleStringSchema, WatermarkStrategy
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors import DeliveryGuarantee
from firesteel.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from firesteel.datastream.functions import MapFunction


class Greet(MapFunction):
    """Fails the first time it sees `name4`, in whichever process and incarnation that is."""

    def __init__(self, note):
        self.note = note  # a file that is there when it has failed

    def map(self, value):
        if value == "name4" and not os.path.exists(self.note):
            open(self.note, "w").close()
            raise RuntimeError("name4 cannot be greeted today")
        return f"hello {value}"


def main(servers, names, greetings):
    env = StreamExecutionEnvironment.get_execution_environment()
    env.enable_checkpointing(200)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(3, 100))

    source = (
        KafkaSource.builder()
        .set_bootstrap_servers(servers)
        .set_topics(names)
        .set_group_id("greeter")
        .set_starting_offsets(KafkaOffsetsInitializer.earliest())
        .set_bounded(KafkaOffsetsInitializer.latest())  # without this it goes on for ever
        .set_value_only_deserializer(SimpleStringSchema())
        .build()
    )
    sink = (
        KafkaSink.builder()
        .set_bootstrap_servers(servers)
        .set_record_serializer(
            KafkaRecordSerializationSchema.builder()
            .set_topic(greetings)
            .set_value_serialization_schema(SimpleStringSchema())
            .build()
        )
        .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
        .build()
    )
    with tempfile.TemporaryDirectory() as directory:
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "names").uid("names")
        stream.map(Greet(f"{directory}/failed")).uid("greet").sink_to(sink).uid("greetings")
        env.execute("greeter")


if __name__ == "__main__":
    main(*sys.argv[1:4])
