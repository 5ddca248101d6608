"""Whole programs under the harness."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Duration, Encoder, WatermarkStrategy
from firesteel.datastream import (
    KeyedProcessFunction,
    OutputTag,
    RuntimeContext,
    StreamExecutionEnvironment,
    ValueStateDescriptor,
)
from firesteel.datastream.connectors.file_system import FileSink
from firesteel.errors import GraphError, StateError
from firesteel.testing import GraphHarness, run_locally
from tests.testing.functions import ANYTHING


def environment(parallelism: int = 2) -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)


def counting(env: StreamExecutionEnvironment, records: int = 1000) -> Any:
    numbers = env.from_collection([(n % 5, 1) for n in range(records)]).name("numbers")
    return numbers.key_by(lambda v: v[0]).reduce(lambda a, b: (a[0], a[1] + b[1])).name("counts").uid("counts-1")


def expected(records: int = 1000) -> list[tuple[int, int]]:
    return sorted((n % 5, n // 5 + 1) for n in range(records))


def test_a_program_runs_to_its_end_in_one_call() -> None:
    env = environment()
    assert sorted(run_locally(env, counting(env))) == expected()


@pytest.mark.parametrize("epoch_records", [1000, 7, [1, 500, 3], random.Random(1), None])
def test_where_epochs_are_cut_changes_nothing(epoch_records: Any) -> None:
    env = environment()
    assert sorted(run_locally(env, counting(env), epoch_records=epoch_records)) == expected()


def test_an_injected_failure_rolls_back_to_the_last_checkpoint_and_repeats_nothing() -> None:
    env = environment()
    stream = counting(env)
    with GraphHarness(env, collect=stream, epoch_records=100, fail_at=[3, 4, 9], checkpoint_every=2) as h:
        assert sorted(h.run().results()) == expected()
        assert h.restarts == 3
        assert h.epochs == 13
        assert h.state("counts", "/reduced", 0) == (0, 200)


def test_transactional_sinks_commit_exactly_once_under_failures(tmp_path: Path) -> None:
    env = environment()
    counting(env).map(lambda v: v[1]).sink_to(
        FileSink.for_row_format(str(tmp_path), Encoder.simple_string_encoder()).build()
    )
    with GraphHarness(env, seed=5, fail_at=[2, 3]) as h:
        h.run()
    lines = [int(line) for file in tmp_path.iterdir() for line in file.read_text().splitlines()]
    assert sorted(lines) == sorted(count for _, count in expected())


def test_streams_are_collected_by_name_by_uid_and_as_streams_without_changing_the_program() -> None:
    env = environment()
    counts = counting(env)
    high = counts.filter(lambda v: v[1] > 190)
    before = env.graph.nodes()
    with GraphHarness(env, collect=["numbers", "counts-1", high]) as h:
        h.run()
        assert len(h.results("numbers")) == len(h.results("counts-1")) == 1000
        assert sorted(h.results(high)) == [v for v in expected() if v[1] > 190]
        with pytest.raises(GraphError, match="say which one"):
            h.results()
        with pytest.raises(GraphError, match="not collected"):
            h.results("counts")
    assert env.graph.nodes() == before
    with pytest.raises(GraphError, match="0 operators have the name or uid 'nobody'; there are: 'numbers', 'counts'"):
        GraphHarness(env, collect="nobody")


def test_printed_output_is_captured(capsys: pytest.CaptureFixture[str]) -> None:
    env = environment(1)
    env.from_collection([1, 2]).map(lambda n: print("saw", n) or n).print("out")
    with GraphHarness(env) as h:
        assert h.run().printed() == ["saw 1", "saw 2", "out> 1", "out> 2"]
    assert capsys.readouterr().out == ""


class Reminder(KeyedProcessFunction):
    TAG = OutputTag("registered")

    def open(self, runtime_context: RuntimeContext) -> None:
        self.last = runtime_context.get_state(ValueStateDescriptor("last", ANYTHING))
        runtime_context.get_metrics_group().counter("opened").inc()

    def process_element(self, value, ctx):  # type: ignore[no-untyped-def]
        service = ctx.timer_service()
        self.last.update(value)
        service.register_processing_time_timer(service.current_processing_time() + 1000)
        yield self.TAG, value

    def on_timer(self, timestamp, ctx):  # type: ignore[no-untyped-def]
        yield timestamp, self.last.value()


def test_an_unbounded_program_is_driven_step_by_step_with_a_manual_clock() -> None:
    env = environment()
    reminders = env.from_sequence(1, 10**12).key_by(lambda n: n % 3).process(Reminder()).name("reminders")
    registered = reminders.get_side_output(Reminder.TAG)
    with GraphHarness(env, collect=[reminders, registered], epoch_records=3, clock=50) as h:
        with pytest.raises(StateError, match="has not started"):
            h.timers("reminders")
        assert h.step() is True
        assert len(h.results(registered)) == 3 and h.results(reminders) == []
        assert {timer.time for timer in h.timers("reminders")} == {1050}
        assert sorted(h.state("reminders", "last").values()) == sorted(h.results(registered))
        assert h.advance_clock(999).step() and h.results(reminders) == []
        h.advance_clock(1).step()
        assert {time for time, _ in h.results(reminders)} == {1050}
        assert list(h.metrics().values()) == [{"opened": 2}]
        assert not h.finished


def test_a_failure_by_hand_takes_back_what_no_checkpoint_covers() -> None:
    env = environment()
    stream = counting(env)
    with GraphHarness(env, collect=stream, epoch_records=100, checkpoint_every=5) as h:
        h.step(7)
        assert len(h.results()) == 500
        assert h.fail().restarts == 1
        assert sum(count for _, count in h.state("counts", "/reduced").values()) == 500
        assert sorted(h.run().results()) == expected()


def test_a_second_harness_on_the_same_directory_goes_on_where_the_first_one_got_to(tmp_path: Path) -> None:
    found = []
    for steps in (4, 100):
        env = environment()
        with GraphHarness(env, collect=counting(env), epoch_records=100, directory=str(tmp_path)) as h:
            h.step(steps)
            found += h.results()
    assert sorted(found) == expected()


def test_what_user_code_raises_comes_out_as_it_is() -> None:
    env = environment()
    stream = env.from_collection([1, 0]).map(lambda n: 1 // n)
    with pytest.raises(ZeroDivisionError):
        run_locally(env, stream)


def test_event_time_runs_as_in_a_job() -> None:
    class Windows(KeyedProcessFunction):
        def process_element(self, value, ctx):  # type: ignore[no-untyped-def]
            ctx.timer_service().register_event_time_timer(value - value % 10 + 9)

        def on_timer(self, timestamp, ctx):  # type: ignore[no-untyped-def]
            yield timestamp

    env = environment()
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(5))
    stream = env.from_collection([1, 12, 3, 25, 40]).assign_timestamps_and_watermarks(
        strategy.with_timestamp_assigner(lambda value, _: value)
    )
    windows = stream.key_by(lambda n: 0).process(Windows())
    for options in ({}, {"epoch_records": 1}, {"epoch_records": 2, "fail_at": [1, 3]}):
        assert run_locally(env, windows, **options) == [9, 19, 29, 49]
