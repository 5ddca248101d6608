"""One function under the harness."""

from __future__ import annotations

import pickle
import threading
from typing import Any

import pytest

from firesteel.common import Time, Types
from firesteel.datastream import (
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    FilterFunction,
    FlatMapFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    ProcessFunction,
    ReduceFunction,
    RuntimeContext,
    StateTtlConfig,
    TimeDomain,
    ValueStateDescriptor,
)
from firesteel.errors import GraphError, SerializationError, StateError, TimerError, TypeMismatchError
from firesteel.testing import FunctionHarness, Timer
from tests.testing.functions import ANYTHING, LATE, Everything


def first(value: Any) -> Any:
    return value[0]


class Doubling(MapFunction):
    def map(self, value: Any) -> Any:
        return value * 2


class Twice(FlatMapFunction):
    def flat_map(self, value: Any) -> Any:
        yield value
        yield value


class Even(FilterFunction):
    def filter(self, value: Any) -> bool:
        return bool(value % 2 == 0)


class Sum(ReduceFunction):
    def reduce(self, value1: Any, value2: Any) -> Any:
        return value1[0], value1[1] + value2[1]


class Shifting(ProcessFunction):
    def process_element(self, value, ctx):  # type: ignore[no-untyped-def]
        yield value, ctx.timestamp(), ctx.timer_service().current_processing_time()


class Tagging(CoMapFunction):
    def map1(self, value: Any) -> Any:
        return "one", value

    def map2(self, value: Any) -> Any:
        return None if value is None else ("two", value)


class Spreading(CoFlatMapFunction):
    def flat_map1(self, value: Any) -> Any:
        return range(value)

    def flat_map2(self, value: Any) -> Any:
        return None


class Meeting(KeyedCoProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.left = runtime_context.get_state(ValueStateDescriptor("left", ANYTHING))

    def process_element1(self, value, ctx):  # type: ignore[no-untyped-def]
        self.left.update(value)
        ctx.timer_service().register_event_time_timer(10)

    def process_element2(self, value, ctx):  # type: ignore[no-untyped-def]
        yield self.left.value(), value

    def on_timer(self, timestamp, ctx):  # type: ignore[no-untyped-def]
        yield "alone", self.left.value()


class Both(CoProcessFunction):
    def process_element1(self, value, ctx):  # type: ignore[no-untyped-def]
        yield 1, value

    def process_element2(self, value, ctx):  # type: ignore[no-untyped-def]
        yield 2, value


@pytest.mark.parametrize(
    ("function", "options", "inputs", "outputs"),
    [
        (Doubling(), {}, [1, 2], [2, 4]),
        (lambda n: n + 1, {"kind": "map"}, [1, 2], [2, 3]),
        (Doubling(), {"key_selector": abs}, [1, 2], [2, 4]),
        (Twice(), {}, [1, 2], [1, 1, 2, 2]),
        (lambda n: [n] * n, {"kind": "flat_map"}, [1, 2], [1, 2, 2]),
        (Even(), {}, [1, 2], [2]),
        (lambda n: n > 1, {"kind": "filter"}, [1, 2], [2]),
        (Sum(), {"key_selector": first}, [("a", 1), ("b", 5), ("a", 2)], [("a", 1), ("b", 5), ("a", 3)]),
        (max, {"kind": "reduce", "key_selector": lambda n: 0}, [1, 3, 2], [1, 3, 3]),
        (Shifting(), {"clock": 7}, [1], [(1, None, 7)]),
    ],
)
def test_every_kind_of_function_over_one_input_runs(function: Any, options: Any, inputs: Any, outputs: Any) -> None:
    with FunctionHarness(function, **options) as h:
        for value in inputs:
            h.process(value)
        assert h.output() == outputs


def test_every_kind_of_function_over_two_inputs_runs() -> None:
    with FunctionHarness(Tagging()) as h:
        assert h.process1(1).process2(2).process2(None).output() == [("one", 1), ("two", 2)]
    with FunctionHarness(Spreading()) as h:
        assert h.process1(2).process2(5).output() == [0, 1]
    with FunctionHarness(Both()) as h:
        assert h.process2("x").process1("y").output() == [(2, "x"), (1, "y")]
    with FunctionHarness(Meeting(), key_selector=(first, lambda v: v["key"])) as h:
        h.process1(("a", 1)).process2({"key": "a"}).process2({"key": "b"})
        assert h.output() == [(("a", 1), {"key": "a"}), (None, {"key": "b"})]
        assert h.watermark1(50).output()[2:] == []  # the other input has not come that far
        assert h.watermark2(10).output()[2:] == [("alone", ("a", 1))]
        assert h.watermarks() == [10]


def test_timestamps_travel_with_records_and_side_outputs_are_recorded_unasked() -> None:
    with FunctionHarness(Everything(), key_selector=first) as h:
        h.process(("a", 1), timestamp=15).watermark(17).process(("a", 2), timestamp=16)
        (one, at_one), (two, at_two) = h.output_with_timestamps()
        assert (one[:2], at_one, two[:2], at_two) == (("a", 1), 15, ("a", 2), 16)
        assert h.side_output(LATE) == h.side_output("late") == [("a", 2)]
        assert h.side_output_with_timestamps(LATE) == [(("a", 2), 16)]
        assert h.side_output("nothing ever") == []


def test_timers_fire_by_watermark_and_by_the_manual_clock_and_nothing_else() -> None:
    with FunctionHarness(Everything(), key_selector=first, clock=1000) as h:
        h.process(("a", 10), timestamp=21).process(("b", 5), timestamp=25)
        assert h.timers() == [
            Timer(29, "a", TimeDomain.EVENT_TIME),
            Timer(29, "b", TimeDomain.EVENT_TIME),
            Timer(1006, "b", TimeDomain.PROCESSING_TIME),
            Timer(1011, "a", TimeDomain.PROCESSING_TIME),
        ]
        h.take()
        assert h.watermark(28).advance_clock(5).take() == []
        assert [out[:3] for out in h.advance_clock(1).take()] == [("b", "PROCESSING_TIME", 1006)]
        assert h.clock == 1006
        assert [out[:3] for out in h.end_of_input().take()] == [("a", "EVENT_TIME", 29), ("b", "EVENT_TIME", 29)]
        assert h.timers("a") == [Timer(1011, "a", TimeDomain.PROCESSING_TIME)]
        with pytest.raises(ValueError, match="cannot be set back to 1"):
            h.set_clock(1)


class Immediate(KeyedProcessFunction):
    def process_element(self, value, ctx):  # type: ignore[no-untyped-def]
        ctx.timer_service().register_processing_time_timer(0)

    def on_timer(self, timestamp, ctx):  # type: ignore[no-untyped-def]
        yield ctx.get_current_key()


def test_a_processing_time_timer_that_is_due_already_fires_after_the_record() -> None:
    with FunctionHarness(Immediate(), key_selector=first) as h:
        assert h.process("a").output() == ["a"]


def test_state_of_every_kind_can_be_looked_at_and_not_changed_by_looking() -> None:
    with FunctionHarness(Everything(), key_selector=first) as h:
        h.process(("a", 1)).process(("a", 4)).process(("b", 2))
        assert h.state("last") == {"a": {"number": 4, "time": None}, "b": {"number": 2, "time": None}}
        assert h.state("seen", "a") == [1, 4]
        assert h.state("counts", "a") == {1: 2}
        assert h.state("total", "a") == 5
        assert h.state("mean", "a") == 2.5
        assert (h.state("last", "c"), h.state("seen", "c"), h.state("counts", "c")) == (None, [], {})
        assert h.keys("total") == ["a", "b"]
        h.state("last", "a")["number"] = 99
        assert h.state("last", "a")["number"] == 4
        assert h.metrics() == {"records": 3}
        with pytest.raises(StateError, match="no state 'sum'; known are: 'last', 'seen'"):
            h.state("sum")


class Remembering(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        descriptor = ValueStateDescriptor("seen", Types.INT())
        config = StateTtlConfig.new_builder(Time.milliseconds(100)).update_ttl_on_read_and_write().build()
        descriptor.enable_time_to_live(config)
        self.seen = runtime_context.get_state(descriptor)

    def map(self, value: Any) -> Any:
        before = self.seen.value()
        self.seen.update(value)
        return before


def test_looking_at_state_with_time_to_live_neither_renews_it_nor_shows_what_has_expired() -> None:
    with FunctionHarness(Remembering(), key_selector=lambda n: n % 2) as h:
        h.process(1).advance_clock(60)
        assert h.state("seen") == {1: 1}
        h.advance_clock(40)
        assert h.state("seen") == {}
        assert h.process(3).output() == [None, None]


def test_a_restored_function_goes_on_with_state_timers_watermark_and_clock() -> None:
    with FunctionHarness(Everything(), key_selector=first, clock=5) as h:
        h.process(("a", 5), timestamp=11).watermark(18).cut().process(("a", 3), timestamp=12)
        with h.restored() as g:
            assert g.function is not h.function
            assert g.output() == []
            assert (g.clock, g.timers(), g.state("seen")) == (5, h.timers(), h.state("seen"))
            for each in (g, h):
                each.take()
                each.process(("a", 7), timestamp=13).watermark(19).advance_clock(5)
            assert g.take() == h.take()
            assert g.side_output(LATE) == [("a", 7)]  # 13 is late for the restored watermark 18


class SecondVersion(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.total = runtime_context.get_state(ValueStateDescriptor("last", ANYTHING))

    def process_element(self, value, ctx):  # type: ignore[no-untyped-def]
        yield self.total.value()["number"]


def test_a_pickled_snapshot_is_taken_over_by_a_newer_version_of_the_function() -> None:
    with FunctionHarness(Everything(), key_selector=first) as h:
        snapshot = pickle.loads(pickle.dumps(h.process(("a", 42)).snapshot()))
    with FunctionHarness.restore(snapshot, SecondVersion(), key_selector=first) as g:
        assert g.process(("a", None)).output() == [42]


def test_many_snapshots_of_one_harness_each_hold_everything_so_far() -> None:
    with FunctionHarness(Everything(), key_selector=first) as h:
        for number in range(1, 6):
            snapshot = h.process(("a", number)).snapshot()
            with FunctionHarness.restore(snapshot, Everything(), key_selector=first) as g:
                assert g.state("seen", "a") == list(range(1, number + 1))


def test_what_user_code_raises_comes_out_as_it_is_with_a_note_of_the_record() -> None:
    with FunctionHarness(lambda n: 1 // n, kind="map") as h:
        with pytest.raises(ZeroDivisionError) as caught:
            h.process(0)
        assert "on the record 0" in "".join(getattr(caught.value, "__notes__", ["on the record 0"]))
        assert h.process(1).output() == [1]


class FailsToOpen(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        raise ConnectionError(runtime_context.get_job_parameter("host", "nowhere"))

    def map(self, value: Any) -> Any:
        return value


def test_open_and_close_are_called_with_the_jobs_parameters() -> None:
    with pytest.raises(ConnectionError, match=r"example\.org"):
        FunctionHarness(FailsToOpen(), parameters={"host": "example.org"})


class WithLock(MapFunction):
    def __init__(self) -> None:
        self.lock = threading.Lock()

    def map(self, value: Any) -> Any:
        return self.lock


def test_functions_and_records_that_cannot_be_pickled_are_refused_as_spark_would() -> None:
    with pytest.raises(SerializationError, match=r"function\.lock is a _thread\.lock"):
        FunctionHarness(WithLock())
    with FunctionHarness(lambda v: threading.Lock(), kind="map") as h:
        with pytest.raises(SerializationError, match=r"the emitted record <unlocked _thread\.lock"):
            h.process(1)
        with pytest.raises(SerializationError, match="the input record"):
            h.process(threading.Lock())


def test_a_function_cannot_change_the_tests_own_objects() -> None:
    record = [1]
    with FunctionHarness(lambda v: v.append(2) or v, kind="map") as h:
        assert h.process(record).output() == [[1, 2]]
    assert record == [1]


def test_a_declared_output_type_is_checked() -> None:
    with FunctionHarness(Doubling(), output_type=Types.INT()) as h, pytest.raises(TypeMismatchError):
        h.process("a")


class OwnSelector(KeySelector):
    def get_key(self, value: Any) -> Any:
        return value[0]


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: FunctionHarness(abs), "plain function: say how it is used, with kind='map', kind='flat_map'"),
        (lambda: FunctionHarness(Doubling), "give an instance of the class"),
        (lambda: FunctionHarness(Everything()), "give a key_selector"),
        (lambda: FunctionHarness(Shifting(), key_selector=abs), "use a KeyedProcessFunction"),
        (lambda: FunctionHarness(Meeting(), key_selector=(first,)), "2 input"),
        (lambda: FunctionHarness(Doubling(), key_selector=3), "takes a KeySelector or a function"),
    ],
)
def test_misuse_is_answered_with_what_to_do(make: Any, complaint: str) -> None:
    with pytest.raises(GraphError, match=complaint):
        make()


def test_calls_for_another_number_of_inputs_or_another_kind_of_stream_are_refused() -> None:
    with FunctionHarness(Doubling()) as h:
        with pytest.raises(ValueError, match=r"use process\(\.\.\.\)"):
            h.process1(1)
        with pytest.raises(StateError, match="not keyed"):
            h.state("x")
    with FunctionHarness(Both()) as h, pytest.raises(ValueError, match="process1"):
        h.process(1)
    with pytest.raises(ValueError, match="closed"):
        h.process1(1)
    with FunctionHarness(Everything(), key_selector=OwnSelector()) as h:
        assert h.process(("a", 1)).keys("last") == ["a"]


class Timing(ProcessFunction):
    def process_element(self, value, ctx):  # type: ignore[no-untyped-def]
        ctx.timer_service().register_event_time_timer(value)


def test_firesteels_own_errors_come_out_unwrapped_too() -> None:
    with FunctionHarness(Timing()) as h, pytest.raises(TimerError, match="not keyed"):
        h.process(1)
