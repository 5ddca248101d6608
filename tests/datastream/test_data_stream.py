import pickle

import pytest

from firesteel.common import Duration, TimestampAssigner, Types, WatermarkStrategy
from firesteel.connectors.function_sink import SinkFunctionSink
from firesteel.connectors.print_sink import PrintSink
from firesteel.datastream import (
    FilterFunction,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    MapStateDescriptor,
    OutputTag,
    Partitioner,
    ProcessFunction,
    SinkFunction,
    SlotSharingGroup,
    StreamExecutionEnvironment,
)
from firesteel.datastream.flink1 import AscendingTimestampExtractor
from firesteel.errors import GraphError
from firesteel.graph.nodes import AssignTimestamps, Chaining, Filter, FlatMap, Input, Map, Partitioning, Process, Write

PAIR = Types.TUPLE([Types.STRING(), Types.INT()])


class Same(ProcessFunction):
    def process_element(self, value, ctx):
        yield value


class KeyedSame(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield value


class Double(MapFunction):
    def map(self, value):
        return value * 2


class Discard(SinkFunction):
    def invoke(self, value, context):
        pass


class FirstField(KeySelector):
    def get_key(self, value):
        return value[0]


class Modulo(Partitioner):
    def partition(self, key, num_partitions):
        return key % num_partitions


@pytest.fixture
def env():
    return StreamExecutionEnvironment.get_execution_environment()


@pytest.fixture
def pairs(env):
    return env.from_collection([("a", 1)], PAIR)


def last(env):
    return env.graph.nodes()[-1]


# ---- transformations


@pytest.mark.parametrize(
    ("build", "operator", "name"),
    [
        (lambda s: s.map(len), Map, "Map"),
        (lambda s: s.flat_map(iter), FlatMap, "Flat Map"),
        (lambda s: s.filter(all), Filter, "Filter"),
        (lambda s: s.process(Same()), Process, "Process"),
        (lambda s: s.project(1), Map, "Projection"),
    ],
)
def test_a_transformation_is_a_node_behind_its_input(env, pairs, build, operator, name):
    stream = build(pairs)
    node = last(env)
    assert isinstance(node.operator, operator)
    assert (node.name, node.inputs, node.id) == (name, (Input(pairs.get_id()),), stream.get_id())
    assert stream.get_name() == name


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda s: s.map(5), r"map\(\) takes a MapFunction or a function, not 5"),
        (lambda s: s.map(Double), r"write Double\(\.\.\.\), not the class"),
        (lambda s: s.filter(Double()), r"filter\(\) takes a FilterFunction"),
        (lambda s: s.map(FirstField()), r"map\(\) takes a MapFunction"),
        (lambda s: s.process(len), "takes a ProcessFunction"),
        (lambda s: s.process(KeyedSame()), "call key_by"),
        (lambda s: s.map(len, output_type=int), "an output type must be a TypeInformation"),
        (lambda s: s.key_by(None), "takes a KeySelector, a function or the position"),
        (lambda s: s.key_by(True), "position"),
        (lambda s: s.key_by(2), "no such field"),
        (lambda s: s.union(5), r"union\(\) takes a DataStream"),
        (lambda s: s.connect(5), r"connect\(\) takes a DataStream"),
        (lambda s: s.partition_custom(5, len), r"partition_custom\(\) takes a Partitioner"),
        (lambda s: s.partition_custom(Modulo(), 5), r"partition_custom\(\) takes a KeySelector"),
        (lambda s: s.sink_to(5), r"sink_to\(\) takes a firesteel Sink"),
        (lambda s: s.add_sink(5), r"add_sink\(\) takes a SinkFunction or a function"),
        (lambda s: s.get_side_output("late"), r"takes an OutputTag, not 'late'"),
        (lambda s: s.assign_timestamps_and_watermarks(5), "takes a WatermarkStrategy"),
        (lambda s: s.broadcast("rules"), r"broadcast\(\) takes MapStateDescriptors, not 'rules'"),
        (lambda s: s.broadcast(MapStateDescriptor("a"), MapStateDescriptor("a")), "two descriptors of the name 'a'"),
        (lambda s: s.set_uid_hash("0" * 32), r"give the one that explain\(\) showed"),
        (lambda s: s.set_buffer_timeout(-2), "at least -1"),
        (lambda s: s.cache(), "batch job"),
    ],
)
def test_what_cannot_be_is_refused_when_it_is_described(env, pairs, build, message):
    with pytest.raises(GraphError, match=message):
        build(pairs)
    assert len(env.graph.nodes()) == 1


def test_the_other_stream_must_be_of_the_same_environment(pairs):
    other = StreamExecutionEnvironment.get_execution_environment().from_collection([("a", 1)])
    for combine in (pairs.union, pairs.connect):
        with pytest.raises(GraphError, match="streams of two environments"):
            combine(other)


def test_projection_takes_fields_of_tuples(env, pairs):
    for indexes, expected in (((1, 0), (1, "a")), ((1,), (1,)), ((0, 0), ("a", "a"))):
        pairs.project(*indexes)
        assert pickle.loads(pickle.dumps(last(env).operator.function))(("a", 1)) == expected
    for wrong, message in (((), "at least one field"), ((2,), "no such field"), (("a",), "no such field")):
        with pytest.raises(GraphError, match=message):
            pairs.project(*wrong)
    with pytest.raises(GraphError, match="takes streams of tuples"):
        env.from_collection([1], Types.INT()).project(0)
    with pytest.raises(GraphError, match="positions of fields"):
        env.from_collection([("a", 1)]).project("a")


# ---- declared types


def test_undeclared_types_are_anything(env):
    assert env.from_collection([1]).map(str).get_type() == Types.PICKLED_BYTE_ARRAY()


def test_a_declared_type_is_on_the_node_and_the_stream(env, pairs):
    for build in (pairs.map, pairs.flat_map, lambda f, t: pairs.process(Same(), t)):
        stream = build(len, Types.INT())
        assert last(env).output_type == stream.get_type() == Types.INT()
    assert pairs.map(len, [Types.INT()]).get_type() == Types.ROW([Types.INT()])


@pytest.mark.parametrize(
    "build",
    [
        lambda s: s.filter(bool),
        lambda s: s.key_by(0),
        lambda s: s.key_by(0).reduce(max),
        lambda s: s.key_by(0).sum(1),
        lambda s: s.key_by(0).filter_with_state(lambda value, state: (True, state)),
        lambda s: s.union(s),
        lambda s: s.rebalance(),
        lambda s: s.broadcast(),
        lambda s: s.partition_custom(Modulo(), len),
        lambda s: s.assign_timestamps_and_watermarks(WatermarkStrategy.no_watermarks()),
        lambda s: s.project(0, 1),
    ],
)
def test_operations_that_do_not_change_records_keep_their_type(pairs, build):
    assert build(pairs).get_type() == PAIR


def test_unions_are_of_one_type(env, pairs):
    with pytest.raises(GraphError, match="different types"):
        pairs.union(env.from_collection([1], Types.INT()))
    mixed = pairs.union(env.from_collection([("b", 2)]))
    assert mixed.get_type() == mixed.rebalance().get_type() == Types.PICKLED_BYTE_ARRAY()
    assert mixed.union(env.from_collection([1], Types.INT())).get_type() == Types.PICKLED_BYTE_ARRAY()


# ---- unions, side outputs, partitionings


def test_a_union_is_the_inputs_of_what_follows(env, pairs):
    other = env.from_collection([("b", 2)], PAIR)
    pairs.union(other.key_by(0), other.rebalance()).map(len)
    plain, unkeyed, spread = last(env).inputs
    assert plain == Input(pairs.get_id())
    assert unkeyed == Input(other.get_id())
    assert (spread.node, spread.partitioning) == (other.get_id(), Partitioning.REBALANCE)


def test_a_side_output_is_an_edge_with_the_tags_id(env, pairs):
    process = pairs.process(Same())
    late = process.get_side_output(OutputTag("late", Types.INT()))
    assert late.get_type() == Types.INT()
    assert process.get_side_output(OutputTag("late", Types.INT())).get_type() == Types.INT()
    late.rebalance().map(len)
    (edge,) = last(env).inputs
    assert (edge.node, edge.side, edge.partitioning) == (process.get_id(), "late", Partitioning.REBALANCE)
    late.key_by(abs).reduce(max)
    (edge,) = last(env).inputs
    assert (edge.side, edge.partitioning) == ("late", Partitioning.KEY)


def test_a_side_output_becomes_an_operator_when_it_is_named(env, pairs):
    process = pairs.process(Same())
    late = process.get_side_output(OutputTag("late")).name("late").set_parallelism(2)
    late.map(len)
    named, after = env.graph.nodes()[-2:]
    assert (named.name, named.parallelism, named.inputs) == ("late", 2, (Input(process.get_id(), side="late"),))
    assert after.inputs == (Input(named.id),)
    assert env.graph[process.get_id()].name == "Process"


def test_one_side_output_has_one_type(pairs):
    process = pairs.process(Same())
    process.get_side_output(OutputTag("late", Types.INT()))
    with pytest.raises(GraphError, match="'late' was asked for with type Integer and is now with type String"):
        process.get_side_output(OutputTag("late", Types.STRING()))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda s: s.union(s), "a union is none"),
        (lambda s: s.key_by(0), r"key_by\(\) is none"),
        (lambda s: s.rebalance(), "rebalance partitioning is none"),
        (lambda s: s.forward(), "forward partitioning is none"),
    ],
)
def test_what_is_no_operator_has_no_settings_and_no_side_outputs(pairs, build, message):
    stream = build(pairs)
    for use in (
        lambda: stream.name("x"),
        lambda: stream.uid("x"),
        lambda: stream.set_parallelism(2),
        lambda: stream.set_max_parallelism(2),
        lambda: stream.force_non_parallel(),
        lambda: stream.disable_chaining(),
        lambda: stream.start_new_chain(),
        lambda: stream.slot_sharing_group("x"),
        lambda: stream.set_buffer_timeout(5),
        lambda: stream.set_description("x"),
        lambda: stream.get_name(),
        lambda: stream.get_side_output(OutputTag("late")),
    ):
        with pytest.raises(GraphError, match=message):
            use()


def test_a_side_output_has_no_side_outputs(pairs):
    late = pairs.process(Same()).get_side_output(OutputTag("late"))
    with pytest.raises(GraphError, match="a side output is none"):
        late.get_side_output(OutputTag("later"))


@pytest.mark.parametrize(
    ("build", "partitioning"),
    [
        (lambda s: s.rebalance(), Partitioning.REBALANCE),
        (lambda s: s.rescale(), Partitioning.RESCALE),
        (lambda s: s.shuffle(), Partitioning.SHUFFLE),
        (lambda s: s.forward(), Partitioning.FORWARD),
        (lambda s: s.broadcast(), Partitioning.BROADCAST),
        (lambda s: s.global_(), Partitioning.GLOBAL),
    ],
)
def test_a_partitioning_is_how_the_next_edge_runs(env, pairs, build, partitioning):
    build(pairs.rebalance()).map(len)
    assert last(env).inputs == (Input(pairs.get_id(), partitioning, explicit=True),)


def test_a_custom_partitioning_has_partitioner_and_selector(env, pairs):
    partitioner, selector = Modulo(), FirstField()
    pairs.partition_custom(partitioner, selector).map(len)
    (edge,) = last(env).inputs
    assert (edge.partitioning, edge.partitioner, edge.key_selector) == (Partitioning.CUSTOM, partitioner, selector)
    pairs.partition_custom(partitioner, selector).rebalance().map(len)
    (edge,) = last(env).inputs
    assert (edge.partitioner, edge.key_selector) == (None, None)


# ---- time


def test_timestamps_are_assigned_by_an_operator(env, pairs):
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1))
    pairs.assign_timestamps_and_watermarks(strategy)
    assert last(env).operator == AssignTimestamps(strategy)


def test_flink_1_ways_of_assigning_timestamps_work(env, pairs):
    class Ascending(AscendingTimestampExtractor):
        def extract_ascending_timestamp(self, element):
            return element[1]

    for build in (
        lambda: pairs.assign_timestamps_and_watermarks(Ascending()),
        lambda: pairs.assign_ascending_timestamps(lambda element: element[1]),
    ):
        build()
        strategy = last(env).operator.strategy
        assert (strategy.kind, strategy.out_of_orderness_ms) == ("bounded", 0)
        assert isinstance(strategy.timestamp_assigner, TimestampAssigner)
        assert strategy.timestamp_assigner.extract_timestamp(("a", 5), -1) == 5


# ---- settings


def test_settings_are_on_the_operators_node(env, pairs):
    stream = (
        pairs.map(len)
        .name("lengths")
        .uid("lengths-1")
        .set_parallelism(3)
        .set_max_parallelism(30)
        .set_description("how long they are")
        .start_new_chain()
        .slot_sharing_group(SlotSharingGroup.builder("group").build())
        .set_buffer_timeout(-1)
    )
    node = last(env)
    assert (node.name, node.uid, node.parallelism, node.max_parallelism) == ("lengths", "lengths-1", 3, 30)
    assert (node.description, node.chaining) == ("how long they are", Chaining.HEAD)
    assert (stream.get_name(), stream.get_parallelism()) == ("lengths", 3)


def test_the_environment_decides_what_a_stream_does_not(env, pairs):
    env.set_parallelism(7)
    stream = pairs.map(len)
    assert stream.get_parallelism() == 7
    assert stream.get_execution_environment() is env
    assert stream.get_execution_config() is env.get_config()


def test_a_stream_can_be_kept_from_being_parallel(env, pairs):
    pairs.map(len).force_non_parallel()
    assert (last(env).parallelism, last(env).max_parallelism) == (1, 1)


# ---- sinks


def test_printing_knows_the_records_type(env, pairs):
    pairs.print("out").name("printed").uid("p").set_parallelism(1).set_description("d").disable_chaining()
    node = last(env)
    assert isinstance(node.operator, Write) and isinstance(node.operator.sink, PrintSink)
    assert (node.name, node.uid, node.parallelism, node.description, node.chaining) == (
        "printed",
        "p",
        1,
        "d",
        Chaining.NEVER,
    )
    pairs.print_to_err()
    assert (last(env).name, last(env).inputs) == ("Print to Std. Err", (Input(pairs.get_id()),))


def test_sink_functions_and_functions_are_sinks(env, pairs):
    for function in (Discard(), len):
        pairs.add_sink(function)
        assert isinstance(last(env).operator.sink, SinkFunctionSink)
        assert last(env).operator.sink.function is function
    sink = PrintSink()
    pairs.add_sink(sink)
    assert last(env).operator == Write(sink)


def test_a_filter_function_is_no_sink_function(pairs):
    class All(FilterFunction):
        def filter(self, value):
            return True

    with pytest.raises(GraphError, match="takes a SinkFunction"):
        pairs.add_sink(All())
