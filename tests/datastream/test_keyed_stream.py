import pickle
from operator import itemgetter

import cloudpickle
import pytest

from firesteel.common import Row, Types
from firesteel.datastream import (
    KeyedProcessFunction,
    KeySelector,
    ProcessFunction,
    ReduceFunction,
    StreamExecutionEnvironment,
)
from firesteel.errors import GraphError
from firesteel.graph.nodes import Input, Partitioning, Process, Reduce

PAIR = Types.TUPLE([Types.STRING(), Types.INT()])


class FirstField(KeySelector):
    def get_key(self, value):
        return value[0]


class KeyedSame(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield value


class Same(ProcessFunction):
    def process_element(self, value, ctx):
        yield value


class Remembered:
    """A ValueState of one key, and the runtime context that gives it out."""

    def __init__(self):
        self.held = None

    def get_state(self, descriptor):
        return self

    def value(self):
        return self.held

    def update(self, value):
        self.held = value


@pytest.fixture
def env():
    return StreamExecutionEnvironment.get_execution_environment()


@pytest.fixture
def pairs(env):
    return env.from_collection([("a", 1)], PAIR)


@pytest.fixture
def keyed(pairs):
    return pairs.key_by(lambda pair: pair[0])


def last(env):
    return env.graph.nodes()[-1]


def test_key_by_is_how_the_next_edge_runs(env, pairs):
    selector = FirstField()
    pairs.rebalance().key_by(selector).reduce(max)
    assert last(env).inputs == (Input(pairs.get_id(), Partitioning.KEY, key_selector=selector),)
    assert isinstance(last(env).operator, Reduce)


@pytest.mark.parametrize("field", [0, -2, "word"])
def test_keys_can_be_fields(env, field):
    words = env.from_collection([Row(word="a", n=1)], Types.ROW_NAMED(["word", "n"], [Types.STRING(), Types.INT()]))
    words.key_by(field).reduce(max)
    selector = pickle.loads(pickle.dumps(last(env).inputs[0].key_selector))
    assert selector(Row(word="a", n=1)) == "a"


NAMES = Types.ROW_NAMED(["word", "n", "town"], [Types.STRING(), Types.INT(), Types.STRING()])


@pytest.mark.parametrize("fields", [(0, 2), (0, -1), ("word", "town"), ("word", 2), ([0, 2],), (("word", "town"),)])
@pytest.mark.parametrize("declared", [NAMES, None])
def test_several_fields_are_one_key_of_all_of_them(env, fields, declared):
    record = Row(word="a", n=1, town="x")
    keyed = env.from_collection([record], declared).key_by(*fields)
    keyed.reduce(max)
    selector = pickle.loads(pickle.dumps(last(env).inputs[0].key_selector))
    assert selector(record) == ("a", "x")
    assert keyed._key_type == (declared and Types.TUPLE([Types.STRING(), Types.STRING()]))


@pytest.mark.parametrize(
    ("value", "declared"), [("ab", Types.STRING()), (7, Types.LONG()), (b"ab", Types.PRIMITIVE_ARRAY(Types.BYTE()))]
)
def test_a_value_declared_as_plain_is_its_own_field_0(env, value, declared):
    keyed = env.from_collection([value], declared).key_by(0)
    assert keyed._inputs[0].key_selector(value) == value
    with pytest.raises(GraphError, match=r"key_by\(1\): there is no such field"):
        env.from_collection(["ab"], Types.STRING()).key_by(1)


def test_fields_of_tuples_are_selected_by_the_fastest_means(env, pairs):
    for stream in (pairs, env.from_collection([("a", 1)])):
        assert isinstance(stream.key_by(0)._inputs[0].key_selector, itemgetter)
        assert isinstance(stream.key_by(0, 1)._inputs[0].key_selector, itemgetter)


def test_any_number_of_fields_can_be_the_key(env):
    env.from_collection([("a", 1, "x")]).key_by(2, 1, 0).reduce(max)
    assert last(env).inputs[0].key_selector(("a", 1, "x")) == ("x", 1, "a")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((len, "word"), r"key_by\(\): key_type must be a TypeInformation such as Types.STRING\(\), not 'word'"),
        ((0, int), "key_type must be a TypeInformation"),
        ((0, Types.INT), "key_type must be a TypeInformation"),
        ((0, True), "position"),
        ((0, None, 1), "position"),
        (([],), "at least one field"),
        (([0, len],), "position"),
        ((0, 2), "no such field"),
    ],
)
def test_a_key_that_cannot_be_meant_is_refused(pairs, arguments, message):
    with pytest.raises(GraphError, match=message):
        pairs.key_by(*arguments)


def test_a_second_key_by_replaces_the_first(env, pairs, keyed):
    selector = FirstField()
    keyed.key_by(selector).reduce(max)
    assert last(env).inputs == (Input(pairs.get_id(), Partitioning.KEY, key_selector=selector),)


def test_functions_of_a_keyed_stream_are_keyed(env, keyed):
    for build in (keyed.map, keyed.flat_map, keyed.filter):
        build(len)
        assert last(env).keyed
    keyed.process(KeyedSame(), Types.INT())
    assert last(env).keyed
    assert last(env).output_type == Types.INT()


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda s: s.process(Same()), "derive it from KeyedProcessFunction"),
        (lambda s: s.process(len), "takes a KeyedProcessFunction"),
        (lambda s: s.reduce(5), r"reduce\(\) takes a ReduceFunction"),
        (lambda s: s.sum(None), r"sum\(\) takes the position \(int\) or the name"),
        (lambda s: s.max(2), r"max\(2\): there is no such field in the stream's type TupleTypeInfo"),
        (lambda s: s.min_by("n"), r"min_by\('n'\): there is no such field"),
        (lambda s: s.map_with_state(5), r"map_with_state\(\) takes a function of \(value, state\)"),
        (lambda s: s.rebalance(), r"rebalance\(\) cannot follow key_by"),
        (lambda s: s.rescale(), r"rescale\(\) cannot follow key_by"),
        (lambda s: s.shuffle(), r"shuffle\(\) cannot follow key_by"),
        (lambda s: s.forward(), r"forward\(\) cannot follow key_by"),
        (lambda s: s.global_(), r"global_\(\) cannot follow key_by"),
        (lambda s: s.broadcast(), r"broadcast\(\) cannot follow key_by"),
        (lambda s: s.partition_custom(max, len), r"partition_custom\(\) cannot follow key_by"),
    ],
)
def test_what_a_keyed_stream_cannot_do_is_refused(env, keyed, build, message):
    with pytest.raises(GraphError, match=message):
        build(keyed)
    assert len(env.graph.nodes()) == 1


@pytest.mark.parametrize(
    ("method", "expected"),
    [("sum", ("a", 3)), ("min", ("a", 1)), ("max", ("a", 2)), ("min_by", ("b", 1)), ("max_by", ("a", 2))],
)
def test_aggregates_are_reductions(env, keyed, method, expected):
    getattr(keyed, method)(1)
    function = last(env).operator.function
    assert isinstance(function, ReduceFunction)
    assert function.reduce(("a", 2), ("b", 1)) == expected


def run_with_state(env, values):
    """The outputs and the final state of the last operator, for values of one key."""
    operator = last(env).operator
    assert isinstance(operator, Process) and isinstance(operator.function, KeyedProcessFunction)
    function, state = pickle.loads(cloudpickle.dumps(operator.function)), Remembered()
    function.open(state)
    return [list(function.process_element(value, None) or ()) for value in values], state.held


def test_map_with_state_gives_one_output_and_keeps_the_state(env, keyed):
    stream = keyed.map_with_state(lambda value, count: (value * 10, (count or 0) + 1), Types.INT())
    assert stream.get_type() == Types.INT()
    assert run_with_state(env, [1, 2, 3]) == ([[10], [20], [30]], 3)


def test_flat_map_with_state_gives_any_number_of_outputs(env, keyed):
    keyed.flat_map_with_state(lambda value, last: ([last, value] if last else None, value))
    assert run_with_state(env, [1, 2, 3]) == ([[], [1, 2], [2, 3]], 3)


def test_filter_with_state_keeps_what_holds(env, keyed):
    stream = keyed.filter_with_state(lambda value, seen: (value not in (seen or ()), (seen or ()) + (value,)))
    assert stream.get_type() == PAIR
    assert run_with_state(env, [1, 1, 2, 1]) == ([[1], [], [2], []], (1, 1, 2, 1))


def test_a_state_of_none_is_no_state(env, keyed):
    keyed.map_with_state(lambda value, state: (state, value if value else None))
    assert run_with_state(env, [5, 0, 7]) == ([[None], [5], [None]], 7)


def test_a_function_with_state_must_return_two_things(env, keyed):
    keyed.map_with_state(lambda value, state: value)
    with pytest.raises(TypeError, match=r"map_with_state\(\) must return \(output, new state\), not 1"):
        run_with_state(env, [1])
