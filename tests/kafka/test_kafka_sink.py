"""The halves of the Kafka sink, driven by hand against a real broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from firesteel.common import SimpleStringSchema
from firesteel.connectors import kafka_transactions
from firesteel.connectors.base import CommitterContext, PrepareContext, WriterContext
from firesteel.datastream.connectors import DeliveryGuarantee
from firesteel.datastream.connectors.kafka import KafkaRecordSerializationSchema, KafkaSink, KafkaSinkBuilder
from firesteel.errors import CheckpointError, ConfigurationError, DataLossError, ExternalSystemError, UserCodeError
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_halves import Halves
from tests.support.waiting import wait_until

Topic = Callable[..., str]
HERE = PrepareContext("out", "", False, None)


@pytest.fixture(params=["now", "transaction.version=0"])
def kafka(request: pytest.FixtureRequest) -> KafkaBroker:
    """Every test here runs with both kinds of transactions."""
    name = "broker" if request.param == "now" else "old_broker"
    broker: KafkaBroker = request.getfixturevalue(name)
    return broker.running()


def builder(kafka: KafkaBroker, topic: str, guarantee: DeliveryGuarantee) -> KafkaSinkBuilder:
    schema = KafkaRecordSerializationSchema.builder().set_topic(topic)
    schema.set_value_serialization_schema(SimpleStringSchema())
    made = KafkaSink.builder().set_bootstrap_servers(kafka.bootstrap).set_record_serializer(schema.build())
    return made.set_delivery_guarantee(guarantee)


def exactly_once(kafka: KafkaBroker, topic: str) -> KafkaSinkBuilder:
    made = builder(kafka, topic, DeliveryGuarantee.EXACTLY_ONCE).set_property("transaction.timeout.ms", 60_000)
    return made.set_transactional_id_prefix(f"test-{topic}-")


@pytest.fixture
def halves() -> Iterator[Callable[..., Halves]]:
    made: list[Halves] = []

    def make(*arguments: Any, **options: Any) -> Halves:
        made.append(Halves(*arguments, **options))
        return made[-1]

    yield make
    for each in made:
        if hasattr(each, "writer"):
            each.writer.close()
        each.committer.close()


def test_records_are_seen_when_they_are_committed_and_not_before(kafka: KafkaBroker, topic: Topic, halves: Any) -> None:
    name = topic(2)
    both = halves(exactly_once(kafka, name).build())
    made = both.checkpoint(1, "a", "b")
    assert (kafka.values(name), kafka.values(name, committed=False)) == ([], ["a", "b"])
    both.commit(made)
    both.commit(made)  # as after a crash before that was noted
    both.committer.abort(made)  # never touches what is committed
    assert kafka.values(name) == ["a", "b"]
    assert made[0]["records"] == 2


def test_without_records_there_is_no_transaction(kafka: KafkaBroker, topic: Topic, halves: Any) -> None:
    both = halves(exactly_once(kafka, topic()).build())
    assert both.checkpoint(1) == []
    both.writer.write([])
    assert both.checkpoint(2) == []


def test_what_a_dead_writer_began_after_the_last_sweep_goes_with_the_end_of_the_job(
    kafka: KafkaBroker, topic: Topic, halves: Any
) -> None:
    name = topic()
    sink = exactly_once(kafka, name).build()
    zombie, job = halves(sink, 1), halves(sink, 2)
    job.committer.sweep([])
    made = job.checkpoint(1, "b")
    zombie.checkpoint(1, "a")  # it does not know yet that there is a successor
    zombie.die()
    job.commit(made)
    job.committer.sweep([])  # so soon after the first that it does nothing
    assert len(kafka.undecided(f"test-{name}-")) == 1
    job.committer.close()
    assert kafka.undecided(f"test-{name}-") == []
    assert kafka.values(name) == ["b"]


def test_records_keep_their_order_over_checkpoints(kafka: KafkaBroker, topic: Topic, halves: Any) -> None:
    """Two transactions have a producer each, and what one has not sent yet could come after the records of the next."""
    name = topic()
    both = halves(exactly_once(kafka, name).set_property("linger.ms", 30_000).build())
    both.writer.write(["a"])
    made = both.writer.prepare_commit()
    both.writer.write(["b"])  # of the next epoch, before anybody has waited for the arrival of the first
    assert kafka.values(name, committed=False) == ["a"]
    made += both.writer.prepare_commit()
    both.writer.persist(made)
    both.commit(made)
    assert [message.value() for message in kafka.messages(name)] == [b"a", b"b"]


def test_a_prepared_transaction_outlives_its_writer_and_the_broker(
    kafka: KafkaBroker, topic: Topic, halves: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_transactions, "_BOOTSTRAP_MS", 1000)
    name = topic()
    sink = exactly_once(kafka, name).build()
    first, other = halves(sink), halves(sink)
    made = first.checkpoint(1, "a") + other.checkpoint(1, "b")
    first.commit(made[:1])  # one of two is committed,
    first.die()
    other.die()
    kafka.kill()
    second = halves(sink, 2)
    with pytest.raises(ExternalSystemError, match=f"Kafka at {kafka.bootstrap} cannot connect"):
        second.commit(made)
    second.committer.sweep(())  # warns, and is done again later
    kafka.start()
    second.commit_patiently(made)  # and then all of them
    second.committer.sweep(())
    assert kafka.values(name) == ["a", "b"]
    assert kafka.undecided(f"test-{name}-") == []


def test_what_a_dead_writer_left_is_swept_and_nothing_else(kafka: KafkaBroker, topic: Topic, halves: Any) -> None:
    name = topic()
    sink = exactly_once(kafka, name).build()
    dead, other, kept = halves(sink), halves(sink, job="another job"), halves(sink)
    dead.checkpoint(1, "lost")
    dead.writer.write(["lost too"])
    dead.writer._open.deliver()  # type: ignore[union-attr]
    dead.die()
    others, keep = other.checkpoint(1, "other"), kept.checkpoint(1, "kept")
    alive = halves(sink, 2)
    mine = alive.checkpoint(2, "mine")
    alive.committer.sweep(keep)
    for committer, committables in ((other, others), (kept, keep), (alive, mine)):
        committer.commit(committables)
    assert kafka.values(name) == ["kept", "mine", "other"]
    assert kafka.undecided(f"test-{name}-") == []


def test_a_zombie_is_fenced(kafka: KafkaBroker, topic: Topic, halves: Any) -> None:
    name = topic()
    sink = exactly_once(kafka, name).build()
    zombie = halves(sink)
    zombie.writer.write(["before"])
    zombie.writer._open.deliver()
    successor = halves(sink, 2)
    successor.committer.sweep(())
    kafka.settle()  # until then a partition may take a record, which is aborted with the others
    zombie.writer.write(["after"])
    with pytest.raises(ExternalSystemError, match=r"'out' cannot write to Kafka at .*: _FENCED: "):
        zombie.writer._open.deliver()
    zombie.die()
    assert kafka.values(name) == []


def test_a_transaction_that_is_not_open_any_more_fails_the_checkpoint_before_it_is_complete(
    kafka: KafkaBroker, topic: Topic, halves: Any
) -> None:
    both = halves(exactly_once(kafka, topic()).build())
    made = both.checkpoint(1, "a")
    both.committer.abort(made)
    with pytest.raises(
        CheckpointError, match=r"epoch 0, 1 records\) cannot be committed any more: now it is in state .*Abort"
    ):
        both.committer.check(made)


def test_an_expired_transaction_of_a_complete_checkpoint_is_said_loudly(
    kafka: KafkaBroker, topic: Topic, halves: Any, caplog: pytest.LogCaptureFixture
) -> None:
    name = topic()
    sink = exactly_once(kafka, name).set_property("transaction.timeout.ms", 1500).build()
    both = halves(sink)
    made = both.checkpoint(7, "a", "b", "c")
    wait_until(lambda: not kafka.undecided(f"test-{name}-"), "the timeout")
    with pytest.raises(DataLossError, match=rf"of checkpoint 7, which is complete: 3 records .* {made[0]['id']} "):
        both.committer.commit_checkpoint(7, made)
    tolerant = halves(sink.ignore_failures_after_transaction_timeout())
    tolerant.committer.commit_checkpoint(7, made)
    assert "3 records are not in Kafka and never will be" in caplog.text
    assert kafka.values(name) == []


def test_a_transaction_with_too_little_time_left_fails_the_checkpoint(
    kafka: KafkaBroker, topic: Topic, halves: Any
) -> None:
    both = halves(exactly_once(kafka, topic()).build())
    made = both.checkpoint(1, "a")
    old = [{**made[0], "begun_ms": made[0]["begun_ms"] - 58_000}]
    with pytest.raises(CheckpointError, match="ms left of its timeout of 60000 ms, too little"):
        both.committer.check(old)


def test_a_handful_of_ids_is_enough_for_many_checkpoints(kafka: KafkaBroker, topic: Topic, halves: Any) -> None:
    name = topic()
    both = halves(exactly_once(kafka, name).build())
    used = []
    for number in range(1, 9):
        made = both.checkpoint(number, str(number))
        used.append(made[0]["id"])
        if number == 4:  # dropped: the next checkpoint commits its transaction, too
            carried = made
            continue
        both.committer.commit_checkpoint(number, made if number != 5 else carried + made)
        both.writer.notify_checkpoint_complete(number)
    assert kafka.values(name) == [str(number) for number in range(1, 9)]
    assert len(set(used)) <= 4
    assert kafka.undecided(f"test-{name}-") == []


def test_closing_a_writer_aborts_what_no_barrier_has_described(kafka: KafkaBroker, topic: Topic, halves: Any) -> None:
    name = topic()
    both = halves(exactly_once(kafka, name).build())
    made = both.checkpoint(1, "prepared")
    both.writer.write(["open"])
    both.writer.close()
    both.commit(made)
    assert kafka.values(name) == ["prepared"]
    assert kafka.undecided(f"test-{name}-") == []


# ---- without transactions, and mistakes: one kind of broker is enough


@pytest.mark.parametrize("guarantee", [DeliveryGuarantee.NONE, DeliveryGuarantee.AT_LEAST_ONCE])
def test_without_transactions_records_leave_with_the_epoch(broker: KafkaBroker, guarantee: DeliveryGuarantee) -> None:
    name = broker.running().create_topic(f"plain-{guarantee.name}", 2)
    sink = builder(broker, name, guarantee).build()
    assert sink.create_committer(CommitterContext("job", "out", 1)) is None
    writer = sink.create_writer(WriterContext("job", "out", 1, 0, 1))
    writer.write([str(number) for number in range(2000)])
    writer.flush()
    if guarantee is DeliveryGuarantee.NONE:
        writer.close()
    assert broker.values(name) == sorted(str(number) for number in range(2000))


def test_each_part_of_a_message_can_be_chosen(broker: KafkaBroker) -> None:
    broker.running()
    for name in ("parts-even", "parts-odd"):
        broker.create_topic(name, 3)

    class Key(SimpleStringSchema):
        def serialize(self, value: Any) -> bytes:
            return b"key%d" % (value % 2)

    class Value(SimpleStringSchema):
        def serialize(self, value: Any) -> bytes:
            return b"%d" % value

    schema = (
        KafkaRecordSerializationSchema.builder()
        .set_topic_selector(lambda value: "parts-odd" if value % 2 else "parts-even")
        .set_key_serialization_schema(Key())
        .set_value_serialization_schema(Value())
        .set_header_provider(lambda value: {"n": b"%d" % value})
        .set_timestamp_selector(lambda value: 5000 + value)
        .set_partitioner(lambda value: 2)
        .build()
    )
    sink = KafkaSink.builder().set_bootstrap_servers(broker.bootstrap).set_record_serializer(schema)
    sink.set_delivery_guarantee(DeliveryGuarantee.AT_LEAST_ONCE)
    writer = sink.build().create_writer(WriterContext("job", "out", 1, 0, 1))
    writer.write([1, 2])
    writer.flush()
    (message,) = broker.messages("parts-odd")
    parts = (message.key(), message.value(), message.headers(), message.timestamp()[1], message.partition())
    assert parts == (b"key1", b"1", [("n", b"1")], 5001, 2)
    assert broker.values("parts-even") == ["2"]


def test_a_record_that_the_broker_refuses_fails_the_epoch(broker: KafkaBroker) -> None:
    name = broker.running().create_topic("small-messages", max_message_bytes=500)
    sink = builder(broker, name, DeliveryGuarantee.AT_LEAST_ONCE).build()
    writer = sink.create_writer(WriterContext("job", "out", 1, 0, 1))
    writer.write(["x" * 1000])
    with pytest.raises(
        ExternalSystemError, match=r"'out' cannot write 1 records .* small-messages: MSG_SIZE_TOO_LARGE"
    ):
        writer.flush()


def test_a_record_that_cannot_be_serialized_is_named(broker: KafkaBroker) -> None:
    name = broker.running().create_topic("strings-only")
    writer = builder(broker, name, DeliveryGuarantee.NONE).build().create_writer(WriterContext("job", "out", 1, 0, 1))
    with pytest.raises(UserCodeError, match=r"writes strings, not 5(?s:.*)on the record 5 of sink 'out'"):
        writer.write([5])


def test_a_serializer_that_ends_an_iteration_by_mistake_loses_no_record_in_silence(broker: KafkaBroker) -> None:
    name = broker.running().create_topic("stopped")

    class Stopping(SimpleStringSchema):
        def serialize(self, value: Any) -> bytes:
            return value.encode() if value != "b" else next(iter(()))  # type: ignore[no-any-return]

    schema = KafkaRecordSerializationSchema.builder().set_topic(name).set_value_serialization_schema(Stopping())
    for made in (schema, schema.set_timestamp_selector(lambda value: 5)):
        sink = builder(broker, name, DeliveryGuarantee.NONE).set_record_serializer(made.build()).build()
        writer = sink.create_writer(WriterContext("job", "out", 1, 0, 1))
        with pytest.raises(UserCodeError, match=r"raised StopIteration(?s:.*)on the record 'b' of sink 'out'"):
            writer.write(["a", "b", "c"])


def test_a_queue_that_is_full_is_waited_for(broker: KafkaBroker) -> None:
    name = broker.running().create_topic("narrow")
    made = builder(broker, name, DeliveryGuarantee.AT_LEAST_ONCE).set_property("queue.buffering.max.messages", 10)
    writer = made.build().create_writer(WriterContext("job", "out", 1, 0, 1))
    values = [str(number) for number in range(200)]
    writer.write(values)
    writer.flush()
    assert [message.value().decode() for message in broker.messages(name)] == values


def test_a_broker_that_is_gone_fails_the_epoch_with_its_address(broker: KafkaBroker) -> None:
    made = builder(broker, "x", DeliveryGuarantee.AT_LEAST_ONCE).set_bootstrap_servers("127.0.0.1:1")
    writer = made.set_property("delivery.timeout.ms", 500).build().create_writer(WriterContext("job", "out", 1, 0, 1))
    writer.write(["a"])
    with pytest.raises(
        ExternalSystemError, match=r"'out' cannot write 1 records to Kafka at 127\.0\.0\.1:1: x: _MSG_TIMED_OUT"
    ):
        writer.flush()


def test_mistakes_are_found_before_the_job_starts(broker: KafkaBroker) -> None:
    name = broker.running().create_topic("there")
    greedy = exactly_once(broker, name).set_property("transaction.timeout.ms", 3_600_000).build()
    with pytest.raises(ConfigurationError, match=r"timeout\.ms is 3600000, and the brokers allow 900000"):
        greedy.prepare(HERE)
    with pytest.raises(ConfigurationError, match=r"timeout\.ms is 3600000, and the brokers allow less"):
        Halves(greedy).checkpoint(1, "a")
    with pytest.raises(
        ConfigurationError, match="sink 'out' is to write to the topic 'nowhere', which is not in the cluster"
    ):
        exactly_once(broker, "nowhere").build().prepare(HERE)
    with pytest.raises(ConfigurationError, match="transactional ids are made by the sink"):
        exactly_once(broker, name).set_property("transactional.id", "mine")
    unset = builder(broker, name, DeliveryGuarantee.EXACTLY_ONCE).build().prepare(HERE)
    assert isinstance(unset, KafkaSink)
    assert unset._timeout_ms == 900_000
