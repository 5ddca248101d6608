"""The Kafka source against a real broker: what it reads, and that it reads it once."""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import DeserializationSchema, RestartStrategies, Row, SimpleStringSchema, Types, WatermarkStrategy
from firesteel.connectors import kafka_cluster
from firesteel.connectors.base import EnumeratorContext, PrepareContext, ReaderContext, Source, Timestamped
from firesteel.datastream import DataStream, OutputTag, ProcessFunction, StreamExecutionEnvironment
from firesteel.datastream.connectors.kafka import (
    BadRecordPolicy,
    FlinkKafkaConsumer,
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaRecord,
    KafkaRecordDeserializationSchema,
    KafkaSource,
    KafkaSourceBuilder,
    KafkaTopicPartition,
)
from firesteel.datastream.formats.json import JsonRowDeserializationSchema
from firesteel.errors import (
    BadRecordError,
    ConfigurationError,
    DataLossError,
    ExternalSystemError,
    RestoreError,
    SideOutputError,
)
from firesteel.graph.nodes import Collect
from tests.support.kafka_broker import KafkaBroker
from tests.support.local_engine import LocalRun

Topic = Callable[..., str]
LATEST, EARLIEST = KafkaOffsetsInitializer.latest(), KafkaOffsetsInitializer.earliest()


_readings: list[Reading] = []


@pytest.fixture(autouse=True)
def _nothing_stays_open(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(kafka_cluster, "_TIMEOUT_S", 2.0)  # a broker on this machine answers at once or is not there
    yield
    while _readings:
        _readings.pop().close()


class Reading:
    """A source driven by hand: plan, read, restart."""

    def __init__(self, source: Source, parallelism: int = 1) -> None:
        _readings.append(self)
        self.source = source
        self.start(parallelism)

    def start(self, parallelism: int, state: Any = None) -> None:
        self.enumerator = self.source.create_enumerator(EnumeratorContext("numbers", parallelism))
        if state is not None:
            self.enumerator.restore(state)
        shipped = pickle.loads(pickle.dumps(self.source))
        self.readers = [
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
    assert chunks == [Timestamped(["value"], [1234])], "a message without a value is left out"


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
    kafka.produce(name, numbers(0, 3))
    state = {"partitions": [[name, 0, 10, None]]}
    with pytest.raises(DataLossError, match=f"has read {name}-0 up to offset 10, and the partition ends at 3"):
        Reading(builder(kafka, name).build()).start(1, state)


# ---- in a job


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


def test_what_is_missing_is_said_before_the_job_starts(kafka: KafkaBroker) -> None:
    here = PrepareContext("kafka", "", False, None)
    with pytest.raises(ConfigurationError, match="the topic nowhere cannot be read: not in the cluster"):
        builder(kafka, "nowhere").build().prepare(here)
    with pytest.raises(ConfigurationError, match=r'No such configuration property: "fetch\.wisely"'):
        builder(kafka, "x").set_property("fetch.wisely", "1").build().create_reader(ReaderContext("job", "x", 1, 0, 1))
    with pytest.raises(ExternalSystemError, match=r"Kafka at 127\.0\.0\.1:1 cannot list topics: _TRANSPORT"):
        builder(kafka, "x").set_bootstrap_servers("127.0.0.1:1").build().prepare(here)


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


# ---- messages that cannot be read


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
