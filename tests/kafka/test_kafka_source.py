"""The Kafka source against a real broker: what it reads, and that it reads it once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import SimpleStringSchema
from firesteel.connectors import kafka_cluster
from firesteel.connectors.base import EnumeratorContext, PrepareContext, ReaderContext, Timestamped
from firesteel.datastream.connectors.kafka import (
    FlinkKafkaConsumer,
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaRecord,
    KafkaRecordDeserializationSchema,
    KafkaSource,
    KafkaTopicPartition,
)
from firesteel.errors import (
    ConfigurationError,
    DataLossError,
    ExternalSystemError,
    RestoreError,
)
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_reading import EARLIEST, LATEST, Reading, builder, numbers, open_readings

Topic = Callable[..., str]


@pytest.fixture(autouse=True)
def _nothing_stays_open(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(kafka_cluster, "_TIMEOUT_S", 2.0)  # a broker on this machine answers at once or is not there
    yield
    while open_readings:
        open_readings.pop().close()


def test_a_bounded_source_reads_what_is_there_and_finishes(kafka: KafkaBroker, topic: Topic) -> None:
    name = topic(3)
    for partition in range(3):
        kafka.produce(name, numbers(partition * 100, partition * 100 + 100), partition)
    reading = Reading(builder(kafka, name).set_bounded(LATEST).build(), 2)
    first = reading.epoch(30)
    kafka.produce(name, ["too late"])
    values = first + reading.all(40)
    assert sorted(values, key=int) == numbers(0, 300)
    assert reading.enumerator.progress() == 1.0
    by_partition = [[value for value in values if int(value) // 100 == partition] for partition in range(3)]
    assert by_partition == [sorted(each, key=int) for each in by_partition], "the order within a partition"


def test_epochs_are_cut_evenly_and_to_the_budget(kafka: KafkaBroker, topic: Topic) -> None:
    name = topic(2)
    kafka.produce(name, numbers(0, 3), 0)
    kafka.produce(name, numbers(100, 200), 1)
    reading = Reading(builder(kafka, name).set_max_records_per_epoch(10).build())
    assert [len(reading.epoch()) for _ in range(3)] == [10, 10, 10]
    assert reading.enumerator.snapshot()["partitions"] == [[name, 0, 3, None], [name, 1, 27, None]]


def test_restored_offsets_are_gone_on_from_with_any_parallelism(kafka: KafkaBroker, topic: Topic) -> None:
    name = topic(4)
    for partition in range(4):
        kafka.produce(name, numbers(partition * 50, partition * 50 + 50), partition)
    reading = Reading(builder(kafka, name).set_bounded(LATEST).build(), 3)
    values = reading.epoch(70)
    for parallelism in (1, 5, 2):
        reading.restart(parallelism)
        values += reading.epoch(30)
    assert sorted(values + reading.all(), key=int) == numbers(0, 200)


def test_the_same_range_gives_the_same_chunks_again(kafka: KafkaBroker, topic: Topic) -> None:
    name = topic(3)
    for partition in range(3):
        kafka.produce(name, numbers(0, 20_000), partition)
    source = builder(kafka, name).build()
    planned = source.create_enumerator(EnumeratorContext("numbers", 1)).plan(60_000).ranges[0][0]
    context = ReaderContext("job", "numbers", 1, 0, 1)
    once, again = ([chunk.values for chunk in source.create_reader(context).read(planned)] for _ in range(2))
    assert [len(chunk) for chunk in once[:3]] == [4096] * 3
    assert sum(map(len, once)) == 60_000
    assert once == again


def test_markers_and_aborted_records_are_passed_over(kafka: KafkaBroker, topic: Topic) -> None:
    name = topic()
    kafka.produce_in_transaction(name, numbers(0, 10), commit=True)
    kafka.produce_in_transaction(name, numbers(500, 600), commit=False)
    kafka.produce_in_transaction(name, numbers(10, 20), commit=True)
    kafka.produce_in_transaction(name, numbers(500, 600), commit=False)
    reading = Reading(builder(kafka, name).set_bounded(LATEST).build())
    assert reading.all(7) == numbers(0, 20)
    dirty = builder(kafka, name).set_bounded(LATEST).set_property("isolation.level", "read_uncommitted").build()
    assert len(Reading(dirty).all(50)) == 220


def test_nothing_is_planned_behind_an_open_transaction(kafka: KafkaBroker, topic: Topic) -> None:
    from confluent_kafka import Producer

    name = topic()
    kafka.produce(name, numbers(0, 5))
    open_one = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": f"open-{name}"})
    open_one.init_transactions(30)
    open_one.begin_transaction()
    open_one.produce(name, b"5")
    open_one.flush(30)
    kafka.produce(name, numbers(6, 8))
    reading = Reading(builder(kafka, name).build())
    assert reading.epoch() == numbers(0, 5)
    assert reading.epoch() == []
    open_one.commit_transaction(30)
    values: list[str] = []
    while len(values) < 3:
        values += reading.epoch()
    assert values == numbers(5, 8)


def test_compacted_offsets_are_passed_over(kafka: KafkaBroker, topic: Topic) -> None:
    name = topic(
        cleanup_policy="compact",
        segment_ms=50,
        min_cleanable_dirty_ratio=0.001,
        delete_retention_ms=0,
        segment_bytes=1048576,
    )
    for round_ in range(4):
        for key in range(5):
            kafka.produce(name, [f"{key}:{round_}"], key=str(key))
        time.sleep(0.06)  # the time after which a segment can be compacted
    deadline = time.monotonic() + 30
    while True:
        kafka.produce(name, ["end"], key="end")
        values = Reading(builder(kafka, name).set_bounded(LATEST).build()).all(3)
        if len(values) < 20:
            break
        assert time.monotonic() < deadline, "the broker did not compact"
        time.sleep(0.1)
    assert {value for value in values if value.endswith(":3")} == {f"{key}:3" for key in range(5)}


def test_start_and_stop_are_found_as_asked_for(kafka: KafkaBroker, topic: Topic) -> None:
    name = topic()
    for second in range(10):
        kafka.produce(name, [second], timestamp=1_000_000 + second * 1000)

    def read(
        start: KafkaOffsetsInitializer, stop: KafkaOffsetsInitializer = LATEST, group: str = "nobody"
    ) -> list[str]:
        made = builder(kafka, name).set_group_id(group).set_starting_offsets(start).set_bounded(stop)
        return Reading(made.build()).all()

    place = KafkaTopicPartition(name, 0)
    assert read(EARLIEST) == numbers(0, 10)
    assert read(LATEST) == []
    assert read(KafkaOffsetsInitializer.timestamp(1_003_500)) == numbers(4, 10)
    assert read(KafkaOffsetsInitializer.timestamp(9_999_999)) == []
    assert read(EARLIEST, KafkaOffsetsInitializer.timestamp(1_006_000)) == numbers(0, 6)
    assert read(KafkaOffsetsInitializer.offsets({place: 7})) == numbers(7, 10)
    assert read(EARLIEST, KafkaOffsetsInitializer.offsets({place: 3})) == numbers(0, 3)
    assert read(KafkaOffsetsInitializer.committed_offsets(KafkaOffsetResetStrategy.EARLIEST)) == numbers(0, 10)
    assert read(KafkaOffsetsInitializer.committed_offsets(KafkaOffsetResetStrategy.LATEST)) == []
    with pytest.raises(ConfigurationError, match=f"'nobody' has no committed offset for {name}-0"):
        read(KafkaOffsetsInitializer.committed_offsets())


def test_latest_stays_what_it_was_when_a_job_restarts_before_its_first_checkpoint(
    kafka: KafkaBroker, topic: Topic
) -> None:
    name = topic()
    kafka.produce(name, ["before"])
    source = builder(kafka, name).set_starting_offsets(LATEST).build()
    assert Reading(source).epoch() == []
    kafka.produce(name, ["after"])
    assert Reading(source).epoch() == ["after"]


def test_topics_by_pattern_and_partitions_that_come_later_are_found(kafka: KafkaBroker, topic: Topic) -> None:
    name = topic(1)
    kafka.produce(name, ["a"])
    made = builder(kafka).set_topic_pattern(f"{name}(-more)?").set_starting_offsets(LATEST)
    reading = Reading(made.set_property("partition.discovery.interval.ms", "1").build(), 2)
    assert reading.epoch() == []
    kafka.create_topic(f"{name}-more")
    kafka.produce(f"{name}-more", ["b"])
    kafka.create_partitions(name, 2)
    kafka.produce(name, ["c"], 1)
    values: list[str] = []
    deadline = time.monotonic() + 30
    while len(values) < 2 and time.monotonic() < deadline:
        values += reading.epoch()
    assert sorted(values) == ["b", "c"], "what is new is read from its beginning"
    reading.restart(1)
    assert reading.epoch() == []


def test_only_the_given_partitions_are_read(kafka: KafkaBroker, topic: Topic) -> None:
    name = topic(3)
    for partition in range(3):
        kafka.produce(name, [partition], partition)
    made = builder(kafka).set_partitions({KafkaTopicPartition(name, 0), KafkaTopicPartition(name, 2)})
    assert sorted(Reading(made.set_bounded(LATEST).build()).all()) == ["0", "2"]


class Whole(KafkaRecordDeserializationSchema):
    def deserialize(self, record: KafkaRecord) -> Any:
        return record


def test_a_message_is_given_with_all_there_is_to_it(kafka: KafkaBroker, topic: Topic) -> None:
    name = topic()
    kafka.produce(name, [b"value", None], key=b"key", headers=[("h", b"1")], timestamp=1234)
    made = KafkaSource.builder().set_bootstrap_servers(kafka.bootstrap).set_topics(name).set_deserializer(Whole())
    assert Reading(made.set_bounded(LATEST).build()).all() == [
        KafkaRecord(name, 0, 0, 1234, b"key", b"value", (("h", b"1"),)),
        KafkaRecord(name, 0, 1, 1234, b"key", None, (("h", b"1"),)),
    ]
    source = builder(kafka, name).set_bounded(LATEST).build()
    planned = source.create_enumerator(EnumeratorContext("numbers", 1)).plan(10).ranges[0][0]
    chunks = list(source.create_reader(ReaderContext("job", "numbers", 1, 0, 1)).read(planned))
    assert chunks == [Timestamped(["value"], [1234], f"{name}-0")], "a message without a value is left out"


def test_records_that_are_gone_fail_the_job_with_the_numbers(kafka: KafkaBroker, topic: Topic) -> None:
    name = topic()
    kafka.produce(name, numbers(0, 100))
    reading = Reading(builder(kafka, name).build())
    reading.epoch(10)
    kafka.delete_records(name, 40)
    with pytest.raises(
        DataLossError, match=rf"'numbers' has yet to read {name}-0 from offset 10, .* before 40 .* 30 offsets"
    ):
        reading.restart()
    reading = Reading(
        builder(kafka, name)
        .set_starting_offsets(KafkaOffsetsInitializer.offsets({KafkaTopicPartition(name, 0): 20}))
        .build()
    )
    with pytest.raises(DataLossError, match=rf"{name}-0 from offset 20, .* before 40 .* 20 offsets are gone"):
        reading.epoch()


def test_records_that_are_gone_are_passed_over_if_the_user_says_so(kafka: KafkaBroker, topic: Topic) -> None:
    name = topic()
    kafka.produce(name, numbers(0, 100))
    made = builder(kafka, name).set_fail_on_data_loss(False)
    reading = Reading(made.build())
    assert reading.epoch(10) == numbers(0, 10)
    kafka.delete_records(name, 40)
    reading.restart()
    assert reading.epoch(5) == numbers(40, 45)
    late = Reading(
        made.set_starting_offsets(KafkaOffsetsInitializer.offsets({KafkaTopicPartition(name, 0): 20})).build()
    )
    assert late.epoch(50) == numbers(40, 70)


def test_a_topic_that_was_made_anew_is_noticed(kafka: KafkaBroker, topic: Topic) -> None:
    name = topic()
    kafka.produce(name, numbers(0, 10))
    reading = Reading(builder(kafka, name).build())
    reading.epoch()
    kafka.admin.delete_topics([name])[name].result(30)
    deadline = time.monotonic() + 30
    while name in kafka.admin.list_topics(timeout=10).topics:
        assert time.monotonic() < deadline
    with pytest.raises(RestoreError, match=f"{name}-0 is not in the cluster any more"):
        reading.restart()
    kafka.create_topic(name)
    kafka.produce(name, numbers(0, 20))
    with pytest.raises(DataLossError, match=f"the topic '{name}', which was deleted and made anew"):
        reading.restart()
    state = {"topics": {}, "partitions": [[name, 0, 30, None]]}  # as of a cluster that has no ids of topics
    with pytest.raises(DataLossError, match=f"has read {name}-0 up to offset 30, and the partition ends at 20"):
        Reading(builder(kafka, name).build()).start(1, state)


def test_what_is_missing_is_said_before_the_job_starts(kafka: KafkaBroker) -> None:
    here = PrepareContext("kafka", "", False, None)
    with pytest.raises(ConfigurationError, match="the topic nowhere cannot be read: not in the cluster"):
        builder(kafka, "nowhere").build().prepare(here)
    with pytest.raises(ConfigurationError, match=r'No such configuration property: "fetch\.wisely"'):
        builder(kafka, "x").set_property("fetch.wisely", "1").build().create_reader(ReaderContext("job", "x", 1, 0, 1))


def test_brokers_that_do_not_answer_do_not_keep_a_job_from_starting(
    kafka: KafkaBroker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(kafka_cluster, "_TIMEOUT_S", 0.5)
    source = builder(kafka, "x").set_bootstrap_servers("127.0.0.1:1").build()
    source.prepare(PrepareContext("kafka", "", False, None))
    assert "source 'kafka': the job starts without having seen its brokers: Kafka at 127.0.0.1:1 cannot" in caplog.text
    with pytest.raises(ExternalSystemError, match=r"Kafka at 127\.0\.0\.1:1 cannot list topics: _TRANSPORT.*refused"):
        Reading(source).epoch()


def test_a_broker_that_is_away_for_a_moment_is_waited_for(kafka: KafkaBroker, topic: Topic, tmp_path: Path) -> None:
    name = topic()
    kafka.produce(name, numbers(0, 3000))
    reading = Reading(builder(kafka, name).build())
    planned = reading.enumerator.plan(3000).ranges[0][0]
    kafka.kill()
    assert reading.enumerator.plan(10).units == 0, "nothing is known to be new"
    with ThreadPoolExecutor(1) as aside:
        read = aside.submit(lambda: [value for chunk in reading.readers[0].read(planned) for value in chunk.values])
        time.sleep(0.5)  # it tries in vain meanwhile
        assert not read.done()
        kafka.start()
        assert read.result(60) == numbers(0, 3000)
    assert reading.epoch() == []


# ---- the names of Flink 1.x


def test_a_flink_kafka_consumer_starts_where_its_group_is(kafka: KafkaBroker, topic: Topic) -> None:
    name = topic()
    kafka.produce(name, numbers(0, 5))
    properties = {"bootstrap.servers": kafka.bootstrap, "group.id": f"group-{name}", "key.deserializer": "java.Class"}
    with pytest.warns(DeprecationWarning, match="FlinkKafkaConsumer is KafkaSource today"):
        consumer = FlinkKafkaConsumer(name, SimpleStringSchema(), properties)
    assert Reading(consumer).epoch() == [], "the latest, as Kafka's consumers do"
    with pytest.warns(DeprecationWarning, match="today"):
        again = FlinkKafkaConsumer([name], SimpleStringSchema(), {**properties, "auto.offset.reset": "earliest"})
    reading = Reading(again)
    assert reading.epoch(3) == numbers(0, 3)
    reading.enumerator.completed(reading.enumerator.snapshot())
    reading.close()
    with pytest.warns(DeprecationWarning, match="today"):
        third = FlinkKafkaConsumer(name, SimpleStringSchema(), properties)
    assert Reading(third).epoch() == numbers(3, 5)
    with pytest.warns(DeprecationWarning, match="today"):
        fourth = FlinkKafkaConsumer(name, SimpleStringSchema(), properties).set_start_from_earliest()
    assert Reading(fourth).epoch() == numbers(0, 5)
