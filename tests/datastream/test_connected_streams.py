import pytest

from firesteel.common import Types
from firesteel.datastream import (
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedCoProcessFunction,
    MapFunction,
    OutputTag,
    ProcessFunction,
    StreamExecutionEnvironment,
)
from firesteel.errors import GraphError
from firesteel.graph.nodes import CoFlatMap, CoMap, CoProcess, Input, Partitioning


class Maps(CoMapFunction):
    def map1(self, value):
        return value

    def map2(self, value):
        return None


class FlatMaps(CoFlatMapFunction):
    def flat_map1(self, value):
        yield value

    def flat_map2(self, value):
        return None


class Processes(CoProcessFunction):
    def process_element1(self, value, ctx):
        yield value

    def process_element2(self, value, ctx):
        yield value


class KeyedProcesses(KeyedCoProcessFunction):
    def process_element1(self, value, ctx):
        yield value

    def process_element2(self, value, ctx):
        yield value


class Same(ProcessFunction):
    def process_element(self, value, ctx):
        yield value


class Map(MapFunction):
    def map(self, value):
        return value


@pytest.fixture
def env():
    return StreamExecutionEnvironment.get_execution_environment()


@pytest.fixture
def numbers(env):
    return env.from_collection([1], Types.INT())


@pytest.fixture
def words(env):
    return env.from_collection(["a"], Types.STRING())


def last(env):
    return env.graph.nodes()[-1]


@pytest.mark.parametrize(
    ("build", "operator", "name"),
    [
        (lambda c: c.map(Maps(), Types.INT()), CoMap, "Co-Map"),
        (lambda c: c.flat_map(FlatMaps(), Types.INT()), CoFlatMap, "Co-Flat Map"),
        (lambda c: c.process(Processes(), Types.INT()), CoProcess, "Co-Process"),
    ],
)
def test_connected_streams_are_two_ports_of_one_operator(env, numbers, words, build, operator, name):
    stream = build(numbers.connect(words))
    node = last(env)
    assert isinstance(node.operator, operator)
    assert (node.name, stream.get_type()) == (name, Types.INT())
    assert node.inputs == (Input(numbers.get_id()), Input(words.get_id(), port=1))


def test_all_of_a_union_and_a_side_output_arrive_at_their_port(env, numbers, words):
    side = words.process(Same()).get_side_output(OutputTag("side"))
    numbers.union(numbers).connect(side.union(words.rebalance())).map(Maps())
    assert [(edge.port, edge.side, edge.partitioning.value) for edge in last(env).inputs] == [
        (0, None, "forward"),
        (0, None, "forward"),
        (1, "side", "forward"),
        (1, None, "rebalance"),
    ]


def test_a_stream_can_be_connected_with_itself(env, numbers):
    numbers.connect(numbers).map(Maps())
    assert [edge.port for edge in last(env).inputs] == [0, 1]


def test_keyed_streams_bring_their_selectors(env, numbers, words):
    for connected in (
        numbers.connect(words).key_by(abs, len),
        numbers.key_by(abs).connect(words.key_by(len)),
        numbers.key_by(str).connect(words).key_by(abs, len),
    ):
        for function in (KeyedProcesses(), Processes()):
            connected.process(function)
            node = last(env)
            assert (node.name, node.keyed) == ("Keyed Co-Process", True)
            assert [(e.partitioning, e.key_selector, e.port) for e in node.inputs] == [
                (Partitioning.KEY, abs, 0),
                (Partitioning.KEY, len, 1),
            ]


@pytest.mark.parametrize("function", [Maps(), FlatMaps(), Processes(), KeyedProcesses()])
def test_one_keyed_stream_is_not_enough(env, numbers, words, function):
    for connected, message in (
        (numbers.key_by(abs).connect(words), "the first is keyed and the second is not"),
        (numbers.connect(words.key_by(len)), "the second is keyed and the first is not"),
    ):
        method = {Maps: connected.map, FlatMaps: connected.flat_map}.get(type(function), connected.process)
        with pytest.raises(GraphError, match=message):
            method(function)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda c: c.map(abs), "takes a CoMapFunction"),
        (lambda c: c.map(Map()), "takes a CoMapFunction"),
        (lambda c: c.flat_map(Maps()), "takes a CoFlatMapFunction"),
        (lambda c: c.process(Maps()), "takes a CoProcessFunction or a KeyedCoProcessFunction"),
        (lambda c: c.process(KeyedProcesses()), r"call key_by\(selector1, selector2\)"),
    ],
)
def test_the_wrong_function_is_refused(numbers, words, build, message):
    with pytest.raises(GraphError, match=message):
        build(numbers.connect(words))


def test_connected_streams_tell_what_they_are_of(env, numbers, words):
    connected = numbers.connect(words)
    assert (connected.stream1, connected.get_second_input()) == (numbers, words)
    assert (connected.get_type1(), connected.get_type2()) == (Types.INT(), Types.STRING())
    assert connected.get_execution_environment() is env


def test_connected_streams_can_have_several_fields_as_their_key(env):
    left, right = env.from_collection([("a", 1, "x")]), env.from_collection([("x", "a")])
    both = left.connect(right).key_by([0, 2], [1, 0])
    selectors = [stream._inputs[0].key_selector for stream in (both.stream1, both.stream2)]
    assert selectors[0](("a", 1, "x")) == selectors[1](("x", "a")) == ("a", "x")


def test_a_key_type_of_connected_streams_that_is_no_type_is_refused(env):
    left = env.from_collection([("a", 1)])
    with pytest.raises(GraphError, match=r"key_type must be a TypeInformation such as Types.STRING\(\), not 1"):
        left.connect(left).key_by(0, 0, 1)
    with pytest.raises(GraphError, match=r"where\(\): key_type must be a TypeInformation"):
        left.join(left).where(0, 1)
    with pytest.raises(GraphError, match=r"equal_to\(\): key_type must be a TypeInformation"):
        left.join(left).where(0).equal_to(0, 1)
