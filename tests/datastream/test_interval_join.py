"""What is refused when an interval join is described."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.common import Duration, Time, Types
from firesteel.datastream import DataStream, KeyedStream, OutputTag, ProcessJoinFunction, StreamExecutionEnvironment
from firesteel.errors import GraphError
from firesteel.graph.nodes import IntervalJoin


class Both(ProcessJoinFunction):
    def process_element(self, left, right, ctx):  # type: ignore[no-untyped-def]
        yield left, right


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment()


def first(record: Any) -> Any:
    return record[0]


def keyed(env: StreamExecutionEnvironment, **key: Any) -> KeyedStream:
    return env.from_collection([("a", 1)]).key_by(first, **key)


def planned(stream: DataStream) -> IntervalJoin:
    operator = stream.get_execution_environment().graph[stream.get_id()].operator
    assert isinstance(operator, IntervalJoin)
    return operator


def test_bounds_are_included_unless_told_otherwise(env: StreamExecutionEnvironment) -> None:
    join = keyed(env).interval_join(keyed(env)).between(Time.seconds(-5), Duration.of_millis(10))
    both = planned(join.process(Both()))
    assert (both.lower, both.upper) == (-5000, 10)
    neither = planned(join.lower_bound_exclusive().upper_bound_exclusive().process(Both()))
    assert (neither.lower, neither.upper) == (-4999, 9)


def test_side_outputs_for_late_records_are_named_by_their_tags(env: StreamExecutionEnvironment) -> None:
    join = keyed(env).interval_join(keyed(env)).between(Time.seconds(0), Time.seconds(1))
    left, right = OutputTag("left"), OutputTag("right")
    node = planned(join.side_output_left_late_data(left).side_output_right_late_data(right).process(Both()))
    assert (node.left_late, node.right_late) == (left, right)
    with pytest.raises(GraphError, match="takes an OutputTag, not 'left'"):
        join.side_output_left_late_data("left")  # type: ignore[arg-type]


def test_bounds_upside_down_are_refused(env: StreamExecutionEnvironment) -> None:
    with pytest.raises(GraphError, match=r"between\(5000 ms, -5000 ms\) has its bounds upside down"):
        keyed(env).interval_join(keyed(env)).between(Time.seconds(5), Time.seconds(-5))


def test_an_interval_with_nothing_in_it_is_refused(env: StreamExecutionEnvironment) -> None:
    join = keyed(env).interval_join(keyed(env)).between(Time.seconds(1), Time.seconds(1))
    assert planned(join.process(Both())).lower == 1000
    with pytest.raises(GraphError, match="no two records can be joined"):
        join.upper_bound_exclusive().process(Both())


@pytest.mark.parametrize(("bound", "why"), [(5, "not 5"), ("5 s", "not '5 s'"), (Duration(10), "10 ns is finer")])
def test_bounds_are_times_in_whole_milliseconds(env: StreamExecutionEnvironment, bound: Any, why: str) -> None:
    with pytest.raises(GraphError, match=f"the lower bound of an interval join is .*{why}"):
        keyed(env).interval_join(keyed(env)).between(bound, Time.seconds(9))


def test_both_streams_have_to_be_keyed(env: StreamExecutionEnvironment) -> None:
    with pytest.raises(GraphError, match=r"takes a keyed stream: call key_by\(...\) on the other"):
        keyed(env).interval_join(env.from_collection([1]))  # type: ignore[arg-type]
    with pytest.raises(GraphError, match="takes a DataStream, not 3"):
        keyed(env).interval_join(3)  # type: ignore[arg-type]
    assert not hasattr(DataStream, "interval_join")


def test_keys_of_two_types_never_meet(env: StreamExecutionEnvironment) -> None:
    with pytest.raises(GraphError, match="of the first stream are of type String and those of the second of type Long"):
        keyed(env, key_type=Types.STRING()).interval_join(keyed(env, key_type=Types.LONG()))
    pairs = env.from_collection([("a", 1)], type_info=Types.TUPLE([Types.STRING(), Types.LONG()]))
    with pytest.raises(GraphError, match="would ever meet"):
        pairs.key_by(0).interval_join(pairs.key_by(1))
    with pytest.raises(GraphError, match="would ever meet"):
        pairs.connect(pairs).key_by(0, 1)._is_keyed()
    pairs.key_by(0).interval_join(keyed(env))  # whose keys nobody has declared


def test_streams_of_two_programs_cannot_be_joined(env: StreamExecutionEnvironment) -> None:
    other = StreamExecutionEnvironment()
    with pytest.raises(GraphError, match="streams of two environments"):
        keyed(env).interval_join(keyed(other))


def test_the_function_is_a_process_join_function(env: StreamExecutionEnvironment) -> None:
    join = keyed(env).interval_join(keyed(env)).between(Time.seconds(0), Time.seconds(1))
    with pytest.raises(GraphError, match="takes a ProcessJoinFunction, not <function"):
        join.process(lambda left, right: (left, right))  # type: ignore[arg-type]
