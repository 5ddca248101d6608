"""Combining records before they are sent changes no result, whatever the stream, its channels and where it is cut."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from firesteel.common import Configuration, Time, WatermarkGenerator, WatermarkStrategy
from firesteel.coordinator.engine import EpochOrder, EpochResult
from firesteel.datastream import (
    AggregateFunction,
    DataStream,
    KeyedStream,
    OutputTag,
    ReduceFunction,
    StreamExecutionEnvironment,
    WindowFunction,
)
from firesteel.datastream.window import (
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    PurgingTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from firesteel.errors import FiresteelError, GraphError, StateError
from firesteel.graph.nodes import Window
from firesteel.runtime import exchange
from firesteel.runtime.windows import aligned, precombining
from firesteel.runtime.windows.waiting import WAITING
from firesteel.state.files import UNION
from firesteel.testing import GraphHarness
from firesteel.testing.engine import LocalEngine
from tests.support.partitioned import Partitioned
from tests.windows.cases import ASSIGNERS, Case, Mean, ms
from tests.windows.driving import expect

MARK = "mark"


class Marked(WatermarkGenerator):
    """Watermarks where the stream says so: records (MARK, watermark, 0)."""

    def on_event(self, event: Any, event_timestamp: int, output: Any) -> None:
        if event[0] == MARK:
            output.emit_watermark(event[1])

    def on_periodic_emit(self, output: Any) -> None:
        pass


class Joined(ReduceFunction):
    """Associative, and that is all: the order of a channel's records shows."""

    def reduce(self, value1: Any, value2: Any) -> Any:
        return value1[0], value1[1] + value2[1]


class Texts(AggregateFunction):
    """A list that is changed in place, in the order of the records."""

    def create_accumulator(self) -> list[Any]:
        return []

    def add(self, value: Any, accumulator: list[Any]) -> list[Any]:
        accumulator.append(value[1])
        return accumulator

    def get_result(self, accumulator: list[Any]) -> Any:
        return "", "".join(accumulator)

    def merge(self, acc_a: list[Any], acc_b: list[Any]) -> list[Any]:
        acc_a.extend(acc_b)
        return acc_a


class Named(WindowFunction[Any, Any, Any, Any]):
    def apply(self, key: Any, window: Any, inputs: Any) -> Iterator[Any]:
        yield key, repr(window), *inputs


FUNCTIONS = ("reduce", "reduce and apply", "aggregate")
ALIGNED = ("tumbling", "tumbling+3", "sliding", "sliding-1", "gaps")


def build(stream: DataStream, assigner: str, function: str) -> DataStream:
    windowed = stream.key_by(lambda record: record[0]).window(ASSIGNERS[assigner].engine)
    if function == "aggregate":
        return windowed.aggregate(Texts(), Named()).uid("windows")
    return windowed.reduce(Joined(), Named() if "apply" in function else None).uid("windows")


def environment(parallelism: int, combining: bool) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    env.get_config().set_window_pre_combining(combining)
    return env


def read(env: StreamExecutionEnvironment, partitions: dict[str, list[Any]]) -> DataStream:
    strategy = WatermarkStrategy.for_generator(Marked).with_timestamp_assigner(lambda record, _: record[2])
    found = env.from_source(Partitioned(partitions), strategy, "partitions")
    return found.filter(lambda record: record[0] != MARK).map(lambda record: (record[0], f"{record[1]},"))


def run(
    partitions: dict[str, list[Any]],
    assigner: str,
    function: str,
    combining: bool,
    parallelism: int = 2,
    sizes: list[int] | None = None,
    fail_at: tuple[int, ...] = (),
    every: int | None = None,
    receivers: int = 2,
    others: list[Any] | None = None,
) -> tuple[list[Any], int, int]:
    """Results, late records, and how many records went into the operator.

    :param receivers: the parallelism of the windows.
    :param others: records of a second stream into the same windows.
    """
    env = environment(parallelism, combining)
    records = read(env, partitions)
    if others is not None:
        records = records.union(read(env, {"others": others}))
    stream = build(records, assigner, function).set_parallelism(receivers)
    with GraphHarness(
        env, collect=stream, epoch_records=sizes or [3], fail_at=fail_at, checkpoint_every=every
    ) as harness:
        received = counting(harness._engine)
        harness.run()
        dropped = harness.metrics().get("windows", {}).get("numLateRecordsDropped", 0)
        return sorted(map(by_channel, harness.results(stream))), dropped, sum(received)


def counting(engine: LocalEngine) -> list[int]:
    """How many records each epoch gives to the operator."""
    received: list[int] = []
    run_epoch = engine.run_epoch

    def counted(order: EpochOrder) -> EpochResult:
        result = run_epoch(order)
        received.append(sum(report["records"].get("windows", (0, 0))[0] for report in result.reports))
        return result

    engine.run_epoch = counted  # type: ignore[method-assign]
    return received


def of_channel(channel: int, records: list[Any]) -> list[Any]:
    return [(key, number if key == MARK else f"{channel}:{number}", time) for key, number, time in records]


def by_channel(result: Any) -> Any:
    """Texts with what each channel gave, in its order: there is none between channels."""
    if isinstance(result, tuple):
        return tuple(map(by_channel, result))
    return sorted(result.split(","), key=lambda part: part[:1]) if str(result).endswith(",") else result


times = st.integers(0, 40)
records = st.tuples(st.sampled_from("abc"), st.integers(0, 9), times)
marks = st.tuples(st.just(MARK), st.integers(-5, 45), st.just(0))
streams = st.lists(st.one_of(records, records, records, marks), max_size=20)
QUICK = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("assigner", ALIGNED)
@settings(QUICK, max_examples=30)
@given(
    partitions=st.lists(streams, min_size=1, max_size=3),
    sizes=st.lists(st.integers(0, 9), min_size=1, max_size=3).filter(any),
    fail_at=st.sets(st.integers(1, 6), max_size=2),
    every=st.integers(1, 3),
    most=st.sampled_from([1, 3, 1000]),
    worth=st.sampled_from([0, 0, 1.5]),
    saved=st.sampled_from([0, 1, 1000]),
    receivers=st.integers(1, 3),
    others=st.one_of(st.none(), streams),
)
@example(
    partitions=[[(MARK, 1, 0), ("a", 0, 0)], [], [(MARK, 1, 0), ("a", 1, 0)]],
    sizes=[2],
    fail_at=set(),
    every=1,
    most=1000,
    worth=0,
    saved=1000,
    receivers=2,
    others=None,
)  # late for the first of its windows, and behind a record that waits for the others
def test_nothing_changes(
    assigner: str,
    function: str,
    partitions: list[list[Any]],
    sizes: list[int],
    fail_at: set[int],
    every: int,
    most: int,
    worth: float,
    saved: int,
    receivers: int,
    others: list[Any] | None,
) -> None:
    given = {str(number): of_channel(number % 2, records) for number, records in enumerate(partitions)}
    others = others and of_channel(2, others)
    options: Any = {"sizes": sizes, "fail_at": fail_at, "every": every, "receivers": receivers, "others": others}
    plain = run(given, assigner, function, False, **options)
    with (
        mock.patch.object(precombining, "MAX_PARTIALS", most),
        mock.patch.object(precombining, "WORTH", worth),
        mock.patch.object(precombining, "SAVED", saved),
    ):
        combined = run(given, assigner, function, True, **options)
    assert combined[:2] == plain[:2]
    # else an epoch counts again after it was rolled back, and records may have waited in it
    if not fail_at or every == 1:
        assert combined[2] == plain[2]


def two_programs(
    before: Callable[[KeyedStream], DataStream], after: Callable[[KeyedStream], DataStream], records: list[Any]
) -> list[Any]:
    """Results of a program that goes on, after two epochs, from the checkpoint of another one."""
    found: list[Any] = []
    with tempfile.TemporaryDirectory() as directory, mock.patch.object(precombining, "WORTH", 0):
        for program, epochs in ((before, 2), (after, 100)):
            env = environment(2, True)
            stream = program(read(env, {"only": records}).key_by(lambda record: record[0])).uid("windows")
            with GraphHarness(env, collect=stream, epoch_records=3, directory=directory) as harness:
                harness.step(epochs)
                found += harness.results(stream)
    return sorted(found)


def tumbling(stream: KeyedStream) -> Any:
    return stream.window(TumblingEventTimeWindows.of(ms(10)))


THREE = [(key, number, number) for number in range(9) for key in "ab"]
TEXTS = [(key, "".join(f"{number}," for number in range(9))) for key in "ab"]


@pytest.mark.parametrize(
    "after",
    [
        lambda s: tumbling(s).reduce(Joined()),
        lambda s: tumbling(s).pre_combine(False).reduce(Joined()),
        lambda s: tumbling(s).allowed_lateness(5).reduce(Joined()),
        lambda s: tumbling(s).trigger(PurgingTrigger.of(EventTimeTrigger())).reduce(Joined()),
    ],
    ids=["the same", "plain", "with lateness", "with another trigger"],
)
def test_what_waits_at_a_barrier_is_in_windows_of_the_program_that_goes_on(after: Any) -> None:
    assert two_programs(lambda s: tumbling(s).reduce(Joined()), after, THREE) == TEXTS


def test_what_waits_at_a_barrier_is_refused_where_it_cannot_go() -> None:
    with pytest.raises(StateError, match="another uid"):
        two_programs(lambda s: tumbling(s).reduce(Joined()), lambda s: tumbling(s).aggregate(Texts()), THREE)


def waits(harness: GraphHarness) -> int:
    """How many partial results are saved as waiting."""
    stores = [each.store for task in harness._engine.tasks for each in task.assembly.stores if each.uid == "windows"]
    lists = [store.operator_list_table(WAITING, UNION).get() for store in stores]
    return sum(len(element[3]) for elements in lists for element in elements)


def test_partial_results_wait_over_barriers_as_long_as_checkpoints_do_not_grow_by_it() -> None:
    busy = [("abc"[n % 3], n, n // 100) for n in range(600)]
    quiet = [("abc"[n % 3], n, 7) for n in range(5)]
    env = environment(1, True)
    stream = (
        tumbling(read(env, {"only": busy + quiet}).key_by(lambda record: record[0])).reduce(Joined()).uid("windows")
    )
    with GraphHarness(env, collect=stream, epoch_records=[300, 300, 1, 4], checkpoint_every=1) as harness:
        held, contents = [], []
        while harness.step():
            held.append(waits(harness))
            contents.append(len(harness.state("windows", "/window-contents")))
        assert held == [3, 3, 0]  # one record is not worth saving three partial results again
        assert contents == [0, 0, 3]
        assert len(harness.results()) == 3


@pytest.mark.parametrize("assigner", ALIGNED)
@settings(QUICK, max_examples=40)
@given(
    stream=streams,
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=3),
    fail_at=st.sets(st.integers(1, 6), max_size=2),
)
def test_one_channel_gives_what_the_oracle_says(
    assigner: str, stream: list[Any], sizes: list[int], fail_at: set[int]
) -> None:
    script = [("watermark", record[1]) if record[0] == MARK else ("record", record) for record in stream]
    expected = expect(Case(assigner, function="aggregate and apply"), script, [""])
    env = environment(1, True)
    strategy = WatermarkStrategy.for_generator(Marked).with_timestamp_assigner(lambda record, _: record[2])
    read = env.from_source(Partitioned({"only": stream}), strategy, "partition")
    windowed = read.filter(lambda record: record[0] != MARK).key_by(lambda record: record[0])
    means = windowed.window(ASSIGNERS[assigner].engine).pre_combine()
    found = means.aggregate(Mean(), Named()).uid("windows")
    with (
        mock.patch.object(precombining, "WORTH", 0),
        mock.patch.object(precombining, "SAVED", 1000),
        GraphHarness(env, collect=found, epoch_records=sizes, fail_at=fail_at) as harness,
    ):
        harness.run()
        assert sorted(harness.results(found)) == sorted(value for value, _ in expected.out)
        if not fail_at:  # a restart counts anew
            assert harness.metrics().get("windows", {}).get("numLateRecordsDropped", 0) == expected.dropped


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
