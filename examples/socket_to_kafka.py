"""Words from a socket into a Kafka topic, in transactions: python socket_to_kafka.py localhost:7777 localhost:9092 words

Say them with `nc -lk 7777`. Written with the names of Flink 1.x, which work; today `FlinkKafkaProducer` is `KafkaSink`, as in
kafka_exactly_once.py. Kafka shows each checkpoint's words once and together. But a socket cannot say anything again: words
that were not in a checkpoint are lost when the job fails, and the job says so when it starts.
"""

import sys

from firesteel.common import RestartStrategies, SimpleStringSchema
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.kafka import FlinkKafkaProducer, Semantic


def main(socket, servers, topic):
    env = StreamExecutionEnvironment.get_execution_environment()
    env.enable_checkpointing(500)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(3, 1000))
    host, port = socket.split(":")
    properties = {"bootstrap.servers": servers, "transaction.timeout.ms": "60000"}
    sink = FlinkKafkaProducer(topic, SimpleStringSchema(), properties, semantic=Semantic.EXACTLY_ONCE)
    lines = env.socket_text_stream(host, int(port))
    lines.flat_map(lambda line: line.split()).uid("words").add_sink(sink).uid("kafka")
    env.execute("socket-to-kafka")


if __name__ == "__main__":
    main(*sys.argv[1:4])
