"""An input that was idle and has records again: event time has gone on without it, but waits for it from the epoch on in which
they come."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.common import Duration, WatermarkStrategy
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.window import TumblingEventTimeWindows
from firesteel.runtime import own
from firesteel.testing import GraphHarness
from tests.runtime.test_split_watermarks import Seen, environment
from tests.support.scheduled import Scheduled

IDLE_MS = 100
END = 20_000

Record = tuple[str, int, int]


def records(begin: int, end: int) -> list[Record]:
    return [(f"key {time % 8}", 1, time) for time in range(begin, end)]


def strategy() -> WatermarkStrategy:
    within = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(100))
    return within.with_timestamp_assigner(lambda record, _: record[2]).with_idleness(Duration.of_millis(IDLE_MS))


BUSY = (records(0, 10), records(10, 20), records(20, END))
FALLS_SILENT = (records(0, 10), [], records(20, END))


def run(env: StreamExecutionEnvironment, stream: Any, restored: bool) -> list[Any]:
    with GraphHarness(env, collect=stream, checkpoint_every=1) as h:
        for _ in range(2):
            h.step()
            h.advance_clock(2 * IDLE_MS)
        if restored:
            h.fail()
        h.run()
        found: list[Any] = h.results()
        return found


@pytest.mark.parametrize("restored", [False, True])
@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("pre_combined", [False, True])
def test_a_subtask_with_records_again_finds_them_in_time(
    pre_combined: bool, kept: bool, restored: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not kept:  # in the slot, so that everything goes through the shuffle
        monkeypatch.setattr(own.OwnBatches.__init__, "__defaults__", (-1,))
    env = environment(2)
    stream = env.from_source(Scheduled(subtasks=[BUSY, FALLS_SILENT]), strategy(), "source").uid("source")
    windows = stream.key_by(lambda record: record[0]).window(TumblingEventTimeWindows.of(Duration.of_seconds(1)))
    sums = run(env, windows.pre_combine(pre_combined).sum(1).uid("sums"), restored)
    assert sum(count for _, count, _ in sums) == 30 + 2 * (END - 20)


@pytest.mark.parametrize("restored", [False, True])
@pytest.mark.parametrize("busy_first", [False, True])
def test_a_source_with_records_again_finds_them_in_time_behind_another_one_of_its_slot(
    busy_first: bool, restored: bool
) -> None:
    env = environment(1)
    given = [("busy", BUSY), ("falls silent", FALLS_SILENT)]
    one, other = (
        env.from_source(Scheduled(*epochs), strategy(), name).uid(name)
        for name, epochs in (given if busy_first else reversed(given))
    )
    found = run(env, one.union(other).process(Seen()).uid("seen"), restored)
    assert len(found) == 30 + 2 * (END - 20)
    assert [record for record, watermark in found if watermark >= record[2]] == []
