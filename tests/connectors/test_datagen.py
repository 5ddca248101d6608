from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.common import Types
from firesteel.connectors.base import EnumeratorContext, ReaderContext
from firesteel.datastream.connectors import DataGeneratorSource, GeneratorFunction, RateLimiterStrategy
from firesteel.errors import ConfigurationError, RestoreError, UserCodeError
from tests.connectors.connector_reading import ReadingJob, read_in_any_way


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def square(number: int) -> int:
    return number * number


@given(st.integers(0, 60), st.data())
def test_every_number_is_generated_once(count: int, data: st.DataObject) -> None:
    job = read_in_any_way(DataGeneratorSource(square, count), data, 20)
    assert job.by_position() == [number * number for number in range(count)]


def test_without_a_count_it_never_ends() -> None:
    job = ReadingJob(DataGeneratorSource(square), parallelism=2)
    assert job.epoch(10) == 10
    assert job.epoch(10) == 10
    assert sorted(job.records()) == [number * number for number in range(20)]
    assert not job.enumerator.finished()
    assert job.enumerator.progress() is None


def test_subtasks_stay_together_in_the_sequence() -> None:
    job = ReadingJob(DataGeneratorSource(square), parallelism=2)
    assert job.enumerator.plan(10).ranges == [[{"start": 0, "stop": 5}], [{"start": 5, "stop": 10}]]
    assert job.enumerator.plan(1).ranges == [[{"start": 10, "stop": 11}], []]


def test_a_generator_function_is_opened_and_closed_in_the_slot() -> None:
    class Labels(GeneratorFunction):
        def open(self, reader_context: Any) -> None:
            self.label = f"{reader_context.get_task_name()}/{reader_context.get_index_of_this_subtask()}"

        def map(self, value: int) -> str:
            return f"{self.label}: {value}"

        def close(self) -> None:
            self.label = "closed"

    function = Labels()
    reader = DataGeneratorSource(function, 5).create_reader(ReaderContext("job", "labels", 1, 1, 2))
    assert list(reader.read({"start": 3, "stop": 5})) == [["labels/1: 3", "labels/1: 4"]]
    reader.close()
    assert function.label == "closed"


def test_a_failing_generator_function_names_the_number() -> None:
    def fail(number: int) -> float:
        return 1 / (number - 3)

    reader = DataGeneratorSource(fail, 5).create_reader(ReaderContext("job", "g", 1, 0, 1))
    with pytest.raises(UserCodeError, match=r"(?s)ZeroDivisionError.*for the number 3"):
        list(reader.read({"start": 0, "stop": 5}))
    with pytest.raises(UserCodeError, match="for the number 3"):
        list(reader.read({"start": 0, "stop": 4}))  # also when it is the last one


def test_a_rate_limits_what_is_planned() -> None:
    clock = Clock()
    source = DataGeneratorSource(square, None, RateLimiterStrategy.per_second(10, clock))
    enumerator = source.create_enumerator(EnumeratorContext("g", 2))
    assert enumerator.plan(1000).units == 0
    clock.now += 0.5
    assert enumerator.plan(1000).units == 5
    assert enumerator.plan(1000).units == 0
    clock.now += 10
    assert enumerator.plan(30).units == 30


def test_a_rate_per_checkpoint_waits_for_the_next_one() -> None:
    source = DataGeneratorSource(square, None, RateLimiterStrategy.per_checkpoint(10))
    enumerator = source.create_enumerator(EnumeratorContext("g", 2))
    assert [enumerator.plan(7).units, enumerator.plan(7).units, enumerator.plan(7).units] == [7, 3, 0]
    enumerator.snapshot()
    assert enumerator.plan(7).units == 7


def test_no_limit_is_the_default() -> None:
    for source in (DataGeneratorSource(square), DataGeneratorSource(square, None, RateLimiterStrategy.no_op())):
        assert source.create_enumerator(EnumeratorContext("g", 1)).plan(1000).units == 1000


def test_the_type_is_the_streams() -> None:
    assert DataGeneratorSource(square, 1, type_info=Types.LONG()).get_produced_type() == Types.LONG()


def test_generated_records_can_be_had_again() -> None:
    assert DataGeneratorSource(square).replayable


def test_a_count_below_the_position_is_refused() -> None:
    job = ReadingJob(DataGeneratorSource(square, 10))
    job.epoch(8)
    state = job.enumerator.snapshot()
    grown = DataGeneratorSource(square, 20).create_enumerator(EnumeratorContext("g", 1))
    grown.restore(state)
    assert grown.plan(100).units == 12
    with pytest.raises(RestoreError, match="taken after 8"):
        DataGeneratorSource(square, 7).create_enumerator(EnumeratorContext("g", 1)).restore(state)


def test_bad_settings_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="GeneratorFunction"):
        DataGeneratorSource("x")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="count"):
        DataGeneratorSource(square, -1)
    with pytest.raises(ConfigurationError, match="records_per_second"):
        RateLimiterStrategy.per_second(0)
    with pytest.raises(ConfigurationError, match="records_per_checkpoint"):
        RateLimiterStrategy.per_checkpoint(0)
