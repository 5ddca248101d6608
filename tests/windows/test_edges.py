"""What goes wrong with windows first: borders, lateness, merging, state that stays behind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any
from unittest import mock

import pytest

from firesteel.common import Duration, Time, WatermarkStrategy
from firesteel.datastream import (
    DataStream,
    OutputTag,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
    ValueStateDescriptor,
)
from firesteel.datastream.window import (
    CountTrigger,
    CountWindow,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindow,
    GlobalWindows,
    MergingWindowAssigner,
    PurgingTrigger,
    SlidingEventTimeWindows,
    TimeWindow,
    Trigger,
    TriggerResult,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    WindowAssigner,
)
from firesteel.errors import GraphError, StateError, UserCodeError
from firesteel.graph.keys import KeyGroups, encode_key, namespaced
from firesteel.runtime import timestamps
from firesteel.testing import FunctionHarness, GraphHarness, run_locally
from tests.windows.driving import left

LATE = OutputTag("late")


def first(record: Any) -> Any:
    return record[0]


def ms(millis: int) -> Time:
    return Time.milliseconds(millis)


def listing(key: Any, window: Any, inputs: Iterable[Any]) -> list[Any]:
    return [(key, tuple(window), [number for _, number in inputs])]


def windowed(assigner: Any, lateness: int = 0, trigger: Any = None) -> FunctionHarness:
    def build(stream: DataStream) -> DataStream:
        windows = stream.key_by(first).window(assigner).allowed_lateness(lateness).side_output_late_data(LATE)
        return (windows if trigger is None else windows.trigger(trigger)).apply(listing)

    return FunctionHarness.around(build)


TUMBLING = TumblingEventTimeWindows.of(ms(10))
SESSIONS = EventTimeSessionWindows.with_gap(ms(10))


@pytest.mark.parametrize(
    ("time", "offset", "window"),
    [(0, 0, (0, 10)), (9, 0, (0, 10)), (-1, 0, (-10, 0)), (-10, 0, (-10, 0)), (-11, 0, (-20, -10)), (2, 3, (-7, 3))],
)
def test_windows_begin_at_multiples_of_their_size_before_1970_too(
    time: int, offset: int, window: tuple[int, int]
) -> None:
    with windowed(TumblingEventTimeWindows.of(ms(10), ms(offset))) as h:
        assert h.process(("a", 1), time).end_of_input().output() == [("a", window, [1])]


def test_a_window_fires_when_its_last_millisecond_is_complete() -> None:
    with windowed(TUMBLING) as h:
        assert h.process(("a", 1), 3).watermark(8).output() == []
        assert h.watermark(9).output_with_timestamps() == [(("a", (0, 10), [1]), 9)]
        assert left(h) == {}


def test_late_records_make_a_window_fire_again_until_its_lateness_is_over() -> None:
    with windowed(TUMBLING, lateness=5) as h:
        h.process(("a", 1), 3).watermark(9).process(("a", 2), 4).watermark(13).process(("a", 3), 5)
        assert h.output() == [("a", (0, 10), [1]), ("a", (0, 10), [1, 2]), ("a", (0, 10), [1, 2, 3])]
        h.watermark(14).process(("a", 4), 6)
        assert h.side_output(LATE) == [("a", 4)]
        assert left(h) == {}


def test_late_records_are_counted_where_nobody_reads_them() -> None:
    with FunctionHarness.around(lambda s: s.key_by(first).window(TUMBLING).sum(1)) as h:
        assert h.watermark(100).process(("a", 1), 3).process(("a", 1), 99).output() == []
        assert h.metrics() == {"numLateRecordsDropped": 2}


def test_a_late_record_that_one_of_its_windows_still_takes_is_not_late() -> None:
    with windowed(SlidingEventTimeWindows.of(ms(10), ms(5))) as h:
        h.watermark(9).process(("a", 1), 7)
        assert h.side_output(LATE) == []
        assert h.end_of_input().output() == [("a", (5, 15), [1])]


def test_lateness_does_not_overflow() -> None:
    with windowed(TUMBLING, lateness=2**63 - 5) as h:
        h.process(("a", 1), 3).watermark(10**15).process(("a", 2), 4)
        assert h.output() == [("a", (0, 10), [1]), ("a", (0, 10), [1, 2])]


def test_a_session_bridges_two_others() -> None:
    with windowed(SESSIONS) as h:
        h.process(("a", 1), 0).process(("a", 2), 18).process(("a", 3), 9)
        assert h.watermark(26).output() == []
        assert h.watermark(27).output() == [("a", (0, 28), [1, 2, 3])]
        assert left(h) == {}


def test_sessions_that_touch_are_one_and_those_a_millisecond_apart_are_two() -> None:
    with windowed(SESSIONS) as h:
        h.process(("a", 1), 0).process(("a", 2), 10).process(("a", 3), 21)
        assert h.end_of_input().output() == [("a", (0, 20), [1, 2]), ("a", (21, 31), [3])]


def test_a_late_record_brings_a_session_back_within_its_lateness() -> None:
    with windowed(SESSIONS, lateness=20) as h:
        h.process(("a", 1), 0).watermark(9).process(("a", 2), 5)
        assert h.output() == [("a", (0, 10), [1])]  # the session goes on to 15, which is not over
        h.watermark(14)
        assert h.output()[1:] == [("a", (0, 15), [1, 2])]
        h.watermark(34)
        assert left(h) == {}


def test_a_watermark_may_jump_over_many_windows() -> None:
    with windowed(TUMBLING) as h:
        for number in range(50):
            h.process(("a", number), number * 10)
        h.watermark(10**9)
        assert [window[0] for _, window, _ in h.output()] == list(range(0, 500, 10))
        assert left(h) == {}


def test_a_key_without_further_records_fires_too() -> None:
    with windowed(TUMBLING) as h:
        h.process(("quiet", 1), 1).process(("busy", 1), 2)
        for number in range(3, 30):
            h.process(("busy", number), number)
        assert ("quiet", (0, 10), [1]) in h.watermark(10).output()


class Twice(Trigger[Any, Any]):
    """Sets a timer while one fires."""

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> TriggerResult:
        ctx.register_event_time_timer(timestamp + 2)
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        if time % 2 == 0 and time < 8:
            ctx.register_event_time_timer(time + 2)
        return TriggerResult.FIRE

    def on_processing_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return TriggerResult.CONTINUE

    def clear(self, window: Any, ctx: Any) -> None:
        """The last one has fired by then."""


def test_timers_that_are_set_while_one_fires_fire_too() -> None:
    with windowed(TUMBLING, trigger=Twice()) as h:
        assert h.process(("a", 1), 0).watermark(8).output() == [("a", (0, 10), [1])] * 4


def test_purging_throws_away_records_and_keeps_what_the_trigger_knows() -> None:
    with windowed(TUMBLING, trigger=PurgingTrigger.of(CountTrigger.of(2))) as h:
        for number in range(5):
            h.process(("a", number), number)
        assert h.output() == [("a", (0, 10), [0, 1]), ("a", (0, 10), [2, 3])]
        assert h.end_of_input().output()[2:] == []
        assert left(h) == {}


def test_windows_by_the_clock_fire_when_it_has_passed_their_end() -> None:
    def build(stream: DataStream) -> DataStream:
        return stream.key_by(first).window(TumblingProcessingTimeWindows.of(ms(10))).sum(1)

    with FunctionHarness.around(build, clock=4) as h:
        h.process(("a", 1)).set_clock(9).process(("a", 2))
        assert h.output() == []
        assert h.set_clock(10).output_with_timestamps() == [(("a", 3), 9)]
        assert left(h) == {}


def test_count_windows_leave_nothing_but_the_count() -> None:
    with FunctionHarness.around(lambda s: s.key_by(first).count_window(2).sum(1)) as h:
        for number in range(7):
            h.process(("a", number))
        assert h.output_with_timestamps() == [(("a", 1), None), (("a", 5), None), (("a", 9), None)]
        assert left(h) == {"tumble-count-assigner": 1, "/window-contents": 1, "/trigger/count": 1}


def test_sliding_count_windows_begin_with_the_first_full_one() -> None:
    with FunctionHarness.around(lambda s: s.key_by(first).count_window(3, 2).apply(counted)) as h:
        h.process_all([("a", number) for number in range(8)])
        assert h.output() == [(0, [0, 1, 2]), (1, [2, 3, 4]), (2, [4, 5, 6])]


def counted(key: Any, window: CountWindow, inputs: Iterable[Any]) -> list[Any]:
    return [(window.id, [number for _, number in inputs])]


def test_windows_of_everything() -> None:
    with FunctionHarness.around(lambda s: s.count_window_all(3).reduce(lambda a, b: a + b)) as h:
        assert h.process_all(list(range(7))).output() == [3, 12]


class Everything(ProcessAllWindowFunction[Any, Any, Any]):
    def process(self, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        assert context.current_watermark() >= context.window().max_timestamp()
        yield context.window().start, sorted(elements)
        yield LATE, len(list(elements))


def test_process_over_all_with_a_side_output() -> None:
    with FunctionHarness.around(lambda s: s.window_all(TUMBLING).process(Everything())) as h:
        h.process_all([3, 1, 2], [3, 1, 12]).watermark(50)
        assert h.output() == [(0, [1, 3]), (10, [2])]
        assert h.side_output(LATE) == [2, 1]


class PerWindow(ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        context.window_state().get_state(ValueStateDescriptor("seen")).update(True)
        yield key


def test_windows_that_merge_have_no_state_of_their_own() -> None:
    with (
        FunctionHarness.around(lambda s: s.key_by(first).window(SESSIONS).process(PerWindow())) as h,
        pytest.raises(StateError, match="global_state"),
    ):
        h.process(("a", 1), 1).end_of_input()


@pytest.mark.parametrize("assigner", [TUMBLING, SESSIONS])
def test_a_record_without_a_timestamp_is_named_and_what_to_do(assigner: Any) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    stream = env.from_collection([("a", 1)]).key_by(first).window(assigner).sum(1)
    with pytest.raises(UserCodeError, match="assign_timestamps_and_watermarks") as caught:
        run_locally(env, stream)
    assert "('a', 1)" in "".join([str(caught.value), *getattr(caught.value, "__notes__", [])])


class Halves(WindowAssigner[Any, Any]):
    """Even numbers go into one window, odd ones into another."""

    def assign_windows(self, element: Any, timestamp: int, context: Any) -> list[Any]:
        return [CountWindow(element[1] % 2)]

    def get_default_trigger(self, env: Any) -> Any:
        return CountTrigger.of(2)

    def is_event_time(self) -> bool:
        return False


def test_an_assigner_of_ones_own() -> None:
    with FunctionHarness.around(lambda s: s.key_by(first).window(Halves()).apply(counted)) as h:
        h.process_all([("a", number) for number in (1, 2, 3, 4)])
        assert h.output() == [(1, [1, 3]), (0, [2, 4])]


class Buckets(MergingWindowAssigner[Any, Any]):
    """Every record has a window of its own until there are three; then they are one."""

    def assign_windows(self, element: Any, timestamp: int, context: Any) -> list[Any]:
        return [TimeWindow(element[1], element[1] + 1)]

    def merge_windows(self, windows: Iterable[Any], callback: Any) -> None:
        found = sorted(windows)
        if len(found) >= 3:
            callback.merge(found, TimeWindow(found[0].start, found[-1].end))

    def get_default_trigger(self, env: Any) -> Any:
        return EventTimeTrigger()

    def is_event_time(self) -> bool:
        return True


def test_a_merging_assigner_of_ones_own() -> None:
    with windowed(Buckets()) as h:
        h.process(("a", 5), 5).process(("a", 30), 30).process(("a", 12), 12)
        assert h.end_of_input().output() == [("a", (5, 31), [5, 30, 12])]
        assert left(h) == {}


def test_state_of_windows_has_the_group_of_its_key() -> None:
    groups = KeyGroups(128)
    for key in ("a", 7, ("a", TimeWindow(0, 10)), (1, 2)):
        assert groups[namespaced(key, TimeWindow(0, 10))] == groups[key]
    assert groups["a", TimeWindow(0, 10)] == groups["a", (0, 10)]  # a key like any other, and another group
    assert all(len(key) == 2 for key in groups if isinstance(key, tuple))  # nothing is remembered for windows
    with pytest.raises(Exception, match="cannot be a key"):
        encode_key(namespaced("a", 1))


def program(records: list[Any], assigner: Any) -> tuple[StreamExecutionEnvironment, DataStream]:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(20))
    timed = env.from_collection(records).assign_timestamps_and_watermarks(
        strategy.with_timestamp_assigner(lambda record, _: record[1])
    )
    return env, timed.set_parallelism(1).key_by(first).window(assigner).apply(listing)


@pytest.mark.parametrize("assigner", [TUMBLING, SESSIONS, SlidingEventTimeWindows.of(ms(20), ms(5))])
@pytest.mark.parametrize("sizes", [[1], [7, 0, 30], [500]])
def test_programs_do_not_depend_on_cuts_and_failures(assigner: Any, sizes: list[int]) -> None:
    records = [("abcdefghijkl"[n % 12], n + n * 7919 % 17) for n in range(300)]
    env, stream = program(records, assigner)
    with mock.patch.object(timestamps, "WATERMARK_RECORDS", 8):
        expected = sorted(run_locally(env, stream))
        assert len(expected) > 20
        assert sorted(run_locally(env, stream, epoch_records=sizes)) == expected
        assert sorted(run_locally(env, stream, epoch_records=sizes, fail_at=[2, 5, 9], checkpoint_every=2)) == expected


def test_a_bounded_stream_leaves_no_state_behind() -> None:
    env, stream = program([("ab"[n % 2], n) for n in range(100)], TUMBLING)
    with GraphHarness(env, collect=stream) as h:
        h.run()
        assert len(h.results()) == 20
        assert h.timers("TumblingEventTimeWindows") == []
        assert h.state("TumblingEventTimeWindows", "/window-contents") == {}


def test_global_windows_fire_as_their_trigger_says() -> None:
    def build(stream: DataStream) -> DataStream:
        windows = stream.key_by(first).window(GlobalWindows.create()).trigger(CountTrigger.of(2))
        return windows.apply(lambda key, window, inputs: [(window, len(inputs))])

    with FunctionHarness.around(build) as h:
        h.process_all([("a", n) for n in range(4)])
        assert h.output() == [(GlobalWindow.get(), 2), (GlobalWindow.get(), 4)]


def test_a_harness_for_a_window_function_alone_says_what_to_do() -> None:
    with pytest.raises(GraphError, match=r"FunctionHarness\.around"):
        FunctionHarness(PerWindow(), key_selector=first)
    with pytest.raises(GraphError, match="adds one operator"):
        FunctionHarness.around(lambda s: s.map(str).map(str))


def test_windows_without_lateness_have_no_timers_and_wake_the_job_by_the_clock() -> None:
    def build(stream: DataStream) -> DataStream:
        return stream.key_by(first).window(TumblingProcessingTimeWindows.of(ms(10))).sum(1)

    with FunctionHarness.around(build) as h:
        h.process(("a", 1))
        assert h.timers() == []
        assert [timers.wake() for _, timers in h._assembly.timers] == [10]
        with h.restored() as restored:
            assert [timers.wake() for _, timers in restored._assembly.timers] == [10]
            assert restored.set_clock(10).output() == [("a", 1)]
            assert [timers.wake() for _, timers in restored._assembly.timers] == [None]
