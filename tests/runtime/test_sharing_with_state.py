"""What an operator keeps in its state is not changed by those who read what it gives out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from firesteel.common import Duration, Row, WatermarkGenerator, WatermarkStrategy
from firesteel.datastream import DataStream, KeyedStream, ProcessJoinFunction, StreamExecutionEnvironment
from firesteel.datastream.window import CountTrigger, SlidingEventTimeWindows, TumblingEventTimeWindows
from firesteel.testing import GraphHarness

CUTS: list[dict[str, Any]] = [
    {},
    {"epoch_records": 1},
    {"epoch_records": [2, 1, 3]},
    {"epoch_records": 1, "fail_at": [2, 4]},
    {"seed": 7, "checkpoint_every": 1},
]


def environment() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)


def results(build: Callable[[StreamExecutionEnvironment], DataStream], **options: Any) -> list[Any]:
    env = environment()
    with GraphHarness(env, collect=build(env), **options) as harness:
        return harness.run().results()


def times_100(record: Any) -> Any:
    """The record itself, changed; its number is what it was, a hundred times."""
    field = "n" if isinstance(record, dict) else 1
    record[field] *= 100
    return record[field]


MAKE: dict[str, tuple[Callable[[int], Any], Any]] = {
    "row": (lambda n: Row("k", n), 1),
    "list": (lambda n: ["k", n], 1),
    "dict": (lambda n: {"k": "k", "n": n}, "n"),
}


def added(a: Any, b: Any) -> Any:
    if isinstance(a, dict):
        return {**a, "n": a["n"] + b["n"]}
    return type(a)(["k", a[1] + b[1]]) if isinstance(a, list) else Row("k", a[1] + b[1])


ROLLING: dict[str, tuple[Callable[[KeyedStream, Any], DataStream], list[int]]] = {
    "sum": (lambda keyed, field: keyed.sum(field), [100, 300, 600]),
    "max": (lambda keyed, field: keyed.max(field), [100, 200, 300]),
    "max_by": (lambda keyed, field: keyed.max_by(field), [100, 200, 300]),
    "min_by": (lambda keyed, field: keyed.min_by(field), [100, 100, 100]),
    "reduce": (lambda keyed, field: keyed.reduce(added), [100, 300, 600]),
}


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("kind", MAKE)
@pytest.mark.parametrize("rolling", ROLLING)
def test_a_rolling_aggregate_keeps_its_value_whatever_is_done_to_its_results(
    rolling: str, kind: str, cuts: dict[str, Any]
) -> None:
    (make, field), (roll, expected) = MAKE[kind], ROLLING[rolling]

    def build(env: StreamExecutionEnvironment) -> DataStream:
        keyed = env.from_collection([1, 2, 3]).map(make).key_by(lambda record: "k")
        return roll(keyed, field).map(times_100)

    assert results(build, **cuts) == expected


@pytest.mark.parametrize("cuts", CUTS)
def test_a_list_inside_of_a_tuple_belongs_to_the_state_too(cuts: dict[str, Any]) -> None:
    def changed(record: Any) -> Any:
        record[2].append("m")
        return record[1], len(record[2])

    def build(env: StreamExecutionEnvironment) -> DataStream:
        keyed = env.from_collection([1, 2, 3]).map(lambda n: ("k", n, [])).key_by(lambda record: record[0])
        return keyed.sum(1).map(changed)

    assert results(build, **cuts) == [(1, 1), (3, 1), (6, 1)]


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("parallelism", [1, 2])  # with two, results wait to be sent while the next ones are made
def test_a_rolling_reduce_may_change_its_first_argument(parallelism: int, cuts: dict[str, Any]) -> None:
    def build(env: StreamExecutionEnvironment) -> DataStream:
        records = env.from_collection([{"n": n} for n in (1, 2, 3, 4)])
        reduced = records.key_by(lambda record: "k").reduce(in_place)
        return reduced.rebalance().map(lambda record: record["n"]).set_parallelism(parallelism)

    assert sorted(results(build, **cuts)) == [1, 3, 6, 10]


class Punctual(WatermarkGenerator):
    """A watermark behind every record, so that where epochs are cut makes no difference."""

    def on_event(self, event: Any, event_timestamp: int, output: Any) -> None:
        output.emit_watermark(event_timestamp)

    def on_periodic_emit(self, output: Any) -> None:
        pass


def timed(env: StreamExecutionEnvironment, times: list[int]) -> DataStream:
    strategy = WatermarkStrategy.for_generator(Punctual).with_timestamp_assigner(lambda record, _: record["t"])
    return env.from_collection([{"t": time, "n": 1} for time in times]).assign_timestamps_and_watermarks(strategy)


def in_place(a: Any, b: Any) -> Any:
    a["n"] += b["n"]
    return a


def with_new(a: Any, b: Any) -> Any:
    return {**a, "n": a["n"] + b["n"]}


@pytest.mark.parametrize("reduce", [in_place, with_new])
@pytest.mark.parametrize("cuts", CUTS)
def test_a_window_that_fires_again_for_late_records_gives_what_is_in_it(
    cuts: dict[str, Any], reduce: Callable[[Any, Any], Any]
) -> None:
    def build(env: StreamExecutionEnvironment) -> DataStream:
        stream = timed(env, [0, 12, 1, 2, 3]).key_by(lambda record: 0)
        windowed = stream.window(TumblingEventTimeWindows.of(Duration.of_millis(10)))
        return windowed.allowed_lateness(1000).reduce(reduce).map(times_100)

    assert results(build, **cuts) == [100, 200, 300, 400, 100]


@pytest.mark.parametrize("reduce", [in_place, with_new])
@pytest.mark.parametrize("sent", [False, True])
@pytest.mark.parametrize("cuts", CUTS)
def test_a_window_that_fires_with_every_record_gives_every_result_as_it_was(
    cuts: dict[str, Any], sent: bool, reduce: Callable[[Any, Any], Any]
) -> None:
    def build(env: StreamExecutionEnvironment) -> DataStream:
        stream = timed(env, [0, 1, 2, 3]).key_by(lambda record: 0)
        windowed = stream.window(TumblingEventTimeWindows.of(Duration.of_millis(10)))
        found = windowed.trigger(CountTrigger.of(1)).reduce(reduce)
        return (found.rebalance() if sent else found).map(times_100)

    assert results(build, **cuts) == [100, 200, 300, 400]


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("combining", ["max_by", "sum", "all"])
def test_sliding_windows_have_no_records_in_common_for_those_who_read_them(
    combining: str, cuts: dict[str, Any]
) -> None:
    def changed(record: Any) -> Any:
        record["inner"].append("m")
        return record["t"], len(record["inner"])

    def build(env: StreamExecutionEnvironment) -> DataStream:
        stream = timed(env, [0, 5, 10]).map(lambda record: {**record, "inner": []}).key_by(lambda record: 0)
        windowed = stream.window(SlidingEventTimeWindows.of(Duration.of_millis(10), Duration.of_millis(5)))
        if combining == "all":
            return windowed.apply(lambda key, window, records: list(records)).map(changed)
        found = windowed.max_by("t") if combining == "max_by" else windowed.sum("n")
        return found.map(changed)

    assert {length for _, length in results(build, **cuts)} == {1}


class Both(ProcessJoinFunction):
    def process_element(self, left, right, ctx):  # type: ignore[no-untyped-def]
        yield left, right


@pytest.mark.parametrize("cuts", CUTS)
def test_what_waits_in_an_interval_join_is_not_changed_by_its_readers(cuts: dict[str, Any]) -> None:
    def changed(pair: Any) -> Any:
        pair[0]["n"] += 1
        return pair[0]["n"]

    def build(env: StreamExecutionEnvironment) -> DataStream:
        left, right = timed(env, [0]).key_by(lambda r: 0), timed(env, [1, 2, 3]).key_by(lambda r: 0)
        return (
            left.interval_join(right).between(Duration.of_millis(0), Duration.of_millis(9)).process(Both()).map(changed)
        )

    assert results(build, **cuts) == [2, 2, 2]
