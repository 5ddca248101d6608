from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from firesteel.connectors.base import EnumeratorContext
from firesteel.connectors.driver_source import CHUNK
from firesteel.connectors.function_source import CallableSource
from firesteel.errors import GraphError, SerializationError, UserCodeError
from tests.connectors.driving import Driven
from tests.support.waiting import PATIENCE_S


class Counting:
    """A SourceFunction as in Java: counts until it is cancelled or has reached its limit."""

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self.running = True
        self.seen: list[str] = []

    def open(self, context: Any) -> None:
        self.seen.append(context.get_task_name())

    def run(self, ctx: Any) -> None:
        number = 0
        while self.running and number != self.limit:
            with ctx.get_checkpoint_lock():
                ctx.collect(number)
            number += 1

    def cancel(self) -> None:
        self.running = False

    def close(self) -> None:
        self.seen.append("closed")


def test_a_source_functions_records_come_in_order_and_end_when_it_returns() -> None:
    function = Counting(10_000)
    job = Driven(CallableSource(function), parallelism=3)
    assert job.all() == list(range(10_000))
    job.enumerator.close()
    assert function.seen == ["the-source", "closed"]


def test_a_generator_function_is_a_source() -> None:
    def words() -> Iterator[str]:
        yield "to"
        yield "be"

    assert Driven(CallableSource(words)).all() == ["to", "be"]


def test_a_function_that_returns_a_list_is_a_source() -> None:
    assert Driven(CallableSource(lambda: [1, 2])).all() == [1, 2]


def test_nothing_runs_before_the_first_plan() -> None:
    called = threading.Event()
    job = Driven(CallableSource(lambda: called.set() or []))
    assert not called.is_set()
    assert not job.enumerator.finished()
    assert job.all() == []
    assert called.is_set()
    assert job.enumerator.finished()


def test_an_epoch_takes_no_more_than_its_budget() -> None:
    job = Driven(CallableSource(lambda: range(CHUNK * 3)))
    job.some(1)
    assert job.enumerator._thread is not None
    job.enumerator._thread.join(PATIENCE_S)
    assert job.epoch(5) == [1, 2, 3, 4, 5]
    assert len(job.enumerator.plan(CHUNK + 1).ranges[0]) == 2  # in ranges of a chunk each


def test_a_full_queue_holds_the_function_back() -> None:
    started: list[int] = []

    def numbers() -> Iterator[int]:
        for number in range(10):
            started.append(number)
            yield number

    source = CallableSource(numbers)
    source.queue_size = 2
    job = Driven(source)
    for taken in range(10):
        assert job.some(1) == [taken]
        assert len(started) <= taken + 1 + 2 + 1  # taken, in the queue, and the one that waits to get in
    assert job.all() == []


def test_a_source_that_is_closed_is_cancelled_and_ends() -> None:
    function = Counting(limit=None)
    job = Driven(CallableSource(function))
    assert job.some(1) == [0]
    job.enumerator.close()
    assert job.enumerator._thread is not None
    assert not job.enumerator._thread.is_alive()
    assert function.seen == ["the-source", "closed"]


def test_a_closed_source_leaves_a_full_queue() -> None:
    closed = threading.Event()

    def endless() -> Iterator[int]:
        try:
            while True:
                yield 1
        finally:
            closed.set()

    source = CallableSource(endless)
    source.queue_size = 1
    job = Driven(source)
    job.some(1)
    job.enumerator.close()
    assert closed.wait(PATIENCE_S)


def test_a_restart_begins_with_a_fresh_function() -> None:
    source = CallableSource(Counting(limit=None))
    first = Driven(source)
    first.some()
    first.enumerator.close()
    second = Driven(source)  # cancel() of the first must not have told this one to stop
    second.enumerator.restore(first.enumerator.snapshot())
    assert second.some(1) == [0]
    second.enumerator.close()


def test_a_failing_function_fails_the_job_after_what_it_gave_before() -> None:
    def failing() -> Iterator[int]:
        yield 1
        raise OSError("the line is dead")

    job = Driven(CallableSource(failing))
    assert job.some() == [1]
    with pytest.raises(UserCodeError) as caught:
        job.all()
    message = str(caught.value)
    assert "OSError: the line is dead" in message
    assert "in the thread of source 'the-source' on the driver" in message
    assert "driver_source.py" not in message
    assert not job.enumerator.finished()


def test_records_that_cannot_be_pickled_are_named_as_such() -> None:
    job = Driven(CallableSource(lambda: [threading.Lock()]))
    with pytest.raises(SerializationError, match="source 'the-source' gave records that cannot be pickled"):
        job.all()


def test_records_may_carry_timestamps_of_their_own() -> None:
    class Timed:
        def run(self, ctx: Any) -> None:
            ctx.collect_with_timestamp("a", 1)

    assert Driven(CallableSource(Timed())).all() == [("a", 1)]


def test_watermarks_are_left_to_the_watermark_strategy() -> None:
    class Marking:
        def run(self, ctx: Any) -> None:
            ctx.mark_as_temporarily_idle()
            ctx.emit_watermark(1)

    with pytest.raises(GraphError, match="WatermarkStrategy"):
        Driven(CallableSource(Marking())).all()


def test_the_function_stays_on_the_driver() -> None:
    held = threading.Lock()  # cannot be pickled
    assert Driven(CallableSource(lambda: [held.locked()])).all() == [False]


def test_a_pushed_source_cannot_be_replayed() -> None:
    assert CallableSource(list).replayable is False


def test_what_cannot_be_called_is_refused() -> None:
    with pytest.raises(GraphError, match="SourceFunction"):
        CallableSource([1, 2])


def test_closing_a_source_that_never_ran_is_fine() -> None:
    CallableSource(list).create_enumerator(EnumeratorContext("s", 1)).close()
