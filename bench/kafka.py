"""Kafka to Kafka with keyed state, and each end by itself: `python -m bench.kafka SERVERS TOPIC RECORDS SIZE`

The topic has the records already. One Spark for all jobs; the first one warms it up.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bench.kafka_records import check, count_committed, counted, create, delete, key_of, texts
from bench.paced import Numbers
from bench.watch import Watch, environment
from firesteel.common import SimpleStringSchema, Types, WatermarkStrategy
from firesteel.connectors.base import (
    Assignment,
    EnumeratorContext,
    Json,
    ReaderContext,
    Sink,
    SinkWriter,
    Source,
    SourceReader,
    SplitEnumerator,
    WriterContext,
)
from firesteel.datastream import DataStream, KeyedProcessFunction, RuntimeContext, ValueStateDescriptor
from firesteel.datastream.connectors import DeliveryGuarantee
from firesteel.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
    KafkaSourceBuilder,
)

CHECKPOINT_MS = 5000


class Count(KeyedProcessFunction):
    """One read and one write of state for every record, and every record comes out."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: str, ctx: Any) -> Iterator[str]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield counted(value, count)


@dataclass(frozen=True)
class Texts(Source):
    """The records that are in Kafka for the others."""

    records: int
    size: int

    def create_enumerator(self, context: EnumeratorContext) -> SplitEnumerator:
        return _Texts(self.records, context.parallelism)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return _Reader(context.subtask, self.size)


class _Texts(Numbers):
    def plan(self, budget: int) -> Assignment:
        return self._take(budget)


class _Reader(SourceReader):
    def __init__(self, subtask: int, size: int) -> None:
        self._subtask, self._size = subtask, size

    def read(self, planned: Json) -> Iterator[list[Any]]:
        for start in range(planned["start"], planned["stop"], 4096):
            yield texts(self._subtask, start, min(start + 4096, planned["stop"]), self._size)


class Nowhere(Sink):
    """Takes records and forgets them."""

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return _Forget()


class _Forget(SinkWriter):
    def write(self, values: Sequence[Any]) -> None:
        pass


@dataclass(frozen=True)
class Bench:
    """The jobs of one run. Output topics come and go with them."""

    servers: str
    topic: str
    records: int
    size: int

    def read(self) -> float:
        env = environment(every_ms=CHECKPOINT_MS)
        source = builder(self.servers, self.topic).set_bounded(KafkaOffsetsInitializer.latest()).build()
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "in").uid("in")
        stream.sink_to(Nowhere()).uid("out")
        watch = Watch(env, "kafka, source only")
        self._came_through(watch, "out")
        return watch.warm_rate()

    def write(self) -> float:
        env, topic = environment(every_ms=CHECKPOINT_MS), create(self.servers, f"{self.topic}-written")
        stream = env.from_source(Texts(self.records, self.size), None, "in").uid("in")
        stream.sink_to(sink(self.servers, topic, DeliveryGuarantee.AT_LEAST_ONCE)).uid("out")
        watch = Watch(env, "kafka, sink only")
        if (count := count_committed(self.servers, topic)) != self.records:
            sys.exit(f"{count} of {self.records} records in {topic}")
        delete(self.servers, topic)
        return watch.warm_rate()

    def copy(self, guarantee: DeliveryGuarantee) -> float:
        env, topic = environment(every_ms=CHECKPOINT_MS), create(self.servers, f"{self.topic}-{guarantee.name}")
        source = builder(self.servers, self.topic).set_bounded(KafkaOffsetsInitializer.latest()).build()
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "in").uid("in")
        counts(stream).sink_to(sink(self.servers, topic, guarantee)).uid("out")
        watch = Watch(env, f"kafka, {guarantee.name}")
        self._came_through(watch, "count")
        check(self.servers, topic, self.records)
        delete(self.servers, topic)
        return watch.warm_rate()

    def _came_through(self, watch: Watch, uid: str) -> None:
        if watch.counts[uid][0] != self.records:
            sys.exit(f"{watch.counts[uid][0]} of {self.records} records")


def builder(servers: str, topic: str) -> KafkaSourceBuilder:
    made = KafkaSource.builder().set_bootstrap_servers(servers).set_topics(topic)
    return made.set_value_only_deserializer(SimpleStringSchema())


def counts(stream: DataStream) -> DataStream:
    return stream.key_by(key_of).process(Count()).uid("count")


def sink(servers: str, topic: str, guarantee: DeliveryGuarantee) -> KafkaSink:
    schema = KafkaRecordSerializationSchema.builder().set_topic(topic)
    schema.set_value_serialization_schema(SimpleStringSchema())
    made = KafkaSink.builder().set_bootstrap_servers(servers).set_record_serializer(schema.build())
    return made.set_delivery_guarantee(guarantee).build()


def main() -> None:
    bench = Bench(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:5]))
    answer = {
        "read": bench.read(),
        "write": bench.write(),
        "at_least_once": bench.copy(DeliveryGuarantee.AT_LEAST_ONCE),
        "exactly_once": bench.copy(DeliveryGuarantee.EXACTLY_ONCE),
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
