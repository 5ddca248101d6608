"""The fault kit of firesteel.testing: each source, sink and tool does the harm that it promises, and no more."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from firesteel.common import Encoder, RestartStrategies
from firesteel.connectors.base import EnumeratorContext
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.file_system import FileSink
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.errors import FiresteelError
from firesteel.testing import BlockingSink, CrashPoints, FailingSink, FailingSource, SkewedClock, ValidatingSink
from firesteel.testing.faults import flip_bit
from firesteel.testing.killer import Family
from firesteel.testing.sinks import WrappedSink
from firesteel.testing.sources import OpenEndedNumbers
from tests.chaos import oracle

RECORDS = 600


def _environment(tmp_path: Path, attempts: int = 5) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(attempts, 10))
    env.enable_checkpointing(50)
    env.get_checkpoint_config().set_checkpoint_storage_dir(str(tmp_path / "checkpoints"))
    return env


def _files(tmp_path: Path) -> FileSink:
    return FileSink.for_row_format(str(tmp_path / "out"), Encoder.simple_string_encoder()).build()


def _numbers() -> NumberSequenceSource:
    return NumberSequenceSource(0, RECORDS - 1, rate_per_second=2000)


def _incarnations(tmp_path: Path) -> int:
    return len(list((tmp_path / "checkpoints" / "kit").glob("inc-*")))


def _check(tmp_path: Path) -> None:
    oracle.check_numbers(oracle.visible(tmp_path / "out"), 0, RECORDS, complete=True)
    assert oracle.leftovers(tmp_path / "out") == []


@pytest.mark.parametrize("checkpoints", [0, 1])
def test_a_failing_source_fails_in_as_many_incarnations_as_it_is_told(tmp_path: Path, checkpoints: int) -> None:
    env = _environment(tmp_path)
    env.from_source(FailingSource(_numbers(), 2, checkpoints), None, "numbers").sink_to(_files(tmp_path))
    env.execute("kit")
    _check(tmp_path)
    assert _incarnations(tmp_path) == 3


@pytest.mark.parametrize(("step", "incarnations"), [("write", 3), ("prepare_commit", 3), ("persist", 3), ("commit", 1)])
def test_a_failing_sink_fails_at_its_step_and_nothing_is_lost_or_repeated(
    tmp_path: Path, step: str, incarnations: int
) -> None:
    env = _environment(tmp_path)
    sink = FailingSink(_files(tmp_path), step, str(tmp_path / "notes"), failures=2)
    env.from_source(_numbers(), None, "numbers").sink_to(sink)
    env.execute("kit")
    _check(tmp_path)
    assert len(list((tmp_path / "notes").iterdir())) == 2
    assert _incarnations(tmp_path) <= incarnations  # both slots may fail in the same one


def test_restarts_are_as_many_as_the_strategy_allows(tmp_path: Path) -> None:
    env = _environment(tmp_path, attempts=2)
    env.from_source(FailingSource(_numbers(), failures=9), None, "numbers").sink_to(_files(tmp_path))
    with pytest.raises(FiresteelError, match="as it was told to"):
        env.execute("kit")
    assert _incarnations(tmp_path) == 3


def test_a_blocking_sink_waits_until_it_is_released(tmp_path: Path) -> None:
    env = _environment(tmp_path)
    sink = BlockingSink(_files(tmp_path), "commit", str(tmp_path / "notes"))
    env.from_source(_numbers(), None, "numbers").sink_to(sink)
    client = env.execute_async("kit")
    deadline = time.monotonic() + 60
    while not (tmp_path / "notes" / "blocked-commit-1").exists():
        assert time.monotonic() < deadline
        threading.Event().wait(0.01)
    assert oracle.visible(tmp_path / "out") == []
    (tmp_path / "notes" / "release").touch()
    client.get_job_execution_result().result()
    _check(tmp_path)


def test_a_validating_sink_fails_the_job_for_a_wrong_record(tmp_path: Path) -> None:
    env = _environment(tmp_path, attempts=0)
    env.from_source(_numbers(), None, "numbers").sink_to(ValidatingSink(_files(tmp_path), lambda n: n != 77))
    with pytest.raises(FiresteelError, match="the record 77 is wrong"):
        env.execute("kit")


def test_a_validating_sink_leaves_right_records_alone(tmp_path: Path) -> None:
    env = _environment(tmp_path)
    env.from_source(_numbers(), None, "numbers").sink_to(ValidatingSink(_files(tmp_path), lambda n: n < RECORDS))
    env.execute("kit")
    _check(tmp_path)


def test_a_wrapped_sink_promises_what_its_sink_does(tmp_path: Path) -> None:
    assert WrappedSink(_files(tmp_path)).guarantee == _files(tmp_path).guarantee
    with pytest.raises(ValueError, match="no step"):
        FailingSink(_files(tmp_path), "comit", str(tmp_path))


# ---- without Spark


def test_open_ended_numbers_end_where_the_file_says(tmp_path: Path) -> None:
    now = [0.0]
    source = OpenEndedNumbers(str(tmp_path / "end"), 100, clock=lambda: now[0])
    enumerator = source.create_enumerator(EnumeratorContext("s", 2))
    assert enumerator.plan(1000).units == 0
    now[0] = 1.0
    assert list(enumerator.plan(1000).ranges) == [[[0, 50]], [[50, 100]]]
    assert not enumerator.finished()
    (tmp_path / "end").write_text("130")
    now[0] = 9.0
    assert list(enumerator.plan(1000).ranges) == [[[100, 115]], [[115, 130]]]
    assert enumerator.finished()
    again = source.create_enumerator(EnumeratorContext("s", 2))
    again.restore(enumerator.snapshot())
    assert again.plan(10).units == 0 and again.finished()


CRASHING = """
import sys
from firesteel.common.crashpoints import crash_point
for line in sys.stdin:
    try:
        with open(sys.argv[1], "wb") as file:
            crash_point("here", file, b"0123456789")
        print("alive", flush=True)
    except OSError as error:
        print(error.strerror, flush=True)
"""


@pytest.fixture
def crashing(tmp_path: Path) -> Iterator[tuple[CrashPoints, subprocess.Popen[str]]]:
    points = CrashPoints(tmp_path / "crash")
    process = subprocess.Popen(
        [sys.executable, "-c", CRASHING, str(tmp_path / "file")],
        env={**os.environ, **points.environment()},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with process:
        yield points, process
        Family(process).end()


def _go(process: subprocess.Popen[str]) -> str:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return process.stdout.readline().strip()


def test_crash_points_are_armed_while_a_process_runs(
    crashing: tuple[CrashPoints, subprocess.Popen[str]], tmp_path: Path
) -> None:
    points, process = crashing
    assert _go(process) == "alive"
    points.arm("elsewhere")
    assert _go(process) == "alive" and points.fired() is None
    points.arm("here", action="full")
    assert _go(process) == "No space left on device" and points.fired() == process.pid
    points.arm("here", count=2, action="torn-40")
    assert _go(process) == "alive" and points.fired() is None
    assert _go(process) == "" and process.wait() == -signal.SIGKILL
    assert (tmp_path / "file").read_bytes() == b"0123"


def test_a_family_is_what_its_driver_started_and_nobody_else(
    crashing: tuple[CrashPoints, subprocess.Popen[str]],
) -> None:
    _, process = crashing
    family = Family(process)
    assert [member.pid for member in family.members()] == [process.pid]
    assert family.of_kind("slot") == [] and family.kill("jvm") is None
    stranger = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with stranger:
        with pytest.raises(ValueError, match="start_new_session"):
            Family(stranger)
        assert stranger.pid not in [member.pid for member in family.members()]
        assert family.kill("driver") is not None
        assert family.wait_gone() == [] and process.wait() == -signal.SIGKILL
        assert stranger.poll() is None
        stranger.kill()


def test_a_skewed_clock_jumps_and_monotonic_time_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", time.time)
    monkeypatch.setattr(time, "time_ns", time.time_ns)
    before, steady = time.time(), time.monotonic()
    clock = SkewedClock(tmp_path / "clock")
    clock.install()
    clock.jump(-7200)
    assert -7300 < time.time() - before < -7100
    assert -7300 < time.time_ns() / 1e9 - before < -7100
    assert time.monotonic() - steady < 100


def test_a_flipped_bit_is_flipped_back_by_the_same_call(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    flip_bit(path, 1, 3)
    assert path.read_bytes() == b"ajc"
    flip_bit(path, 1, 3)
    assert path.read_bytes() == b"abc"
