"""Windows that cannot work are refused when the program is described."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from typing import Any

import pytest

from firesteel.common import Duration, Time, Types
from firesteel.datastream import (
    AllWindowFunction,
    OutputTag,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
    TimeCharacteristic,
    WindowFunction,
)
from firesteel.datastream.window import (
    ContinuousEventTimeTrigger,
    CountEvictor,
    CountTrigger,
    CountWindow,
    CountWindowSerializer,
    DeltaTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindow,
    GlobalWindowSerializer,
    PurgingTrigger,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TimeWindow,
    TimeWindowSerializer,
    TumblingEventTimeWindows,
)
from firesteel.errors import GraphError

SECOND, NOTHING = Time.seconds(1), Time.seconds(0)


@pytest.fixture
def stream() -> Any:
    return StreamExecutionEnvironment.get_execution_environment().from_collection([("a", 1)])


@pytest.fixture
def keyed(stream: Any) -> Any:
    return stream.key_by(lambda record: record[0])


class ForKeys(WindowFunction[Any, Any, Any, Any]):
    def apply(self, key: Any, window: Any, inputs: Any) -> Any:
        return inputs


class ForAll(AllWindowFunction[Any, Any, Any]):
    def apply(self, window: Any, inputs: Any) -> Any:
        return inputs


class ProcessKeys(ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Any) -> Any:
        return elements


class ProcessAll(ProcessAllWindowFunction[Any, Any, Any]):
    def process(self, context: Any, elements: Any) -> Any:
        return elements


@pytest.mark.parametrize("method", ["window", "count_window", "time_window"])
def test_windows_of_keys_need_keys(stream: Any, method: str) -> None:
    with pytest.raises(GraphError, match=rf"key_by\(\.\.\.\) first, or {method}_all"):
        getattr(stream, method)(3)


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: TumblingEventTimeWindows.of(NOTHING), "longer than 0"),
    (lambda: TumblingEventTimeWindows.of(10), "Time or a Duration"),
    (lambda: TumblingEventTimeWindows.of(SECOND, Time.seconds(-1)), "offset must be less"),
    (lambda: SlidingEventTimeWindows.of(SECOND, NOTHING), "more than 0 ms apart"),
    (lambda: SlidingProcessingTimeWindows.of(NOTHING, SECOND), "longer than 0"),
    (lambda: EventTimeSessionWindows.with_gap(NOTHING), "gap must be more than 0"),
    (lambda: EventTimeSessionWindows.with_dynamic_gap(5), "SessionWindowTimeGapExtractor"),
    (lambda: ContinuousEventTimeTrigger.of(NOTHING), "at least 1"),
    (lambda: CountTrigger.of(0), "at least 1"),
    (lambda: CountEvictor.of(-1), "at least 1"),
    (lambda: PurgingTrigger.of(CountTrigger), "another trigger"),
    (lambda: DeltaTrigger.of(1, 5), "function of two records"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED)
def test_windows_triggers_and_evictors_that_make_no_sense(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        make()


@pytest.mark.parametrize(
    ("describe", "message"),
    [
        (lambda s: s.window(TumblingEventTimeWindows), "not its class"),
        (lambda s: s.window(10), "takes a WindowAssigner"),
        (lambda s: s.count_window(0), "at least 1"),
        (lambda s: s.count_window(3, -1), "at least 1"),
        (lambda s: s.count_window(3).trigger(3), "takes a Trigger"),
        (lambda s: s.count_window(3).evictor(3), "takes an Evictor"),
        (lambda s: s.count_window(3).allowed_lateness(-1), "must not be negative"),
        (lambda s: s.count_window(3).allowed_lateness("1 s"), "Time or a Duration"),
        (lambda s: s.count_window(3).side_output_late_data("late"), "takes an OutputTag"),
        (lambda s: s.count_window(3).reduce(3), "takes a ReduceFunction"),
        (lambda s: s.count_window(3).reduce(max, 3), "must be a WindowFunction"),
        (lambda s: s.count_window(3).aggregate(max), "takes an AggregateFunction"),
        (lambda s: s.count_window(3).apply(ProcessKeys()), "use process"),
        (lambda s: s.count_window(3).apply(ForAll()), "takes a WindowFunction"),
        (lambda s: s.count_window(3).process(ForKeys()), "takes a ProcessWindowFunction"),
        (lambda s: s.count_window(3).process(ProcessAll()), "takes a ProcessWindowFunction"),
        (lambda s: s.count_window_all(3).process(ProcessKeys()), "takes a ProcessAllWindowFunction"),
        (lambda s: s.count_window_all(3).apply(ForKeys()), "takes a AllWindowFunction"),
        (
            lambda s: s.window(EventTimeSessionWindows.with_gap(SECOND)).trigger(DeltaTrigger.of(1, max)),
            "merges windows, and DeltaTrigger does not",
        ),
    ],
)
def test_what_windowed_streams_refuse(keyed: Any, describe: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        describe(keyed)


def test_what_they_take(keyed: Any) -> None:
    windows = keyed.window(TumblingEventTimeWindows.of(Duration.of_seconds(1)))
    windows.trigger(EventTimeTrigger.create()).allowed_lateness(Time.seconds(2))
    windows.side_output_late_data(OutputTag("late")).evictor(CountEvictor.of(3))
    result = windows.reduce(max, ForKeys(), Types.TUPLE([Types.STRING(), Types.INT()]))
    assert result.get_name() == "TumblingEventTimeWindows"
    assert result.get_type() == Types.TUPLE([Types.STRING(), Types.INT()])
    operator = result.get_execution_environment().graph[result.get_id()].operator
    assert (operator.allowed_lateness, operator.late_tag) == (2000, "late")
    assert keyed.window_all(TumblingEventTimeWindows.of(SECOND)).process(ProcessAll()).get_parallelism() == 1


def test_a_declared_type_stays_that_of_reduced_records() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    typed = env.from_collection([("a", 1)], Types.TUPLE([Types.STRING(), Types.INT()])).key_by(0)
    windows = typed.window(TumblingEventTimeWindows.of(SECOND))
    assert windows.get_input_type() == windows.sum(1).get_type() == Types.TUPLE([Types.STRING(), Types.INT()])
    assert windows.sum(1).get_type() != windows.apply(ForKeys()).get_type()
    with pytest.raises(GraphError, match="no such field"):
        windows.max_by(2)


def assigner_of(windowed: Any) -> str:
    return repr(windowed._window_assigner)


def test_time_window_of_flink_1(keyed: Any) -> None:
    assert assigner_of(keyed.time_window(SECOND)) == "TumblingEventTimeWindows(1000, 0)"
    assert assigner_of(keyed.time_window(SECOND, Time.milliseconds(5))) == "SlidingEventTimeWindows(1000, 5, 0)"
    assert assigner_of(keyed.time_window_all(SECOND)) == "TumblingEventTimeWindows(1000, 0)"
    keyed.get_execution_environment().set_stream_time_characteristic(TimeCharacteristic.ProcessingTime)
    assert assigner_of(keyed.time_window(SECOND)) == "TumblingProcessingTimeWindows(1000, 0)"
    assert assigner_of(keyed.time_window(SECOND, SECOND)) == "SlidingProcessingTimeWindows(1000, 1000, 0)"


def test_windows_are_values() -> None:
    window = TimeWindow(3, 8)
    assert (window.start, window.end, window.max_timestamp()) == (3, 8, 7)
    assert window == TimeWindow(3, 8) != TimeWindow(3, 9) and window < TimeWindow(4, 5)
    assert window.intersects(TimeWindow(8, 9)) and not window.intersects(TimeWindow(9, 10))
    assert window.cover(TimeWindow(1, 4)) == TimeWindow(1, 8)
    assert CountWindow(3) == CountWindow(3) != CountWindow(4) and GlobalWindow.get() == GlobalWindow()
    assert {CountWindow(3), CountWindow(3), GlobalWindow.get()} == {GlobalWindow(), CountWindow(3)}


@pytest.mark.parametrize(
    ("serializer", "window"),
    [
        (TimeWindowSerializer(), TimeWindow(-3, 2**40)),
        (CountWindowSerializer(), CountWindow(7)),
        (GlobalWindowSerializer(), GlobalWindow.get()),
    ],
)
def test_serializers_give_back_what_they_are_given(serializer: Any, window: Any) -> None:
    stream = BytesIO()
    serializer.serialize(window, stream)
    stream.seek(0)
    assert serializer.deserialize(stream) == window
