"""Side outputs, timers, two inputs, partitionings and declared types in whole programs, in one process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Duration, Row, Types, WatermarkStrategy
from firesteel.datastream import (
    CoFlatMapFunction,
    CoMapFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    MapStateDescriptor,
    OutputTag,
    ProcessFunction,
    StreamExecutionEnvironment,
    TimeDomain,
    ValueStateDescriptor,
)
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.errors import FiresteelError, SideOutputError, StateError, TimerError, TypeMismatchError, UserCodeError
from firesteel.graph.nodes import Collect
from tests.support.local_engine import LocalRun
from tests.support.scheduled import Scheduled
from tests.support.slicing import Sliced

MAX = (1 << 63) - 1


def environment(parallelism: int = 2) -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)


def collect(env: StreamExecutionEnvironment, stream: Any, directory: Path) -> list[Any]:
    stream._end(Collect(), "Collect")
    return LocalRun(env, str(directory)).run().collected()


def failing(tmp_path: Path, build: Callable[[StreamExecutionEnvironment], Any]) -> FiresteelError:
    env = environment()
    build(env).print()
    with pytest.raises(FiresteelError) as caught:
        LocalRun(env, str(tmp_path)).run()
    return caught.value


COLD = OutputTag("cold", Types.STRING())


class Split(ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        if value < 5:
            yield COLD, f"cold {value}"
        else:
            yield value


def test_a_side_output_gets_its_records_and_the_stream_the_others(tmp_path: Path) -> None:
    env = environment()
    hot = env.from_sequence(1, 9).process(Split())
    assert sorted(collect(env, hot.get_side_output(COLD), tmp_path)) == [f"cold {n}" for n in range(1, 5)]
    env = environment()
    hot = env.from_sequence(1, 9).process(Split())
    hot.get_side_output(COLD).print()
    assert sorted(collect(env, hot, tmp_path / "b")) == [5, 6, 7, 8, 9]


def test_a_side_output_nobody_reads_is_an_error_that_names_it(tmp_path: Path) -> None:
    error = failing(tmp_path, lambda env: env.from_sequence(1, 1).process(Split()))
    assert isinstance(error, SideOutputError)
    assert "'cold'" in str(error) and "get_side_output" in str(error) and "on the record 1" in str(error)


def test_a_side_output_of_the_wrong_type_is_an_error(tmp_path: Path) -> None:
    class Wrong(ProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Any:
            yield COLD, value

    def build(env: StreamExecutionEnvironment) -> Any:
        return env.from_sequence(1, 1).process(Wrong()).get_side_output(COLD)

    error = failing(tmp_path, build)
    assert isinstance(error, TypeMismatchError)


@pytest.mark.parametrize(
    ("declared", "value", "part"),
    [(Types.STRING(), 7, "7"), (Types.TUPLE([Types.STRING(), Types.INT()]), ("a", "b"), "[1]")],
)
def test_a_record_of_another_type_than_declared_names_operator_record_and_field(
    tmp_path: Path, declared: Any, value: Any, part: str
) -> None:
    error = failing(
        tmp_path, lambda env: env.from_sequence(1, 1).map(lambda n: value, output_type=declared).name("wrong")
    )
    assert isinstance(error, TypeMismatchError)
    assert "operator 'wrong'" in str(error) and part in str(error)


def test_a_declared_row_gives_tuples_names_and_a_declared_float_has_32_bits(tmp_path: Path) -> None:
    env = environment(1)
    named = Types.ROW_NAMED(["id", "heat"], [Types.INT(), Types.FLOAT()])
    rows = env.from_collection([(1, 0.1)], type_info=named).map(lambda row: (row.id, row.heat, type(row)))
    assert collect(env, rows, tmp_path) == [(1, 0.10000000149011612, Row)]


def stamped(env: StreamExecutionEnvironment, values: list[Any], bound: int = 0) -> Any:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(bound))
    return env.from_collection(values).assign_timestamps_and_watermarks(
        strategy.with_timestamp_assigner(lambda value, _: value[1])
    )


class Alarm(KeyedProcessFunction):
    """At the end of each key's time: what it counted, when, and by which clock."""

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Any:
        self.count.update((self.count.value() or 0) + 1)
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 10)
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 11)
        ctx.timer_service().delete_event_time_timer(ctx.timestamp() + 11)

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        assert ctx.timestamp() == timestamp
        yield (
            ctx.get_current_key(),
            timestamp,
            self.count.value(),
            ctx.time_domain(),
            ctx.timer_service().current_watermark(),
        )


def test_event_timers_fire_in_order_of_time_when_the_input_ends(tmp_path: Path) -> None:
    env = environment(1)
    fired = stamped(env, [("a", 5), ("b", 1), ("a", 3), ("a", 3)]).key_by(lambda v: v[0]).process(Alarm())
    event = TimeDomain.EVENT_TIME
    assert collect(env, fired, tmp_path) == [
        ("b", 11, 1, event, MAX),
        ("a", 13, 3, event, MAX),
        ("a", 15, 3, event, MAX),
    ]


def test_event_timers_fire_on_the_way_and_their_output_has_their_time(tmp_path: Path) -> None:
    class Times(ProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Any:
            yield value[:3], ctx.timestamp()

    env = environment(1)
    values = [("a", n) for n in range(10_000)]
    out = collect(env, stamped(env, values).key_by(lambda v: v[0]).process(Alarm()).process(Times()), tmp_path)
    assert [time for _, time in out] == [n + 10 for n in range(10_000)]
    assert out[0] == (("a", 10, 4096), 10)  # by the watermark that follows the 4,096th record


class Ticking(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        ctx.timer_service().register_processing_time_timer(ctx.timer_service().current_processing_time() - 1)
        ctx.timer_service().register_processing_time_timer(MAX - 1)

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield ctx.get_current_key(), ctx.time_domain()


def test_processing_timers_fire_when_they_are_due_and_not_because_the_input_ends(tmp_path: Path) -> None:
    env = environment(1)
    keys = env.from_collection(["a", "b"]).key_by(lambda v: v)
    out = collect(env, keys.process(Ticking()), tmp_path)
    assert sorted(out) == [("a", TimeDomain.PROCESSING_TIME), ("b", TimeDomain.PROCESSING_TIME)]


class Late(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        ctx.timer_service().register_processing_time_timer(ctx.timer_service().current_processing_time() + 10)

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield ctx.get_current_key(), timestamp


def test_processing_timers_of_a_finished_job_fire_with_new_input_and_not_because_it_is_started_again(
    tmp_path: Path,
) -> None:
    def fired(now: int, *epochs: list[str]) -> list[Any]:
        env = environment().enable_checkpointing(50)
        keys = env.from_source(Scheduled(*epochs), source_name="keys").uid("keys").key_by(lambda v: v)
        keys.process(Late()).uid("late")._end(Collect(), "Collect")
        return LocalRun(env, str(tmp_path), now=lambda: now).run().collected()

    assert fired(0, ["a"]) == []
    assert fired(100, ["a"]) == []  # as if its driver had died right after the last checkpoint, and nobody had noticed
    assert fired(200, ["a"]) == []  # nor does it matter how often
    assert fired(300, ["a"], ["b"]) == [("a", 10)]  # it goes on, with all it had


class UnkeyedTimer(ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        assert ctx.timer_service().current_processing_time() > 0
        ctx.timer_service().register_event_time_timer(1)


def test_a_timer_on_a_stream_that_is_not_keyed_is_a_clear_error(tmp_path: Path) -> None:
    error = failing(tmp_path, lambda env: env.from_sequence(1, 1).process(UnkeyedTimer()))
    assert isinstance(error, TimerError)
    assert "key_by" in str(error)


class TimerWithoutTime(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        ctx.timer_service().register_event_time_timer(ctx.timestamp())


def test_a_timer_at_no_time_says_that_the_stream_has_no_timestamps(tmp_path: Path) -> None:
    error = failing(tmp_path, lambda env: env.from_sequence(1, 1).key_by(abs).process(TimerWithoutTime()))
    assert isinstance(error, TimerError)
    assert "assign_timestamps_and_watermarks" in str(error)


class BadTimer(Alarm):
    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        raise ValueError("no")


def test_a_failing_timer_is_named_with_its_time_and_key(tmp_path: Path) -> None:
    error = failing(tmp_path, lambda env: stamped(env, [("a", 5)]).key_by(lambda v: v[0]).process(BadTimer()))
    assert isinstance(error, UserCodeError)
    assert "on the timer 15 of the key 'a'" in str(error)


class Enrich(KeyedCoProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.names = runtime_context.get_map_state(MapStateDescriptor("names", Types.INT(), Types.STRING()))

    def process_element1(self, value: Any, ctx: Any) -> Any:
        yield "order", value, sorted(self.names.values())

    def process_element2(self, value: Any, ctx: Any) -> Any:
        self.names.put(value, f"name {value}")


def test_connected_keyed_streams_share_the_state_of_a_key(tmp_path: Path) -> None:
    env = environment()
    names = env.from_sequence(1, 6).key_by(lambda n: n % 2)
    orders = env.from_source(Sliced(NumberSequenceSource(1, 40), 4), WatermarkStrategy.no_watermarks(), "orders")
    out = collect(env, orders.key_by(lambda n: n % 2).connect(names).process(Enrich()), tmp_path)
    assert sorted(value for _, value, _ in out) == list(range(1, 41))
    for _, value, known in out:
        all_names = [f"name {n}" for n in range(1, 7) if n % 2 == value % 2]
        assert set(known) <= set(all_names)  # in one epoch either stream may be first
        assert (value - 1) % 20 < 8 or known == all_names  # two subtasks, of which each has 20 orders


class Both(CoMapFunction):
    def map1(self, value: Any) -> Any:
        return "one", value

    def map2(self, value: Any) -> Any:
        return None if value == 3 else ("two", value)


class Many(CoFlatMapFunction):
    def flat_map1(self, value: Any) -> Any:
        return [value] * 2

    def flat_map2(self, value: Any) -> Any:
        return None


def test_connected_streams_without_keys_go_to_a_function_for_each(tmp_path: Path) -> None:
    env = environment()
    connected = env.from_sequence(1, 2).connect(env.from_sequence(3, 4))
    assert sorted(collect(env, connected.map(Both()), tmp_path)) == [("one", 1), ("one", 2), ("two", 4)]
    env = environment()
    connected = env.from_sequence(1, 2).connect(env.from_sequence(3, 4))
    assert sorted(collect(env, connected.flat_map(Many()), tmp_path / "b")) == [1, 1, 2, 2]


def test_every_partitioning_sends_each_record_where_it_says(tmp_path: Path) -> None:
    class Where(ProcessFunction):
        def open(self, runtime_context: Any) -> None:
            self.index = runtime_context.get_index_of_this_subtask()

        def process_element(self, value: Any, ctx: Any) -> Any:
            yield self.index, value

    def places(spread: Callable[[Any], Any], name: str) -> list[Any]:
        env = environment(3)
        return sorted(collect(env, spread(env.from_sequence(0, 29)).process(Where()), tmp_path / name))

    assert places(lambda s: s.broadcast(), "broadcast") == [(i, n) for i in range(3) for n in range(30)]
    assert places(lambda s: s.global_(), "global") == [(0, n) for n in range(30)]
    custom = places(lambda s: s.partition_custom(lambda key, count: key % count, lambda n: n + 1), "custom")
    assert custom == sorted(((n + 1) % 3, n) for n in range(30))
    for name in ("rebalance", "rescale", "shuffle"):
        reached = places(lambda s, name=name: getattr(s, name)(), name)
        assert sorted(n for _, n in reached) == list(range(30))


def test_a_partitioner_that_names_no_subtask_is_an_error_with_the_record(tmp_path: Path) -> None:
    error = failing(
        tmp_path, lambda env: env.from_sequence(5, 5).partition_custom(lambda k, n: 7, lambda v: v).map(str)
    )
    assert "returned 7" in str(error) and "from 0 to 1" in str(error) and "on the record 5" in str(error)


def test_the_current_key_of_a_stream_that_is_not_keyed_is_a_clear_error(tmp_path: Path) -> None:
    class Asks(ProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Any:
            ctx.get_current_key()

    assert isinstance(failing(tmp_path, lambda env: env.from_sequence(1, 1).process(Asks())), StateError)


def test_a_stream_can_be_used_by_several_jobs_and_their_sinks_run_once() -> None:
    env = environment(1)
    numbers = env.from_sequence(1, 3)
    numbers.print()
    first = env.plan()
    env.graph.executed()
    numbers.map(str).print()
    second = env.plan()
    assert [op.name for op in first.operators] == ["Sequence Source", "Print to Std. Out"]
    assert [op.name for op in second.operators] == ["Sequence Source", "Map", "Print to Std. Out"]
