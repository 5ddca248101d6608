"""Records that are changed after they were emitted, while the call or the batch that emitted them goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from firesteel.common import Row
from firesteel.datastream import (
    DataStream,
    KeyedProcessFunction,
    OutputTag,
    ProcessFunction,
    StreamExecutionEnvironment,
)
from firesteel.testing import FunctionHarness, GraphHarness, MutationError

SIDE = OutputTag("side")


class Counting(ProcessFunction):
    """One object for all of its records, unless it is `new` each time."""

    def __init__(self, new: bool = False, side: bool = False) -> None:
        self.new, self.side = new, side

    def process_element(self, value, ctx):  # type: ignore[no-untyped-def]
        row = Row(0)
        for number in range(value):
            row = Row(number) if self.new else row
            row[0] = number
            yield (SIDE, row) if self.side else row


class Keeping:
    """A map function that gives the same object for every record."""

    def __init__(self) -> None:
        self.kept = [0]

    def __call__(self, value: Any) -> Any:
        self.kept[0] = value
        return self.kept


class Late(KeyedProcessFunction):
    def process_element(self, value, ctx):  # type: ignore[no-untyped-def]
        ctx.timer_service().register_event_time_timer(5)

    def on_timer(self, timestamp, ctx):  # type: ignore[no-untyped-def]
        row = [0]
        yield row
        row.append(1)


def test_one_object_yielded_again_and_again_is_found_and_named() -> None:
    with FunctionHarness(Counting()) as h:
        with pytest.raises(MutationError, match=r"<Row\(0\)> was changed to <Row\(2\)> after it was emitted") as caught:
            h.process(3)
        assert "operator 'Counting'" in str(caught.value)
        assert h.process(1).output() == [Row(0)]  # what was not sent on is forgotten


def test_a_side_output_is_looked_at_too() -> None:
    with FunctionHarness(Counting(side=True)) as h, pytest.raises(MutationError, match="after it was emitted"):
        h.process(2)


def test_new_objects_are_no_mistake_and_neither_is_one_that_stays_as_it_is() -> None:
    with FunctionHarness(Counting(new=True)) as h:
        assert h.process(3).output() == [Row(0), Row(1), Row(2)]
    with FunctionHarness(lambda value: [value] * 2, kind="flat_map") as h:
        assert h.process([1]).output() == [[1], [1]]


def test_what_a_call_gave_is_not_changed_by_the_next_one_of_its_batch() -> None:
    with FunctionHarness(Keeping(), kind="map") as h, pytest.raises(MutationError, match=r"\[1\] was changed to \[2\]"):
        h.process_all([1, 2])


def test_what_a_timer_gave_is_looked_at() -> None:
    with FunctionHarness(Late(), key_selector=lambda value: 0) as h:
        h.process(1, timestamp=1)
        with pytest.raises(MutationError, match=r"\[0\] was changed to \[0, 1\]"):
            h.watermark(5)


def test_looking_can_be_switched_off() -> None:
    with FunctionHarness(Counting(), check_mutation=False) as h:
        assert h.process(3).output() == [Row(2)] * 3


PROGRAMS: dict[str, Callable[[DataStream], DataStream]] = {
    "counting": lambda stream: stream.process(Counting()),
    "mapping": lambda stream: stream.map(Keeping()),
    "windows": lambda stream: (
        stream.key_by(lambda n: 0).count_window(2).apply(lambda k, w, i: Counting().process_element(3, None))
    ),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_whole_programs_are_looked_at(program: str) -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    stream = PROGRAMS[program](env.from_collection([3, 2])).name("the culprit")
    with (
        GraphHarness(env, collect=stream.map(str)) as h,
        pytest.raises(MutationError, match=r"was changed to .* after it was emitted.*operator 'the culprit'"),
    ):
        h.run()
    with GraphHarness(env, collect=stream, check_mutation=False) as h:
        h.run()


def test_what_the_next_operator_does_to_a_record_is_its_own_business() -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    made = env.from_collection([1, 2]).map(lambda n: [n])
    changed = made.map(lambda r: (r.append("m"), r)[1])
    with GraphHarness(env, collect=[changed.map(lambda r: r), made.map(lambda r: r)]) as h:
        h.run()
