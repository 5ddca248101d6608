"""The short loop and the general operator give the same, and take over each other's state."""

from __future__ import annotations

import time
from itertools import count
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firesteel.datastream import DataStream
from firesteel.runtime.windows import choice
from firesteel.runtime.windows.aligned import is_aligned
from firesteel.testing import FunctionHarness
from tests.windows.cases import ASSIGNERS, FUNCTIONS, TRIGGERS, Case
from tests.windows.driving import Results, Step, run, sorted_out
from tests.windows.test_against_oracle import interruptions, scripts

ALIGNED = [name for name in ASSIGNERS if name.split()[-1].startswith(("tumbling", "sliding", "gaps"))]
ALIGNED = [name for name in ALIGNED if "count" not in name]
COMBINING = ["sum", "aggregate", "reduce and process", "aggregate and apply"]
GENERAL = mock.patch.object(choice, "is_aligned", return_value=False)


def chosen(case: Case) -> bool:
    """Whether the case takes the short loop."""
    found: list[Any] = []
    with mock.patch.object(choice, "is_aligned", lambda kind: found.append(is_aligned(kind)) or found[-1]):
        FunctionHarness.around(case.build).close()
    return bool(found[0])


def test_which_windows_take_the_short_loop() -> None:
    short = {
        (assigner, trigger, function)
        for assigner in ASSIGNERS
        for trigger in TRIGGERS
        for function in FUNCTIONS
        if (case := Case(assigner, trigger, function)).possible and chosen(case)
    }
    own = {name: {"default", "processing time" if "clock" in name else "event time"} for name in ALIGNED}
    assert short == {(name, trigger, f) for name in ALIGNED for trigger in own[name] for f in COMBINING}
    assert not chosen(Case("tumbling", evictor="count"))


@pytest.mark.parametrize("function", COMBINING)
@pytest.mark.parametrize("assigner", ALIGNED)
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(script=scripts, interrupted=interruptions, lateness=st.sampled_from([0, 2, 9]), side=st.booleans())
def test_both_give_the_same(
    assigner: str, function: str, script: list[Step], interrupted: list[str], lateness: int, side: bool
) -> None:
    case = Case(assigner, "default", function, lateness, side)
    short = run(case, script, interrupted)
    with GENERAL:
        general = run(case, script, interrupted)
    assert sorted_out(short.out) == sorted_out(general.out)
    assert sorted_out(short.late) == sorted_out(general.late)
    assert (short.dropped, short.left) == (general.dropped, general.left)


@pytest.mark.parametrize("short_first", [True, False])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    case=st.builds(
        Case,
        assigner=st.sampled_from(ALIGNED),
        function=st.sampled_from(COMBINING),
        lateness=st.sampled_from([0, 4]),
    ),
    before=scripts,
    after=scripts,
)
def test_one_goes_on_where_the_other_stopped(
    short_first: bool, case: Case, before: list[Step], after: list[Step]
) -> None:
    together = Results()
    watermark = max([-100, *(time for what, time in before if what == "watermark")])
    with mock.patch.object(choice, "is_aligned", lambda kind: is_aligned(kind) and short_first):
        first = FunctionHarness.around(case.build)
        feed(first, before, -100)
        together.take(first)
        snapshot = first.snapshot()
        first.close()
    with mock.patch.object(choice, "is_aligned", lambda kind: is_aligned(kind) and not short_first):
        second = FunctionHarness.around(case.build, restore=snapshot)
        feed(second, after, watermark)
        second.end_of_input().advance_clock(100)
        together.take(second)
        second.close()
    expected = run(case, before + after, [""])
    assert sorted_out(together.out) == sorted_out(expected.out)


def feed(harness: FunctionHarness, script: list[Step], watermark: int) -> None:
    for what, argument in script:
        if what == "record":
            harness.process((argument[0], argument[1]), argument[2])
        elif what == "watermark":
            watermark = max(watermark, argument)
            harness.watermark(watermark)
        else:
            harness.advance_clock(argument)


def test_a_record_of_none_empties_a_window_in_both() -> None:
    def build(stream: DataStream) -> DataStream:
        windowed = stream.key_by(lambda value: 0).window(ASSIGNERS["tumbling"].engine)
        return windowed.reduce(lambda a, b: a + b)

    def outputs() -> list[Any]:
        with FunctionHarness.around(build) as h:
            return h.process_all([1, 2, None, 5, None], [1, 2, 3, 4, 11]).end_of_input().output()

    assert outputs() == [5]
    with GENERAL:
        assert outputs() == [5]


def test_windows_that_are_never_over_stay_in_both() -> None:
    case = Case("tumbling", lateness=2**63 - 5)
    script: list[Step] = [("record", ("a", 1, 3)), ("watermark", 10**15), ("record", ("a", 2, 4))]
    short = run(case, script, ["", "restored"])
    with GENERAL:
        general = run(case, script, ["", "restored"])
    assert [value for value, _ in short.out] == [("a", 1), ("a", 3)] == [value for value, _ in general.out]
    assert short.left == general.left == {"/window-contents": 1}


@pytest.mark.parametrize("assigner", ["tumbling", "session"])
def test_compacted_state_files_are_read_too(assigner: str) -> None:
    with FunctionHarness.around(Case(assigner, function="apply").build, check_mutation=False) as h:
        deadline = time.monotonic() + 60  # a process of its own does it
        for number in count():
            h.process_all([(key, number) for key in "abc"], [number % 4] * 3)
            snapshot = h.snapshot()
            if len(snapshot.files) < number + 1:
                break
            assert time.monotonic() < deadline, "nothing was compacted"
            time.sleep(0.05)
        with FunctionHarness.around(Case(assigner, function="apply").build, restore=snapshot) as restored:
            found = restored.end_of_input().output()
    assert [(key, len(numbers)) for key, _, numbers in sorted(found)] == [(key, number + 1) for key in "abc"]
