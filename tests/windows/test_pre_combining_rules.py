"""Where records are combined before they are sent, where that is refused, and what functions may do."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from firesteel.common import Configuration, Time, WatermarkStrategy
from firesteel.datastream import (
    DataStream,
    KeyedStream,
    OutputTag,
)
from firesteel.datastream.pre_combining import _names_read
from firesteel.datastream.window import (
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from firesteel.errors import FiresteelError, GraphError
from firesteel.graph.nodes import Window
from firesteel.runtime import exchange
from firesteel.runtime.windows import aligned, precombining
from firesteel.testing import GraphHarness
from tests.windows.cases import ms
from tests.windows.combining import (
    Named,
    Texts,
    counting,
    environment,
)


class Stub(Texts):
    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        raise NotImplementedError


class Opened(Texts):
    def open(self, runtime_context: Any) -> None:
        pass


class Forgetful(Texts):
    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        acc_a.extend(acc_b)


def keyed(*records: Any, parallelism: int = 1) -> KeyedStream:
    env = environment(parallelism, True)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda record, _: 1)
    return env.from_collection(list(records)).assign_timestamps_and_watermarks(strategy).key_by(lambda record: "a")


TUMBLING, SLIDING = TumblingEventTimeWindows.of(Time.seconds(1)), SlidingEventTimeWindows.of(ms(10), ms(5))

REFUSED: list[tuple[Callable[[KeyedStream], Any], str]] = [
    (lambda s: s.window(TUMBLING).pre_combine().evictor(CountEvictor.of(1)).reduce(max), "evictor"),
    (lambda s: s.window(TUMBLING).pre_combine().apply(Named()), "need all records"),
    (lambda s: s.window(TUMBLING).pre_combine().aggregate(Stub()), "does not look at both accumulators"),
    (lambda s: s.window(TUMBLING).pre_combine().aggregate(Opened()), "has open"),
    (lambda s: s.window(TUMBLING).pre_combine().trigger(CountTrigger.of(2)).reduce(max), "CountTrigger"),
    (lambda s: s.window(TUMBLING).pre_combine().allowed_lateness(1).reduce(max), "allowed lateness"),
    (lambda s: s.window(TUMBLING).pre_combine().side_output_late_data(OutputTag("late")).reduce(max), "late"),
    (lambda s: s.window(EventTimeSessionWindows.with_gap(ms(5))).pre_combine().reduce(max), "neither tumbling nor"),
    (lambda s: s.count_window(5).pre_combine().reduce(max), "neither tumbling nor"),
    (lambda s: s.window(TUMBLING).pre_combine("yes"), "True or False"),
]


@pytest.mark.parametrize(("describe", "reason"), REFUSED)
def test_what_cannot_be_combined_is_refused_with_the_reason(describe: Any, reason: str) -> None:
    with pytest.raises(GraphError, match=reason):
        describe(keyed())


def decision(stream: DataStream) -> bool | None:
    stream.print()
    plan = stream.get_execution_environment().plan()
    return next(each.operator.pre_combine for each in plan.operators if isinstance(each.operator, Window))


def test_it_is_on_where_it_can_be_and_off_by_setting_or_by_stream() -> None:
    assert decision(keyed().window(TUMBLING).sum(1)) is True
    assert decision(keyed().window(SLIDING).aggregate(Texts())) is True
    assert decision(keyed().window(TUMBLING).aggregate(Stub())) is False
    assert decision(keyed().window(TUMBLING).pre_combine(False).sum(1)) is False
    off = keyed()
    off.get_execution_environment().configure(Configuration().set_string("firesteel.window.pre-combine", "false"))
    assert decision(off.window(TUMBLING).sum(1)) is False


def results(stream: DataStream) -> list[Any]:
    with GraphHarness(stream.get_execution_environment(), collect=stream) as harness:
        return harness.run().results(stream)


@pytest.mark.parametrize("combining", [True, False])
def test_a_record_of_none_empties_its_window_in_its_place(combining: bool) -> None:
    stream = keyed(1, 2, None, 5, 6).window(TUMBLING).pre_combine(combining).reduce(lambda a, b: a + b)
    assert results(stream) == [11]


def test_a_function_may_change_the_reduction_so_far_and_no_record_of_others() -> None:
    def extend(a: list[int], b: list[int]) -> list[int]:
        a += b
        return a

    stream = keyed([1], [2], [3])
    other = stream.map(lambda record: list(record))
    reduced = stream.window(TUMBLING).pre_combine().reduce(extend)
    with GraphHarness(stream.get_execution_environment(), collect=[reduced, other], epoch_records=2) as harness:
        harness.run()
        assert harness.results(reduced) == [[1, 2, 3]]
        assert harness.results(other) == [[1], [2], [3]]


def test_merge_that_returns_nothing_is_an_error_and_loses_nothing() -> None:
    stream = keyed(("a", "1"), ("a", "2")).window(TUMBLING).aggregate(Forgetful())
    with (
        mock.patch.object(precombining, "WORTH", 0),
        mock.patch.object(precombining, "MAX_PARTIALS", 0),
        pytest.raises(FiresteelError, match=r"merge\(\) returned None"),
        GraphHarness(stream.get_execution_environment(), collect=stream, epoch_records=1) as harness,
    ):
        harness.run()


def test_merging_that_fails_is_named_with_the_window_and_the_key() -> None:
    records = [("a", 1), ("b", 1), ("c", 1), ("a", 1), ("b", "x"), ("c", 1)]
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda record, _: 5)
    stamped = environment(1, True).from_collection(records).assign_timestamps_and_watermarks(strategy)
    stream = stamped.key_by(lambda record: record[0]).window(TUMBLING).sum(1)
    with (
        mock.patch.object(precombining, "WORTH", 0),
        mock.patch.object(precombining, "MAX_PARTIALS", 0),
        pytest.raises(TypeError, match=r"merging what belongs to TimeWindow\(.*\) of the key 'b'"),
        GraphHarness(stream.get_execution_environment(), collect=stream, epoch_records=3) as harness,
    ):
        harness.run()


def test_accumulators_that_cannot_be_sent_say_what_to_do() -> None:
    class Unpicklable(Texts):
        def create_accumulator(self) -> list[Any]:
            return [lambda: 0]

    stream = keyed(("a", "1")).window(TUMBLING).aggregate(Unpicklable())
    with pytest.raises(FiresteelError, match=r"pre_combine\(False\)"):
        results(stream)


def test_what_is_sent_are_partial_results_in_batches_of_their_own_size() -> None:
    env = environment(2, True)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda record, _: 5)
    numbers = env.from_collection(list(range(2000))).assign_timestamps_and_watermarks(strategy)
    stream = numbers.map(lambda n: (n % 50, 1)).key_by(lambda r: r[0]).window(TUMBLING).sum(1).uid("windows")
    with (
        mock.patch.object(exchange, "BATCH_RECORDS", 10),
        mock.patch.object(precombining, "BATCH_RECORDS", 10),
        mock.patch.object(aligned.AlignedWindowOperator, "push", side_effect=AssertionError),
        GraphHarness(env, collect=stream) as harness,
    ):
        received = counting(harness._engine)
        harness.run()
        assert sorted(harness.results(stream)) == [(n, 40) for n in range(50)]
        assert sum(received) == 2000


def test_where_keys_do_not_repeat_records_are_sent_as_they_are() -> None:
    env = environment(1, True)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda record, _: 5)
    numbers = env.from_collection(list(range(40))).assign_timestamps_and_watermarks(strategy)
    stream = numbers.map(lambda n: (n, 1)).key_by(lambda r: r[0]).window(TUMBLING).sum(1)
    with (
        mock.patch.object(aligned.AlignedWindowOperator, "take", autospec=True) as take,
        GraphHarness(env, collect=stream, epoch_records=10) as harness,
    ):
        take.side_effect = lambda operator, partials: operator.push(partials[2], [5] * len(partials[2]))
        assert sorted(harness.run().results(stream)) == [(n, 1) for n in range(40)]
        assert take.call_count == 1


def test_names_are_found_where_one_instruction_loads_two() -> None:
    """As from Python 3.13 on."""
    both = SimpleNamespace(opname="LOAD_FAST_LOAD_FAST", argval=("one", "other"))
    assert _names_read([both, SimpleNamespace(opname="RETURN_VALUE", argval=None)]) == {"one", "other"}
