"""A reduce function may change what it has made so far, and its results are the same on every way to run a window."""

from __future__ import annotations

import contextlib
import random
from collections import defaultdict
from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest

from firesteel.common import Duration, Row, WatermarkGenerator, WatermarkStrategy
from firesteel.datastream import AggregateFunction, DataStream, StreamExecutionEnvironment
from firesteel.datastream.window import (
    CountEvictor,
    CountTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    WindowAssigner,
)
from firesteel.runtime.windows import choice
from firesteel.testing import GraphHarness

ASSIGNERS = {
    "tumbling": (10, 10),
    "sliding": (10, 5),
    "sliding by halves": (10, 4),
}


class Punctual(WatermarkGenerator):
    def on_event(self, event: Any, event_timestamp: int, output: Any) -> None:
        output.emit_watermark(event_timestamp - 1)

    def on_periodic_emit(self, output: Any) -> None:
        pass


def into_first(a: Any, b: Any) -> Any:
    a["n"] += b["n"]
    return a


def into_either(a: Any, b: Any) -> Any:
    """The one with the larger number, which it changes only when it comes back as the first."""
    a["seen"] = a.get("seen", 0) + 1
    return a if a["n"] >= b["n"] else b


def into_row(a: Any, b: Any) -> Any:
    a["n"] = a["n"] + b["n"]
    return a


class Begun(AggregateFunction):
    """The first record is the accumulator."""

    def create_accumulator(self) -> Any:
        return {}

    def add(self, value: Any, accumulator: Any) -> Any:
        return into_first(accumulator, value) if accumulator else value

    def get_result(self, accumulator: Any) -> Any:
        return accumulator

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return into_first(acc_a, acc_b)


def as_dict(key: str, n: int, time: int) -> Any:
    return {"k": key, "n": n, "t": time}


def as_row(key: str, n: int, time: int) -> Any:
    return Row(k=key, n=n, t=time)


FUNCTIONS: dict[str, tuple[Callable[[str, int, int], Any], Any]] = {
    "dicts": (as_dict, into_first),
    "either": (as_dict, into_either),
    "rows": (as_row, into_row),
    "aggregate": (as_dict, Begun()),
}


def assigner_of(name: str) -> WindowAssigner[Any, Any]:
    size, slide = map(Duration.of_millis, ASSIGNERS[name])
    return TumblingEventTimeWindows.of(size) if size == slide else SlidingEventTimeWindows.of(size, slide)


Records = list[tuple[str, int, int]]


def run(records: Records, assigner: str, function: str, how: str, lateness: int = 0, **options: Any) -> list[Any]:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    make, combine = FUNCTIONS[function]
    strategy = WatermarkStrategy.for_generator(Punctual).with_timestamp_assigner(lambda record, _: record[2])
    stream = env.from_collection(records).assign_timestamps_and_watermarks(strategy).map(lambda record: make(*record))
    windowed = stream.key_by(lambda record: record["k"]).window(assigner_of(assigner)).pre_combine(how == "combined")
    windowed = windowed.allowed_lateness(lateness)
    if how == "evicting":
        windowed = windowed.evictor(CountEvictor.of(100))
    found = windowed.aggregate(combine) if function == "aggregate" else windowed.reduce(combine)
    results = found.map(lambda record: (record["k"], record["n"], record["t"]))
    others = stream.map(lambda record: (record["k"], record["n"], record["t"]))
    general = (
        mock.patch.object(choice, "is_aligned", return_value=False) if how == "general" else contextlib.nullcontext()
    )
    with general, GraphHarness(env, collect=[results, others], **options) as harness:
        harness.run()
        assert harness.results(others) == records  # nobody changed them for others
        return sorted(harness.results(results))


def expected(records: Records, assigner: str, function: str) -> list[Any]:
    size, slide = ASSIGNERS[assigner]
    windows: defaultdict[Any, list[Any]] = defaultdict(list)
    for key, n, time in records:
        for start in range(time - time % slide, time - size, -slide):
            windows[start, key].append((key, n, time))
    if function == "either":
        return sorted(max(found, key=lambda record: record[1]) for found in windows.values())
    return sorted((found[0][0], sum(n for _, n, _ in found), found[0][2]) for found in windows.values())


WAYS = ["plain", "combined", "general", "evicting"]


def test_the_first_record_of_several_windows_is_in_each_by_itself() -> None:
    records = [("k", 1, time) for time in (0, 4, 8, 12)]
    for how in WAYS:
        assert [n for _, n, _ in run(records, "sliding", "dicts", how)] == [1, 2, 2, 3]


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("assigner", ASSIGNERS)
@pytest.mark.parametrize("seed", range(3))
def test_every_way_to_run_a_window_gives_the_same(assigner: str, function: str, how: str, seed: int) -> None:
    rng = random.Random(seed)
    times = sorted(rng.randrange(30) for _ in range(25))
    records = [(rng.choice("ab"), rng.randrange(1, 10**6), time) for time in times]
    lateness = 0 if how == "combined" else rng.choice([0, 7])
    whole = run(records, assigner, function, how, lateness)
    assert whole == expected(records, assigner, function)
    cuts = {"epoch_records": rng, "checkpoint_every": 1, "fail_at": [2] if seed else []}
    assert run(records, assigner, function, how, lateness, **cuts) == whole


@pytest.mark.parametrize("how", ["plain", "general", "evicting"])
@pytest.mark.parametrize("assigner", ASSIGNERS)
def test_windows_that_fire_again_go_on_with_what_is_in_them(assigner: str, how: str) -> None:
    records = [("k", n, time) for n, time in ((1, 1), (2, 2), (3, 15), (4, 3), (5, 4), (6, 16))]
    found = [
        run(records, assigner, "dicts", how, 1000, **options)
        for options in ({}, {"epoch_records": 1}, {"epoch_records": 2, "fail_at": [2]})
    ]
    assert found[0] == found[1] == found[2]
    assert set(expected(records, assigner, "dicts")) <= set(found[0])


@pytest.mark.parametrize("cuts", [{}, {"epoch_records": 1}, {"epoch_records": 2, "fail_at": [2]}])
@pytest.mark.parametrize("evicting", [False, True])
def test_a_window_that_fires_with_every_record_gives_every_result_as_it_was(
    evicting: bool, cuts: dict[str, Any]
) -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    strategy = WatermarkStrategy.for_generator(Punctual).with_timestamp_assigner(lambda record, _: record["t"])
    stream: DataStream = env.from_collection([as_dict("k", 1, time) for time in (0, 1, 2, 3)])
    keyed = stream.assign_timestamps_and_watermarks(strategy).key_by(lambda record: 0)
    windowed = keyed.window(assigner_of("sliding")).trigger(CountTrigger.of(1))
    if evicting:
        windowed = windowed.evictor(CountEvictor.of(100))
    found = windowed.reduce(into_first).map(lambda record: record["n"])
    with GraphHarness(env, collect=found, **cuts) as harness:
        assert harness.run().results() == [1, 1, 2, 2, 3, 3, 4, 4]
