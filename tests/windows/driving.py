"""Runs a script through the engine and through the oracle, and compares what they give."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from firesteel.testing import FunctionHarness
from tests.windows.cases import LATE, Case

Step = tuple[str, Any]
FAR = 100


class Results:
    """What came out: for each key and timestamp in order, since keys have no order among each other."""

    def __init__(self) -> None:
        self.out: list[tuple[Any, Any]] = []
        self.late: list[tuple[Any, Any]] = []
        self.dropped = 0
        self.left: dict[str, int] = {}

    def take(self, harness: FunctionHarness) -> None:
        self.out += harness.output_with_timestamps()
        self.late += harness.side_output_with_timestamps(LATE)
        self.dropped += harness.metrics().get("numLateRecordsDropped", 0)


def sorted_out(records: list[tuple[Any, Any]]) -> dict[Any, list[Any]]:
    found: dict[Any, list[Any]] = {}
    for value, time in records:
        found.setdefault((value[0], time), []).append(value)
    return found


def _number(record: tuple[Any, Any]) -> tuple[Any, ...]:
    """The key, and which of its firings it is, where the function tells."""
    (key, *rest), _ = record
    return (key, rest[2][0]) if len(rest) == 3 else (key,)


def _without_numbers(records: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    return [((*value[:3], *(counts[1:] for counts in value[3:])), time) for value, time in records]


def batched(script: list[Step], interruptions: list[str]) -> Iterator[Step]:
    """The script with interruptions in it. Records that follow each other without one are a batch."""
    batch: list[Any] = []
    for index, (what, argument) in enumerate(script):
        interruption = interruptions[index % len(interruptions)]
        if what == "record":
            batch.append(argument)
        if batch and (what != "record" or interruption):
            yield "records", batch
            batch = []
        if what != "record":
            yield what, argument
        if interruption:
            yield interruption, None
    if batch:
        yield "records", batch


def run(case: Case, script: list[Step], interruptions: list[str], end: bool = True) -> Results:
    results = Results()
    harness = FunctionHarness.around(case.build)
    watermark = -FAR
    for what, argument in batched(script, interruptions):
        if what == "records":
            harness.process_all([(key, number) for key, number, _ in argument], [time for _, _, time in argument])
        elif what == "watermark":
            watermark = max(watermark, argument)
            harness.watermark(watermark)
        elif what == "clock":
            harness.advance_clock(argument)
        elif what == "restored":
            results.take(harness)
            with harness as old:
                harness = old.restored()
        else:
            getattr(harness, what)()
    if end:
        harness.end_of_input()
        harness.advance_clock(FAR)
    with harness:
        results.take(harness)
        results.left = left(harness)
    return results


def left(harness: FunctionHarness) -> dict[str, int]:
    """How many entries each table of the operator still has."""
    tables = harness._keyed.store.tables()
    return {name: len(table) for name, _, table in tables if len(table) and name != "/time"}


def expect(case: Case, script: list[Step], interruptions: list[str], end: bool = True) -> Results:
    results = Results()
    world = case.oracle()
    for what, argument in batched(script, interruptions):
        if what == "records":
            for key, number, time in argument:
                world.record(key, (key, number), time)
        elif what == "watermark":
            world.advance(argument)
        world.tick(world.clock + (argument if what == "clock" else 0))  # the clock is looked at after every batch
    if end:
        world.advance(2**63 - 1)
        world.tick(world.clock + FAR)
    results.out = world.out
    if case.side_output:
        results.late = world.late
    else:
        results.dropped = len(world.late)
    return results


def check(case: Case, script: list[Step], interruptions: list[str] | None = None) -> Results:
    """Run both, and hold the engine to what the oracle says."""
    interruptions = interruptions or [""]
    actual, expected = run(case, script, interruptions), expect(case, script, interruptions)
    if "restored" in interruptions:  # the order of timers of one moment, of several windows of a key, is not kept
        assert sorted(map(_number, actual.out)) == sorted(map(_number, expected.out))
        actual.out, expected.out = _without_numbers(actual.out), _without_numbers(expected.out)
    assert sorted_out(actual.out) == sorted_out(expected.out)
    assert sorted_out(actual.late) == sorted_out(expected.late)
    assert actual.dropped == expected.dropped
    return actual
