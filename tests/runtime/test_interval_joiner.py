"""Interval joins: which pairs are found, what is late, and that nothing stays behind."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.common import Duration, Time, Types, WatermarkStrategy
from firesteel.datastream import OutputTag, ProcessJoinFunction, StreamExecutionEnvironment
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.errors import SideOutputError, UserCodeError
from firesteel.testing import FunctionHarness, GraphHarness, run_locally
from tests.support.joining import LEFT_LATE, RIGHT_LATE, Event, JoinOracle, Pairs, described, harness, held


def test_a_pair_is_found_whichever_side_comes_first_and_has_the_later_timestamp() -> None:
    with harness(described(-10, 10)) as join:
        join.process1(("k", "left"), 100).process2(("k", "right"), 95)
        join.process2(("k", "early"), 200).process1(("k", "late"), 205)
        assert join.output_with_timestamps() == [
            ((("k", "left"), ("k", "right"), 100, 95, 100), 100),
            ((("k", "late"), ("k", "early"), 205, 200, 205), 205),
        ]


def test_the_interval_is_that_of_the_right_record_after_the_left_one() -> None:
    with harness(described(2, 5)) as join:
        for time in range(10, 20):
            join.process2(("k", time), time)
        join.process1(("k", "left"), 11)
        assert [right for _, (_, right), *_ in join.output()] == [13, 14, 15, 16]


def test_only_records_of_one_key_meet() -> None:
    with harness(described(0, 0)) as join:
        join.process1(("a", 1), 5).process2(("b", 1), 5).process2(("a", 2), 5)
        assert [(left, right) for left, right, *_ in join.output()] == [(("a", 1), ("a", 2))]


def test_records_are_forgotten_as_soon_as_nothing_can_join_with_them() -> None:
    with harness(described(-3, 5)) as join:
        join.process1(("k", 1), 10).process2(("k", 2), 10).process2(("j", 3), 11)
        assert [timer.time for timer in join.timers()] == [13, 14, 15]
        join.watermark(12)
        assert held(join) == 6
        join.watermark(13)  # a left record that still comes is at 13 or later, so at most 10 - 13 = -3 apart: included
        assert join.state("/right") == {"j": {11: (("j", 3),)}}
        join.watermark(15)
        assert held(join) == 0


def test_a_record_is_late_only_below_the_watermark() -> None:
    late = described(0, 10).side_output_left_late_data(LEFT_LATE).side_output_right_late_data(RIGHT_LATE)
    with harness(late) as join:
        join.watermark1(50).process1(("k", 1), 20)
        assert join.side_output(LEFT_LATE) == []  # the other side has no watermark yet
        join.watermark2(40).process1(("k", 2), 39).process2(("k", 3), 39).process2(("k", 4), 40)
        assert join.side_output_with_timestamps(LEFT_LATE) == [(("k", 2), 39)]
        assert join.side_output_with_timestamps(RIGHT_LATE) == [(("k", 3), 39)]
        assert join.output() == []


def test_late_records_are_dropped_and_counted_where_no_side_output_is_named() -> None:
    with harness(described(0, 10)) as join:
        join.watermark(40).process1(("k", 1), 39).process2(("k", 2), 39)
        assert join.output() == [] and held(join) == 0
        assert join.metrics() == {"numLateRecordsDropped": 2}


def test_a_side_output_for_late_records_that_nobody_reads_is_refused_at_the_start() -> None:
    join = described(0, 10).side_output_left_late_data(OutputTag("unread"))
    stream = join.process(Pairs())
    with pytest.raises(SideOutputError, match="late records to the side output 'unread', which nobody reads"):
        run_locally(stream.get_execution_environment(), stream)


@pytest.mark.parametrize("side", [1, 2])
def test_a_record_without_a_timestamp_is_named(side: int) -> None:
    with harness(described(0, 10)) as join, pytest.raises(UserCodeError, match="has no timestamp") as failure:
        getattr(join, f"process{side}")(("k", "no time"))
    where = "on the record ('k', 'no time')"
    assert where in "".join(getattr(failure.value, "__notes__", [where]))


class CountsPairs(ProcessJoinFunction):
    def open(self, runtime_context):  # type: ignore[no-untyped-def]
        self.count = runtime_context.get_state(ValueStateDescriptor("pairs", Types.LONG()))

    def process_element(self, left, right, ctx):  # type: ignore[no-untyped-def]
        self.count.update((self.count.value() or 0) + 1)
        yield OutputTag("counts"), self.count.value()


def test_the_function_may_have_state_and_side_outputs() -> None:
    join = FunctionHarness(CountsPairs(), key_selector=lambda record: record[0])
    with join:
        join.process1(("a", 1), 0).process2(("a", 2), 1000).process2(("b", 3), 0).process2(("a", 4), 5)
        again = join.restored()
    with again:
        again.process1(("b", 5), 9)
        assert again.state("pairs") == {"a": 2, "b": 1}
        assert join.side_output("counts") == [1, 2] and again.side_output("counts") == [1]
        assert again.end_of_input().timers() == []


BOUNDS = st.tuples(st.integers(-6, 6), st.integers(0, 8)).map(lambda both: (both[0], both[0] + both[1]))
STEPS = st.tuples(st.integers(0, 1), st.sampled_from(["a", "a", "b", None, None]), st.integers(-3, 3))


def as_time_goes_on(steps: list[tuple[int, str | None, int]]) -> list[Event]:
    """Records around a time that moves slowly, and watermarks just behind it, so that all is decided at the bounds."""
    return [
        Event(side, number // 6 + jitter - (2 if key is None else 0), key)
        for number, (side, key, jitter) in enumerate(steps)
    ]


@settings(max_examples=200, deadline=None)
@given(
    bounds=st.tuples(st.integers(-3, 3), st.integers(0, 4)).map(lambda both: (both[0], both[0] + both[1])),
    events=st.lists(STEPS, min_size=20, max_size=60).map(as_time_goes_on),
    restore_at=st.integers(0, 60),
    cuts=st.sets(st.integers(0, 60), max_size=5),
)
def test_any_order_of_records_and_watermarks_gives_what_the_definition_says(
    bounds: tuple[int, int], events: list[Event], restore_at: int, cuts: set[int]
) -> None:
    oracle = JoinOracle(*bounds)
    join = described(*bounds).side_output_left_late_data(LEFT_LATE).side_output_right_late_data(RIGHT_LATE)
    driven = harness(join)
    found: list[Any] = []
    late: tuple[list[Any], list[Any]] = ([], [])

    def take() -> None:
        found.extend(driven.output_with_timestamps())
        late[0].extend(driven.side_output(LEFT_LATE))
        late[1].extend(driven.side_output(RIGHT_LATE))

    try:
        for number, event in enumerate(events):
            if number == restore_at:
                take()
                driven, before = driven.restored(), driven
                before.close()
            elif number in cuts:
                driven.cut()
            record = (event.key, number)
            if event.key is None:
                (driven.watermark2 if event.side else driven.watermark1)(event.time)
            else:
                (driven.process2 if event.side else driven.process1)(record, event.time)
            oracle.happens(event, record)
        driven.end_of_input()
        take()
        assert held(driven) == 0
    finally:
        driven.close()
    assert Counter(value for value, _ in found) == Counter(oracle.pairs)
    assert all(time == value[4] for value, time in found)
    assert late == oracle.late


RECORDS = st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), st.integers(0, 60)), max_size=40)


@settings(max_examples=40, deadline=None)
@given(
    bounds=BOUNDS,
    left=RECORDS,
    right=RECORDS,
    parallelism=st.integers(1, 3),
    seed=st.integers(0, 2**16),
    fail_at=st.sets(st.integers(1, 8), max_size=2),
)
def test_a_program_finds_every_pair_once_however_epochs_are_cut_and_whatever_fails(
    bounds: tuple[int, int],
    left: list[tuple[str, int]],
    right: list[tuple[str, int]],
    parallelism: int,
    seed: int,
    fail_at: set[int],
) -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    # no record is late, whatever the order
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(60)).with_timestamp_assigner(
        lambda record, _: record[1]
    )
    streams = [
        env.from_collection(records)
        .rebalance()
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda record: record[0])
        for records in (
            [(*record, "left", number) for number, record in enumerate(left)],
            [(*record, "right", number) for number, record in enumerate(right)],
        )
    ]
    lower, upper = bounds
    joined = (
        streams[0]
        .interval_join(streams[1])
        .between(Time.milliseconds(lower), Time.milliseconds(upper))
        .process(Pairs())
        .uid("join")
    )
    sizes = random.Random(seed)
    numbers = [sizes.randrange(1, 12) for _ in range(10)]
    with GraphHarness(env, collect=joined, epoch_records=numbers, fail_at=fail_at, checkpoint_every=1) as h:
        h.run()
        found = Counter((one[-1], two[-1]) for one, two, *_ in h.results())
        assert h.state("join", "/left") == h.state("join", "/right") == {} and h.timers("join") == []
    assert found == Counter(
        (i, j)
        for i, (key, time) in enumerate(left)
        for j, (other, other_time) in enumerate(right)
        if key == other and lower <= other_time - time <= upper
    )
