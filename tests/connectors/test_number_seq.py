from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.connectors.base import EnumeratorContext
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.errors import ConfigurationError, RestoreError
from tests.connectors.connector_reading import ReadingJob, read_in_any_way


@given(st.integers(-100, 100), st.integers(0, 60), st.data())
def test_every_number_comes_once(start: int, more: int, data: st.DataObject) -> None:
    job = read_in_any_way(NumberSequenceSource(start, start + more), data, 20)
    assert job.by_position() == list(range(start, start + more + 1))


def test_the_sequence_is_split_evenly_over_subtasks() -> None:
    job = ReadingJob(NumberSequenceSource(1, 100), parallelism=4)
    assert job.enumerator.plan(1000).ranges == [
        [{"start": 1, "stop": 26}],
        [{"start": 26, "stop": 51}],
        [{"start": 51, "stop": 76}],
        [{"start": 76, "stop": 101}],
    ]


def test_all_subtasks_share_what_is_left_after_scaling_up() -> None:
    job = ReadingJob(NumberSequenceSource(1, 100), parallelism=1)
    job.epoch(20)
    job.restart(parallelism=4)
    assert [len(ranges) for ranges in job.enumerator.plan(1000).ranges] == [1, 1, 1, 1]


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_rate_limits_what_is_planned() -> None:
    clock = Clock()
    source = NumberSequenceSource(1, 1000, rate_per_second=10, clock=clock)
    enumerator = source.create_enumerator(EnumeratorContext("n", 4))
    assert enumerator.plan(1000).units == 0
    clock.now += 0.5
    assert enumerator.plan(1000).units == 5
    assert enumerator.plan(1000).units == 0
    clock.now += 10
    assert enumerator.plan(30).units == 30  # the budget still counts
    assert not enumerator.finished()


def test_a_slow_rate_reaches_the_end() -> None:
    clock = Clock()
    source = NumberSequenceSource(1, 10, rate_per_second=1, clock=clock)
    enumerator = source.create_enumerator(EnumeratorContext("n", 4))
    seconds = 0
    while not enumerator.finished():
        enumerator.plan(1000)
        clock.now += 1
        seconds += 1
    assert seconds == 11


def test_other_bounds_are_refused() -> None:
    state = NumberSequenceSource(1, 10).create_enumerator(EnumeratorContext("n", 1)).snapshot()
    with pytest.raises(RestoreError, match="1 to 11"):
        NumberSequenceSource(1, 11).create_enumerator(EnumeratorContext("n", 1)).restore(state)


def test_bad_settings_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="2 to 1"):
        NumberSequenceSource(2, 1)
    with pytest.raises(ConfigurationError, match="rate_per_second"):
        NumberSequenceSource(1, 2, rate_per_second=0)
