"""A Kafka source driven by hand: plan, read, restart."""

from __future__ import annotations

import json
import pickle
from typing import Any

from firesteel.common import SimpleStringSchema
from firesteel.connectors.base import EnumeratorContext, ReaderContext, Source, SourceReader
from firesteel.datastream.connectors.kafka import KafkaOffsetsInitializer, KafkaSource, KafkaSourceBuilder
from tests.support.kafka_broker import KafkaBroker

LATEST, EARLIEST = KafkaOffsetsInitializer.latest(), KafkaOffsetsInitializer.earliest()


open_readings: list[Reading] = []
"""For a fixture to close."""


class Reading:
    """A source driven by hand: plan, read, restart."""

    def __init__(self, source: Source, parallelism: int = 1) -> None:
        open_readings.append(self)
        self.source = source
        self.start(parallelism)

    def start(self, parallelism: int, state: Any = None) -> None:
        self.enumerator = self.source.create_enumerator(EnumeratorContext("numbers", parallelism))
        if state is not None:
            self.enumerator.restore(state)
        shipped = pickle.loads(pickle.dumps(self.source))
        self.readers: list[SourceReader] = [
            shipped.create_reader(ReaderContext("job", "numbers", 1, subtask, parallelism))
            for subtask in range(parallelism)
        ]

    def epoch(self, budget: int = 1000) -> list[Any]:
        ranges = json.loads(json.dumps(self.enumerator.plan(budget).ranges))
        return [
            value
            for reader, mine in zip(self.readers, ranges, strict=True)
            for planned in mine
            for chunk in reader.read(planned)
            for value in chunk.values
        ]

    def all(self, budget: int = 1000) -> list[Any]:
        values: list[Any] = []
        while not self.enumerator.finished():
            values += self.epoch(budget)
        return values

    def restart(self, parallelism: int = 1) -> None:
        state = json.loads(json.dumps(self.enumerator.snapshot()))
        self.close()
        self.start(parallelism, state)

    def close(self) -> None:
        for reader in self.readers:
            reader.close()
        self.readers = []
        self.enumerator.close()


def builder(kafka: KafkaBroker, *topics: str) -> KafkaSourceBuilder:
    made = KafkaSource.builder().set_bootstrap_servers(kafka.bootstrap)
    made.set_value_only_deserializer(SimpleStringSchema())
    return made.set_topics(*topics) if topics else made


def numbers(first: int, stop: int) -> list[str]:
    return [str(number) for number in range(first, stop)]
