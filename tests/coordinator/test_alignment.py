"""Watermark alignment: how far sources get ahead of each other, and that nobody waits for ever."""

from __future__ import annotations

import tempfile
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.common import Duration, WatermarkStrategy
from firesteel.connectors.base import Source
from firesteel.connectors.collection import CollectionSource
from firesteel.coordinator.alignment import WatermarkAlignment
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.graph.nodes import Collect, Input
from firesteel.testing import GraphHarness
from tests.support.local_engine import LocalRun
from tests.support.partitioned import Partitioned
from tests.support.slicing import Sliced


def strategy(drift: int, group: str = "group") -> WatermarkStrategy:
    timed = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value[1])
    return timed.with_watermark_alignment(group, Duration.of_millis(drift))


def environment(parallelism: int = 1, **sources: tuple[Source, WatermarkStrategy]) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    streams = [env.from_source(source, given, name).uid(name) for name, (source, given) in sources.items()]
    streams[0].union(*streams[1:]).map(lambda value: value).name("all")
    return env


def collect_all(env: StreamExecutionEnvironment) -> None:
    last = env.graph.nodes()[-1]
    env.graph.add(Collect(), "Collect", (Input(last.id),))


def timed(name: str, times: Any) -> CollectionSource:
    return CollectionSource([(name, time) for time in times])


def by_epoch(harness: GraphHarness, epochs: int = 1000) -> list[dict[str, list[int]]]:
    """The times that were read in each epoch, for each source."""
    found: list[dict[str, list[int]]] = []
    known = 0
    for _ in range(epochs):
        going_on = harness.step()
        new = harness.results()[known:]
        known += len(new)
        found.append({})
        for name, time in new:
            found[-1].setdefault(name, []).append(time)
        if not going_on:
            break
    return found


@settings(max_examples=40, deadline=None)
@given(
    steps=st.tuples(st.integers(1, 50), st.integers(1, 50)),
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    drift=st.integers(0, 100),
    parallelism=st.integers(1, 2),
)
def test_no_source_gets_further_ahead_than_the_drift_and_an_epoch(
    steps: tuple[int, int], sizes: list[int], drift: int, parallelism: int
) -> None:
    times = {name: range(0, 30 * step, step) for name, step in zip("ab", steps, strict=True)}
    env = environment(parallelism, **{name: (timed(name, times[name]), strategy(drift)) for name in times})
    reached = dict.fromkeys(times, -1)
    with GraphHarness(env, collect="all", epoch_records=sizes) as h:
        read = by_epoch(h)
        assert h.finished
        assert sorted(h.results()) == sorted((name, time) for name in times for time in times[name])
    for number, epoch in enumerate(read):
        for name, other in ("ab", "ba"):
            if number and name in epoch and reached[other] < times[other][-1]:
                assert reached[name] <= reached[other] + drift, "it was read although it was ahead"
        for name, new in epoch.items():
            reached[name] = max(new)


def test_a_source_that_has_ended_is_waited_for_no_more() -> None:
    env = environment(a=(timed("a", [1, 2]), strategy(0)), b=(timed("b", range(100, 120)), strategy(0)))
    with GraphHarness(env, collect="all", epoch_records=1) as h:
        read = by_epoch(h)
        assert h.finished
    assert [epoch.get("b", []) for epoch in read[:4]] == [[100], [], [101], [102]]


def test_an_idle_source_is_waited_for_no_more_and_counts_again_when_it_speaks() -> None:
    quiet = Partitioned({"q": [("quiet", 1)]}, endless=True)
    env = environment(
        quiet=(quiet, strategy(10).with_idleness(Duration.of_millis(100))),
        busy=(timed("busy", range(100, 200)), strategy(10)),
    )
    with GraphHarness(env, collect="all", epoch_records=2) as h:
        assert by_epoch(h, 3) == [{"quiet": [1], "busy": [100, 101]}, {}, {}]
        h.advance_clock(100)
        h.step()  # which finds out that the quiet one is idle
        assert h._job._reading._alignment.held_back([]) == []
        h.step(2)
        assert h.results()[-1] == ("busy", 105)


def test_a_source_that_is_held_back_is_not_idle() -> None:
    env = environment(
        ahead=(timed("ahead", range(100, 200)), strategy(10).with_idleness(Duration.of_millis(100))),
        behind=(timed("behind", range(100)), strategy(10)),
    )
    with GraphHarness(env, collect="all", epoch_records=5) as h:
        h.step(2)
        h.advance_clock(1000)
        h.step(2)
        report = h._job._reading._alignment._reached["ahead"]
        assert report.watermark == 103 and not report.idle
        h.run()
        assert len(h.results()) == 200


def test_groups_do_not_wait_for_each_other() -> None:
    env = environment(
        a=(timed("a", range(0, 20)), strategy(0, "one")), b=(timed("b", range(1000, 1020)), strategy(0, "other"))
    )
    with GraphHarness(env, collect="all", epoch_records=1) as h:
        assert len(by_epoch(h)) == 20


def test_a_source_without_watermarks_is_nobodys_business() -> None:
    plain = WatermarkStrategy.no_watermarks().with_watermark_alignment("group", Duration.of_millis(1))
    env = environment(a=(timed("a", range(20)), plain), b=(timed("b", range(1000, 1020)), strategy(0)))
    with GraphHarness(env, collect="all", epoch_records=1) as h:
        assert len(by_epoch(h)) == 20


@pytest.mark.parametrize("fail_at", [(3,), (3, 4, 9)])
def test_alignment_goes_on_after_a_failure(fail_at: tuple[int, ...]) -> None:
    env = environment(a=(timed("a", range(40)), strategy(5)), b=(timed("b", range(0, 400, 10)), strategy(5)))
    with GraphHarness(env, collect="all", epoch_records=3, fail_at=fail_at, checkpoint_every=2) as h:
        h.run()
        assert sorted(h.results()) == sorted([("a", n) for n in range(40)] + [("b", n) for n in range(0, 400, 10)])


def test_the_coordinator_ends_a_job_whose_sources_wait_for_each_other() -> None:
    sources = {"a": timed("a", range(3000)), "b": timed("b", range(0, 90_000, 30))}
    env = environment(2, **{name: (Sliced(source, 100), strategy(5)) for name, source in sources.items()})
    collect_all(env)
    with tempfile.TemporaryDirectory() as directory:
        run = LocalRun(env, directory).run()
        assert run.engine.epochs_run > 55  # one after the other, for most of the time
        assert sorted(run.collected()) == sorted([("a", n) for n in range(3000)] + [("b", n * 30) for n in range(3000)])


def test_epochs_are_no_longer_than_the_update_interval() -> None:
    quick = strategy(5).with_watermark_alignment("group", Duration.of_millis(5), Duration.of_millis(50))
    env = environment(a=(timed("a", [1]), strategy(5)), b=(timed("b", [1]), quick))
    collect_all(env)
    assert WatermarkAlignment(env.plan()).interval_ms == 50
