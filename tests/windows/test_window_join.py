"""Window joins and co-groups, against the windows' oracle with tagged records in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firesteel.common import Types, WatermarkGenerator, WatermarkStrategy
from firesteel.datastream import (
    CoGroupFunction,
    DataStream,
    FlatJoinFunction,
    JoinFunction,
    OutputTag,
    StreamExecutionEnvironment,
    TaggedUnion,
)
from firesteel.datastream.window import CountEvictor, CountTrigger, EventTimeSessionWindows
from firesteel.errors import GraphError
from firesteel.testing import GraphHarness
from tests.support.partitioned import Partitioned
from tests.windows.cases import ASSIGNERS, ms
from tests.windows.oracle import Oracle

MARK = 2
LATE = OutputTag("late")
WINDOWS = ("tumbling", "sliding", "gaps", "session")


class Marked(WatermarkGenerator):
    """Watermarks where the stream says so: records (MARK, "", watermark, 0). Others are (stream, key, number, time)."""

    def on_event(self, event: Any, event_timestamp: int, output: Any) -> None:
        if event[0] == MARK:
            output.emit_watermark(event[2])

    def on_periodic_emit(self, output: Any) -> None:
        pass


class Pair(JoinFunction):
    def open(self, runtime_context: Any) -> None:
        self.opened = True

    def join(self, first: Any, second: Any) -> Any:
        assert self.opened
        return first[1], first[2], second[2]


class Twice(FlatJoinFunction):
    def join(self, first: Any, second: Any) -> Iterator[Any]:
        if first[2] != second[2]:
            yield first[1], first[2], second[2]
            yield first[1], second[2], first[2]


class Both(CoGroupFunction):
    def co_group(self, first: Any, second: Any) -> Iterator[Any]:
        yield [(r[1], r[2]) for r in first], [(r[1], r[2]) for r in second]


def two_streams(records: list[Any]) -> tuple[DataStream, DataStream]:
    """One source, so that both streams and their watermarks come in one order."""
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    strategy = WatermarkStrategy.for_generator(Marked).with_timestamp_assigner(lambda record, _: record[3])
    source = env.from_source(Partitioned({"only": records}), strategy, "records")
    return source.filter(lambda record: record[0] == 0), source.filter(lambda record: record[0] == 1)


def joined(records: list[Any], method: str, assigner: str, function: Any, lateness: int) -> tuple[list[Any], list[Any]]:
    first, second = two_streams(records)
    streams = getattr(first, method)(second).where(lambda record: record[1]).equal_to(lambda record: record[1])
    windowed = streams.window(ASSIGNERS[assigner].engine).allowed_lateness(lateness).side_output_late_data(LATE)
    stream = windowed.apply(function)
    late = stream.get_side_output(LATE)
    with GraphHarness(stream.get_execution_environment(), collect=[stream, late], epoch_records=1) as harness:
        harness.run()
        return harness.results(stream), harness.results(late)


def expected(
    records: list[Any], assigner: str, evaluate: Callable[[list[Any], list[Any]], list[Any]], lateness: int
) -> tuple[list[Any], list[Any]]:
    chosen = ASSIGNERS[assigner]

    def apart(key: Any, window: Any, values: list[Any]) -> list[Any]:
        return evaluate([v for v in values if v[0] == 0], [v for v in values if v[0] == 1])

    world = Oracle(
        chosen.assign, chosen.default, apart, event_time=True, merging=chosen.merging, lateness=lateness,
        evict=None, evict_after=False, on_cleanup=lambda key, window: None,
    )  # fmt: skip
    for record in records:
        if record[0] == MARK:
            world.advance(record[2])
        else:
            world.record(record[1], record, record[3])
    world.advance(2**63 - 1)
    return [value for value, _ in world.out], [value for value, _ in world.late]


def pairs(first: list[Any], second: list[Any]) -> list[Any]:
    return [(one[1], one[2], two[2]) for one in first for two in second]


def twice(first: list[Any], second: list[Any]) -> list[Any]:
    different = [(key, one, two) for key, one, two in pairs(first, second) if one != two]
    return [each for key, one, two in different for each in ((key, one, two), (key, two, one))]


def both(first: list[Any], second: list[Any]) -> list[Any]:
    return [([(r[1], r[2]) for r in first], [(r[1], r[2]) for r in second])]


FUNCTIONS = {
    "join": ("join", Pair(), pairs),
    "plain join": ("join", lambda one, two: (one[1], one[2], two[2]), pairs),
    "flat join": ("join", Twice(), twice),
    "co_group": ("co_group", Both(), both),
    "plain co_group": ("co_group", lambda first, second: both(list(first), list(second)), both),
}
records = st.tuples(st.sampled_from([0, 1]), st.sampled_from("ab"), st.integers(0, 9), st.integers(0, 30))
marks = st.tuples(st.just(MARK), st.just(""), st.integers(0, 35), st.just(0))
streams = st.lists(st.one_of(records, records, records, marks), max_size=14)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("assigner", WINDOWS)
@settings(deadline=None, max_examples=10, suppress_health_check=[HealthCheck.too_slow])
@given(stream=streams, lateness=st.sampled_from([0, 0, 6]))
def test_it_gives_what_the_oracle_says(function: str, assigner: str, stream: list[Any], lateness: int) -> None:
    method, given, evaluate = FUNCTIONS[function]
    found, late = joined(stream, method, assigner, given, lateness)
    wanted, too_late = expected(stream, assigner, evaluate, lateness)
    assert sorted(map(repr, found)) == sorted(map(repr, wanted))
    assert [(record.tag, record.value) for record in late] == [(record[0], record) for record in too_late]


def test_triggers_and_evictors_are_given_tagged_records() -> None:
    first, second = two_streams([(0, "a", 1, 1), (1, "a", 2, 2), (1, "a", 3, 3), (1, "a", 4, 4)])
    keyed = first.join(second).where(1).equal_to(1)
    stream = keyed.window(EventTimeSessionWindows.with_gap(ms(50))).trigger(CountTrigger.of(4)).evictor(
        CountEvictor.of(3, True)
    ).apply(lambda one, two: (one[2], two[2]))  # fmt: skip
    with GraphHarness(stream.get_execution_environment(), collect=stream, epoch_records=1) as harness:
        assert harness.run().results(stream) == [(1, 2), (1, 3), (1, 4)]


def test_a_tagged_record_knows_its_stream() -> None:
    one, two = TaggedUnion(0, "x"), TaggedUnion(1, "y")
    assert (one.is_one(), one.is_two(), one.get_one(), one.get_two()) == (True, False, "x", None)
    assert (two.is_one(), two.is_two(), two.get_one(), two.get_two()) == (False, True, None, "y")


def test_mistakes_are_told_when_it_is_described() -> None:
    first, second = two_streams([])
    by_text = first.join(second).where(lambda record: record[1], Types.STRING())
    with pytest.raises(GraphError, match="keys of the first stream are of type"):
        by_text.equal_to(lambda record: record[2], Types.INT())
    keyed = first.join(second).where(0).equal_to(0)
    with pytest.raises(GraphError, match="takes a WindowAssigner"):
        keyed.window(5)  # type: ignore[arg-type]
    windows = keyed.window(ASSIGNERS["tumbling"].engine)
    with pytest.raises(GraphError, match=r"apply\(\) takes a JoinFunction"):
        windows.apply(Both())
    with pytest.raises(GraphError, match=r"apply\(\) takes a CoGroupFunction"):
        first.co_group(second).where(0).equal_to(0).window(ASSIGNERS["tumbling"].engine).apply(Pair())
    with pytest.raises(GraphError, match="join"):
        first.join("other")  # type: ignore[arg-type]
    with pytest.raises(GraphError, match="key_by"):
        first.join(second).where(None)  # type: ignore[arg-type]
