"""Watermarks of each split: who holds event time back, and who does not."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.common import Duration, WatermarkStrategy
from firesteel.connectors.base import EnumeratorContext
from firesteel.connectors.collection import CollectionSource
from firesteel.connectors.datagen import DataGeneratorSource
from firesteel.connectors.file_formats import StreamFormat
from firesteel.connectors.file_source import FileSource
from firesteel.connectors.number_seq import NumberSequenceSource
from firesteel.datastream import DataStream, KeyedProcessFunction, ProcessFunction, StreamExecutionEnvironment
from firesteel.runtime import timestamps
from firesteel.runtime.flow import MIN_WATERMARK
from firesteel.testing import GraphHarness
from tests.support.partitioned import Partitioned

MONOTONOUS = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: int(value))


class Seen(ProcessFunction):
    """Every record with the watermark that it finds."""

    def process_element(self, value, ctx):  # type: ignore[no-untyped-def]
        yield value, ctx.timer_service().current_watermark()


class KeyedSeen(KeyedProcessFunction):
    def process_element(self, value, ctx):  # type: ignore[no-untyped-def]
        yield value, ctx.timer_service().current_watermark()


def environment(parallelism: int) -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)


def by_one(stream: DataStream) -> DataStream:
    """All records in one subtask, which has a channel from every subtask of the source."""
    return stream.key_by(lambda _: 0).process(KeyedSeen()).set_parallelism(1)


@pytest.fixture(autouse=True)
def every_other_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timestamps, "WATERMARK_RECORDS", 2)


TIMES = st.lists(st.integers(0, 30), max_size=15).map(sorted)


@settings(max_examples=60, deadline=None)
@given(
    partitions=st.lists(TIMES, min_size=1, max_size=4),
    parallelism=st.integers(1, 3),
    sizes=st.lists(st.integers(1, 6), min_size=1, max_size=4),
    fail_at=st.sets(st.integers(1, 6), max_size=2),
    in_turns=st.booleans(),
)
def test_records_in_order_within_their_partition_are_never_late_however_partitions_are_read(
    partitions: list[list[int]], parallelism: int, sizes: list[int], fail_at: set[int], in_turns: bool
) -> None:
    env = environment(parallelism)
    source = Partitioned({f"p{i}": times for i, times in enumerate(partitions)}, in_turns=in_turns)
    seen = by_one(env.from_source(source, MONOTONOUS, "source"))
    with GraphHarness(env, collect=seen, epoch_records=sizes, fail_at=fail_at, checkpoint_every=1) as h:
        h.run()
        found = h.results()
    assert sorted(value for value, _ in found) == sorted(chain.from_iterable(partitions))
    assert [pair for pair in found if pair[1] >= pair[0]] == []


@pytest.mark.parametrize("in_turns", [False, True])
def test_the_slowest_partition_holds_event_time_back_until_it_is_finished(in_turns: bool) -> None:
    env = environment(1)
    source = Partitioned({"slow": [1, 2, 3], "fast": [10, 20, 30, 40, 50, 60]}, chunk=1, in_turns=in_turns)
    seen = env.from_source(source, MONOTONOUS, "source").process(Seen())
    with GraphHarness(env, collect=seen, epoch_records=1) as h:
        h.run()
        watermarks = dict(h.results())
    assert [watermarks[time] for time in (10, 20, 30)] == [MIN_WATERMARK, 0, 1]
    assert watermarks[60] == 49  # its own partition is the only one left


def test_a_partition_that_falls_silent_is_left_out_until_it_speaks_again() -> None:
    env = environment(1)
    source = Partitioned({"silent": [5], "busy": list(range(10, 100, 10))}, endless=True)
    strategy = MONOTONOUS.with_idleness(Duration.of_millis(100))
    seen = env.from_source(source, strategy, "source").process(Seen())
    with GraphHarness(env, collect=seen, epoch_records=1) as h:
        for _ in range(4):
            h.step()
        assert h.results()[-1] == (40, 4)
        h.advance_clock(100)
        h.step(2)  # the first one finds out
        assert h.results()[-1] == (60, 49)


def test_a_subtask_with_nothing_to_read_says_how_far_it_got() -> None:
    env = environment(2)
    source = Partitioned({"quiet": [50], "busy": list(range(100, 200))}, endless=True)
    seen = by_one(env.from_source(source, MONOTONOUS, "source"))
    with GraphHarness(env, collect=seen, epoch_records=4) as h:
        h.step(3)
        assert h.results()[-1][1] == 49  # less than a watermark's worth of records, and nothing more comes


@pytest.mark.parametrize("fail_at", [(), (2,), (2, 3), (1, 2, 3, 4, 5)])
def test_what_a_split_has_seen_survives_a_restore(fail_at: tuple[int, ...]) -> None:
    env = environment(2)
    source = Partitioned({"a": [1, 2, 3], "b": [11, 12], "c": list(range(20, 60)), "d": [15]}, chunk=2)
    seen = env.from_source(source, MONOTONOUS, "source").process(Seen())
    with GraphHarness(env, collect=seen, epoch_records=2, fail_at=fail_at, checkpoint_every=1) as h:
        h.run()
        again = h.results()
    with GraphHarness(env, collect=seen, epoch_records=2, checkpoint_every=1) as h:
        assert again == h.run().results()


@pytest.mark.parametrize(("before", "after"), [(1, 2), (2, 1), (2, 3)])
def test_splits_take_their_watermarks_along_to_other_subtasks(tmp_path: Path, before: int, after: int) -> None:
    def program(parallelism: int) -> tuple[StreamExecutionEnvironment, DataStream]:
        env = environment(1)
        source = Partitioned({"quiet": [1, 2], "busy": list(range(100, 120))}, endless=True)
        stream = env.from_source(source, MONOTONOUS, "source").uid("source").set_parallelism(parallelism)
        return env, by_one(stream).uid("seen")

    env, seen = program(before)
    with GraphHarness(env, collect=seen, epoch_records=2, checkpoint_every=1, directory=str(tmp_path)) as h:
        h.step()
    env, seen = program(after)
    with GraphHarness(env, collect=seen, epoch_records=4, checkpoint_every=1, directory=str(tmp_path)) as h:
        h.step(5)
        watermarks = [watermark for _, watermark in h.results()]
    # event time starts over, but the quiet one has nothing more to say: what it said before must be known
    assert watermarks[0] == MIN_WATERMARK and watermarks[-1] == 1


def lines(directory: Path, **files: range) -> FileSource:
    for name, numbers in files.items():
        (directory / name).write_text("".join(f"{number}\n" for number in numbers))
    return FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(directory)).build()


def test_a_subtask_without_a_file_holds_nobody_up(tmp_path: Path) -> None:
    env = environment(3)
    seen = by_one(env.from_source(lines(tmp_path, only=range(20)), MONOTONOUS, "files"))
    with GraphHarness(env, collect=seen, epoch_records=6) as h:
        h.step(8)
        assert h.results()[-1][1] > 0


def test_a_subtask_that_has_read_its_files_holds_nobody_up(tmp_path: Path) -> None:
    env = environment(2)
    source = lines(tmp_path, long=range(100, 200), short=range(3))
    seen = by_one(env.from_source(source, MONOTONOUS, "files"))
    with GraphHarness(env, collect=seen, epoch_records=40) as h:
        h.step(3)
        assert h.results()[-1][1] >= 100


@pytest.mark.parametrize("at_source", [MONOTONOUS, WatermarkStrategy.no_watermarks(), None])
@pytest.mark.parametrize("fail_at", [(), (2,), (1, 2, 3)])
def test_subtasks_that_never_read_hold_nobody_up(at_source: WatermarkStrategy | None, fail_at: tuple[int, ...]) -> None:
    env = environment(3)
    stream = env.from_source(CollectionSource(range(20)), at_source, "collection")
    if at_source is not MONOTONOUS:
        stream = stream.assign_timestamps_and_watermarks(MONOTONOUS)
    seen = by_one(stream)
    with GraphHarness(env, collect=seen, epoch_records=5, fail_at=fail_at, checkpoint_every=1) as h:
        while len(h.results()) < 15:
            assert h.step()
        assert h.results()[-1][1] > 5


@pytest.mark.parametrize("fail_at", [(1,), (2,), (3,), (4,), (5,), (1, 2, 3, 4, 5, 6)])
def test_silent_partitions_are_as_silent_after_a_restore(fail_at: tuple[int, ...]) -> None:
    def run(fail_at: tuple[int, ...]) -> list[Any]:
        env = environment(2)
        source = Partitioned({"silent": [5, 6], "other": [50], "busy": list(range(10, 100, 2))}, endless=True)
        strategy = MONOTONOUS.with_idleness(Duration.of_millis(100))
        seen = by_one(env.from_source(source, strategy, "source"))
        with GraphHarness(env, collect=seen, epoch_records=3, checkpoint_every=1) as h:
            for epoch in range(1, 12):
                h.step()
                if epoch in fail_at:
                    h.fail()
                h.advance_clock(150 if epoch in (3, 4) else 0)
            return h.results()

    assert run(fail_at) == run(())


def test_a_generator_that_gives_few_records_to_one_subtask_does_not_wait_for_the_others() -> None:
    env = environment(2)
    seen = by_one(env.from_source(DataGeneratorSource(lambda n: n, 20), MONOTONOUS, "generator"))
    with GraphHarness(env, collect=seen, epoch_records=1) as h:
        h.step(8)
        assert h.results()[-1][1] > 0


@settings(max_examples=40, deadline=None)
@given(
    files=st.lists(TIMES.filter(bool), min_size=1, max_size=4),
    sizes=st.lists(st.integers(1, 30), min_size=1, max_size=4),
    fail_at=st.sets(st.integers(1, 6), max_size=2),
)
def test_watermarks_of_files_fall_between_the_same_records_however_epochs_are_cut(
    tmp_path_factory: pytest.TempPathFactory, files: list[list[int]], sizes: list[int], fail_at: set[int]
) -> None:
    directory = tmp_path_factory.mktemp("files")
    for number, times in enumerate(files):
        (directory / f"{number}").write_text("".join(f"{time}\n" for time in times))
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(directory)).build()

    def run(**options: Any) -> list[Any]:
        env = environment(1)
        seen = env.from_source(source, MONOTONOUS, "files").process(Seen())
        with GraphHarness(env, collect=seen, **options) as h:
            return h.run().results()

    assert run(epoch_records=sizes, fail_at=fail_at, checkpoint_every=1) == run()


@pytest.mark.parametrize("parallelism", [2, 3])
def test_subtasks_go_on_with_the_splits_they_had(tmp_path: Path, parallelism: int) -> None:
    sources = [NumberSequenceSource(0, 99), lines(tmp_path, a=range(9), b=range(9), c=range(9), d=range(9))]
    for source in sources:
        first = source.create_enumerator(EnumeratorContext("source", parallelism))
        first.plan(13)
        second = source.create_enumerator(EnumeratorContext("source", parallelism))
        second.restore(first.snapshot())
        for _ in range(3):
            assert second.plan(parallelism).ranges == first.plan(parallelism).ranges
