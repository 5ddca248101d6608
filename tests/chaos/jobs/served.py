"""Numbers out of a Kafka topic, to Kafka, to a database, or to both, exactly once."""

from __future__ import annotations

from firesteel.common import Row, SerializationSchema, SimpleStringSchema, Time, Types, WatermarkStrategy
from firesteel.connectors.base import Source
from firesteel.datastream import AggregateFunction, MapFunction, ProcessWindowFunction
from firesteel.datastream.connectors import DeliveryGuarantee
from firesteel.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcExactlyOnceOptions, JdbcSink
from firesteel.datastream.connectors.kafka import KafkaRecordSerializationSchema, KafkaSink, KafkaSource
from firesteel.datastream.window import TumblingEventTimeWindows
from firesteel.testing.faults import SkewedClock, crash_point
from tests.chaos.oracle import TICK_MS, WINDOW_MS

NUMBERS = Types.ROW([Types.INT(), Types.LONG(), Types.LONG()])
WINDOWS = Types.ROW([Types.INT(), Types.LONG(), Types.LONG(), Types.LONG()])


class Ending(Source):
    """A topic without an end, until a file says how many records there are."""

    bounded = True

    def __init__(self, source, end):
        self.source, self.end = source, end

    def prepare(self, context):
        return Ending(self.source.prepare(context), self.end)

    def create_enumerator(self, context):
        enumerator = self.source.create_enumerator(context)
        enumerator.finished = lambda: self._is_over(enumerator.snapshot()["partitions"])
        return enumerator

    def _is_over(self, partitions):
        try:
            with open(self.end) as file:
                return sum(position for _, _, position, _ in partitions) >= int(file.read())
        except FileNotFoundError:
            return False

    def create_reader(self, context):
        return self.source.create_reader(context)

    def get_produced_type(self):
        return self.source.get_produced_type()


class Parse(MapFunction):
    def __init__(self, clock):
        self.clock = clock

    def open(self, runtime_context):
        SkewedClock(self.clock).install()

    def map(self, value):
        return int(value)


class Add(AggregateFunction):
    """Count and total."""

    def create_accumulator(self):
        return (0, 0)

    def add(self, value, accumulator):
        crash_point("mid-record")
        return accumulator[0] + 1, accumulator[1] + value

    def get_result(self, accumulator):
        return accumulator

    def merge(self, a, b):
        return a[0] + b[0], a[1] + b[1]


class AsRow(ProcessWindowFunction):
    def process(self, key, context, results):
        for count, total in results:
            yield Row(key, context.window().start, count, total)


class KeyOfLine(SerializationSchema):
    """So that all lines of a key are in one partition, and their order is Kafka's to keep."""

    def serialize(self, value):
        return value.partition(",")[0].encode()


def source(args):
    topic = KafkaSource.builder().set_bootstrap_servers(args.brokers).set_topics(args.input)
    topic.set_group_id(args.input.removesuffix("-in")).set_value_only_deserializer(SimpleStringSchema())
    return Ending(topic.build(), f"{args.home}/end")


def kafka_sink(args):
    schema = KafkaRecordSerializationSchema.builder().set_topic(args.output)
    schema.set_key_serialization_schema(KeyOfLine()).set_value_serialization_schema(SimpleStringSchema())
    sink = KafkaSink.builder().set_bootstrap_servers(args.brokers).set_record_serializer(schema.build())
    sink.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE).set_transactional_id_prefix(
        args.output.removesuffix("-out")
    )
    return sink.set_property("transaction.timeout.ms", "600000").build()


def database_sink(args, sql, fields):
    connection = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(args.url)
    connection.with_user_name(args.user).with_password(args.password)
    way = JdbcExactlyOnceOptions.builder().with_prepared_transactions(args.kind.endswith("-prepared"))
    return JdbcSink.exactly_once_sink(sql, fields, connection.build(), None, way.build())


def sums_to_servers(env, args, count_and_sum):
    """Every number counted and added to its key's total; to Kafka, and to a database if there is one."""
    read = env.from_source(source(args), WatermarkStrategy.no_watermarks(), "numbers").uid("source")
    numbers = read.map(Parse(f"{args.home}/clock")).uid("parse")
    sums = numbers.key_by(lambda number: number % args.keys).process(count_and_sum).uid("sums")
    sums.sink_to(kafka_sink(args)).uid("kafka")
    if args.url:
        rows = sums.map(lambda line: Row(*map(int, line.split(",")))).uid("rows")
        rows.add_sink(database_sink(args, "INSERT INTO sums VALUES (?, ?, ?)", NUMBERS)).uid("database")


def windows_to_database(env, args):
    """Counts and totals of every second of event time."""
    times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: int(value) * TICK_MS)
    read = env.from_source(source(args), times, "numbers").uid("source").map(Parse(f"{args.home}/clock")).uid("parse")
    windows = read.key_by(lambda number: number % args.keys).window(
        TumblingEventTimeWindows.of(Time.milliseconds(WINDOW_MS))
    )
    rows = windows.aggregate(Add(), AsRow()).uid("windows")
    rows.add_sink(database_sink(args, "INSERT INTO windows VALUES (?, ?, ?, ?)", WINDOWS)).uid("database")
