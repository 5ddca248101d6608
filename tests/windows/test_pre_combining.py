"""Combining records before they are sent changes no result, whatever the stream, its channels and where it is cut."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from firesteel.common import WatermarkStrategy
from firesteel.datastream import (
    DataStream,
    KeyedStream,
)
from firesteel.datastream.window import (
    EventTimeTrigger,
    PurgingTrigger,
    TumblingEventTimeWindows,
)
from firesteel.errors import StateError
from firesteel.runtime.windows import precombining
from firesteel.runtime.windows.waiting import WAITING
from firesteel.state.files import UNION
from firesteel.testing import GraphHarness
from tests.support.partitioned import Partitioned
from tests.windows.cases import ASSIGNERS, Case, Mean, ms
from tests.windows.combining import (
    ALIGNED,
    FUNCTIONS,
    MARK,
    Joined,
    Marked,
    Named,
    Texts,
    environment,
    in_time,
    of_channel,
    read,
    run,
)
from tests.windows.driving import expect

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
    if len(partitions) > 1 or others:  # else it is up to the order of channels, which nobody promises, what is late
        partitions, others = [in_time(records) for records in partitions], others and in_time(others)
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
