"""Every assigner with every trigger and function, over random streams, against the oracle; cut, checkpointed and restored
at random points."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.windows.cases import ASSIGNERS, EVICTORS, FUNCTIONS, TRIGGERS, Case
from tests.windows.driving import Step, check

KEPT = {"slide-count-assigner", "tumble-count-assigner", "firings"}
"""State that is the key's own, and stays."""

times = st.integers(-15, 45)
records = st.tuples(st.just("record"), st.tuples(st.sampled_from("ab"), st.integers(0, 9), times))
watermarks = st.tuples(st.just("watermark"), st.integers(-20, 60))
clocks = st.tuples(st.just("clock"), st.integers(0, 12))
scripts = st.lists(st.one_of(records, records, records, records, watermarks, clocks), max_size=25)
interruptions = st.lists(st.sampled_from(["", "", "", "", "cut", "snapshot", "restored"]), min_size=1, max_size=9)
cases = st.builds(
    Case,
    assigner=st.sampled_from(sorted(ASSIGNERS)),
    trigger=st.sampled_from(sorted(TRIGGERS)),
    function=st.sampled_from(FUNCTIONS),
    lateness=st.sampled_from([0, 0, 2, 9]),
    side_output=st.booleans(),
).filter(lambda case: case.possible)

QUICK = settings(
    deadline=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("assigner", ASSIGNERS)
@settings(QUICK, max_examples=8)
@given(script=scripts, interrupted=interruptions, lateness=st.sampled_from([0, 0, 2, 9]), side=st.booleans())
def test_assigners_with_their_own_triggers(
    assigner: str, function: str, script: list[Step], interrupted: list[str], lateness: int, side: bool
) -> None:
    case = Case(assigner, "default", function, lateness, side)
    left = check(case, script, interrupted).left
    if assigner != "global" and "count" not in assigner:
        assert left.keys() <= KEPT


@pytest.mark.parametrize("trigger", [name for name in TRIGGERS if name != "default"])
@pytest.mark.parametrize("assigner", ASSIGNERS)
@settings(QUICK, max_examples=6)
@given(script=scripts, interrupted=interruptions, function=st.sampled_from(FUNCTIONS), lateness=st.sampled_from([0, 6]))
def test_assigners_with_every_trigger(
    assigner: str, trigger: str, script: list[Step], interrupted: list[str], function: str, lateness: int
) -> None:
    case = Case(assigner, trigger, function, lateness)
    if case.possible:
        check(case, script, interrupted)


@pytest.mark.parametrize("evictor", EVICTORS)
@settings(QUICK, max_examples=20)
@given(
    case=cases.filter(lambda case: "aggregate" not in case.function),
    script=scripts,
    interrupted=interruptions,
)
def test_evictors(evictor: str, case: Case, script: list[Step], interrupted: list[str]) -> None:
    check(Case(**{**vars(case), "evictor": evictor}), script, interrupted)


@settings(QUICK, max_examples=250)
@given(case=cases, script=scripts, interrupted=interruptions)
def test_anything(case: Case, script: list[Step], interrupted: list[str]) -> None:
    check(case, script, interrupted)


@settings(QUICK, max_examples=40)
@given(data=st.data(), case=cases.filter(lambda case: case.lateness == 0))
def test_a_stream_in_order_does_not_depend_on_where_it_is_cut(data: Any, case: Case) -> None:
    in_order = sorted(data.draw(st.lists(times, max_size=30)))
    script: list[Step] = []
    for number, time in enumerate(in_order):
        script += [("record", ("ab"[number % 2], number, time)), ("watermark", time - 1)]
    assert check(case, script, data.draw(interruptions)).dropped == 0
