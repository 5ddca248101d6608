"""Savepoints of running jobs: what is in them, where they can go, and what a job does that ends with one."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from pathlib import Path

import pytest

from firesteel.common import Duration, Encoder, RestartStrategies, Types, WatermarkStrategy
from firesteel.common.job_status import JobStatus
from firesteel.common.storage import MemoryStorage, open_storage
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.coordinator import savepoint_writing
from firesteel.coordinator.completed import Completed, locate
from firesteel.coordinator.lineage import JobDirectory
from firesteel.coordinator.savepoint import dispose
from firesteel.coordinator.savepoint_requests import Ending
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.file_system import FileSink
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.datastream.window import TumblingEventTimeWindows
from firesteel.errors import ConfigurationError, JobCancelledError, SavepointError
from firesteel.graph.nodes import Collect
from firesteel.graph.settings import StartSettings
from firesteel.state.files import StateFile
from tests.support.local_engine import LocalRun
from tests.support.running import PATIENCE_S, Running, wait_until
from tests.support.s3 import S3Server
from tests.support.slicing import Sliced

KEYS = 3
ENDLESS = 10**12


def program(
    start_from: str | None = None, *, interval: int | None = 1, out: Path | None = None, uid: str = "totals"
) -> StreamExecutionEnvironment:
    """Numbers, summed by key, without end."""
    env = StreamExecutionEnvironment().set_parallelism(2)
    if interval is not None:
        env.enable_checkpointing(interval)
    env.start = StartSettings(start_from)
    numbers = env.from_source(Sliced(NumberSequenceSource(1, ENDLESS), 50), source_name="numbers").uid("numbers")
    totals = numbers.key_by(lambda n: n % KEYS).reduce(lambda a, b: a + b).uid(uid)
    if out is None:
        totals._end(Collect(), "Collect")
    else:
        totals.sink_to(FileSink.for_row_format(str(out), Encoder.simple_string_encoder()).build()).uid("files")
    return env


def totals_in(savepoint: str, uid: str = "totals") -> dict[int, int]:
    found: dict[int, int] = {}
    at = locate(savepoint)
    for chain in at.metadata.state:
        for handle in chain:
            with StateFile(handle["file"], handle["checksum"], at.storage) as file:
                for delta in file.deltas():
                    if delta.uid == uid and delta.kind == "value":
                        found.update(zip(delta.keys, delta.values, strict=True))
    return found


def check_consistent(savepoint: str) -> None:
    """State is that of exactly the numbers before its position."""
    assert totals_in(savepoint) == NumbersRead(locate(savepoint)).totals()


class NumbersRead:
    """Which numbers had been read: those between what is left."""

    def __init__(self, savepoint: Completed) -> None:
        self.left = [tuple(pair) for pair in savepoint.metadata.positions["numbers"]["left"]]

    def ranges(self) -> list[range]:
        starts = [1, *(end for _, end in self.left)]
        return [range(start, pair[0]) for start, pair in zip(starts, self.left, strict=False)]

    def totals(self) -> dict[int, int]:
        sums = Counter[int]()
        for numbers in self.ranges():
            for number in numbers:
                sums[number % KEYS] += number
        return dict(sums)


def written(out: Path) -> Counter[int]:
    return Counter(
        int(line) for file in out.rglob("part-*") if file.is_file() for line in file.read_text().splitlines()
    )


def test_a_savepoint_holds_the_state_of_its_position_and_the_job_goes_on(tmp_path: Path) -> None:
    with Running(program(), str(tmp_path / "checkpoints")) as running:
        running.epochs()
        first = running.savepoint(tmp_path / "savepoints")
        running.epochs()
        second = running.savepoint(tmp_path / "savepoints")
        running.epochs()
    assert isinstance(running.failure, JobCancelledError)
    for path in (first, second):
        check_consistent(path)
        found = locate(path)
        assert found.metadata.savepoint and found.confirmed and found.metadata.committables == {}
        assert os.path.basename(path).startswith(f"savepoint-{found.metadata.job_id[:6]}-")
        assert sorted(os.listdir(path)) == sorted(["_metadata", *found.metadata.files()])
        assert all(len(chain) == 1 for chain in found.metadata.state)
    assert sum(totals_in(second).values()) > sum(totals_in(first).values())


@pytest.mark.parametrize("interval", [1, None])
def test_a_savepoint_can_be_moved_and_gone_on_from_any_number_of_times(tmp_path: Path, interval: int | None) -> None:
    with Running(program(interval=interval), str(tmp_path / "checkpoints")) as running:
        running.epochs()
        path = running.savepoint(tmp_path / "savepoints", Ending.SUSPEND)
    assert running.failure is None and running.job.status is JobStatus.FINISHED
    check_consistent(path)
    before = totals_in(path)
    shutil.rmtree(tmp_path / "checkpoints")
    moved = str(tmp_path / "elsewhere" / "renamed")
    shutil.move(path, moved)
    for name in ("again", "once-more"):
        for location in (moved, f"{moved}/_metadata"):
            with Running(program(location, interval=interval), str(tmp_path / name), f"{name}-job") as next_one:
                next_one.epochs()
                after = next_one.savepoint(tmp_path / "savepoints", Ending.SUSPEND)
            assert next_one.failure is None
            check_consistent(after)
            assert all(totals_in(after)[key] > total for key, total in before.items())
            shutil.rmtree(tmp_path / name)
    assert totals_in(moved) == before


def test_a_job_whose_checkpoints_are_in_memory_takes_savepoints(tmp_path: Path) -> None:
    with Running(program(), MemoryStorage()) as running:
        running.epochs()
        path = running.savepoint(tmp_path, Ending.SUSPEND)
    check_consistent(path)
    with Running(program(path), MemoryStorage()) as again:
        again.epochs()
        check_consistent(again.savepoint(tmp_path))


@pytest.mark.parametrize("interval", [1, 100_000, None])
def test_a_savepoint_never_holds_output_that_is_not_committed(tmp_path: Path, interval: int | None) -> None:
    with Running(program(interval=interval, out=tmp_path / "out"), str(tmp_path / "checkpoints")) as running:
        running.epochs()
        path = running.savepoint(tmp_path / "savepoints")
        seen = written(tmp_path / "out")
        expected = NumbersRead(locate(path))
        assert seen.total() >= sum(map(len, expected.ranges()))
        assert all(seen[total] for total in expected.totals().values())


def test_after_a_stop_all_output_is_there_and_the_next_job_adds_to_it(tmp_path: Path) -> None:
    out = tmp_path / "out"
    start: str | None = None
    for round_ in range(3):
        with Running(program(start, out=out), str(tmp_path / f"checkpoints-{round_}")) as running:
            running.epochs()
            start = running.savepoint(tmp_path / "savepoints", Ending.SUSPEND)
        assert running.failure is None
        assert written(out).total() == sum(map(len, NumbersRead(locate(start)).ranges()))
    assert not [file for file in out.rglob(".*") if file.is_file()]


def test_a_job_cancelled_with_a_savepoint_does_nothing_after_it(tmp_path: Path) -> None:
    with Running(program(out=tmp_path / "out"), str(tmp_path / "checkpoints")) as running:
        running.epochs()
        path = running.savepoint(tmp_path / "savepoints", Ending.CANCEL)
    assert isinstance(running.failure, JobCancelledError) and running.job.status is JobStatus.CANCELED
    check_consistent(path)
    assert written(tmp_path / "out").total() == sum(map(len, NumbersRead(locate(path)).ranges()))


class _Seconds(TimestampAssigner):
    def extract_timestamp(self, value: int, record_timestamp: int) -> int:
        return value * 1000


def windowed(out: Path, start_from: str | None, last: int, size: int = 7) -> StreamExecutionEnvironment:
    """Numbers as seconds, counted in windows of an hour."""
    env = StreamExecutionEnvironment().set_parallelism(2).enable_checkpointing(1)
    env.start = StartSettings(start_from)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(_Seconds())
    numbers = env.from_source(Sliced(NumberSequenceSource(0, last), size), strategy, "numbers").uid("numbers")
    counts = (
        numbers.map(lambda n: (n % 2, 1))
        .key_by(lambda pair: pair[0])
        .window(TumblingEventTimeWindows.of(Duration.of_hours(1)))
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
        .uid("windows")
    )
    lines = counts.map(lambda pair: f"{pair[0]} {pair[1]}", Types.STRING())
    lines.sink_to(FileSink.for_row_format(str(out), Encoder.simple_string_encoder()).build()).uid("files")
    return env


def lines(out: Path) -> list[str]:
    return sorted(line for file in out.rglob("part-*") if file.is_file() for line in file.read_text().splitlines())


def test_draining_fires_windows_and_suspending_does_not(tmp_path: Path) -> None:
    endless = 10**9
    with Running(windowed(tmp_path / "drained", None, endless), str(tmp_path / "a")) as running:
        running.epochs()
        drained = running.savepoint(tmp_path / "savepoints", Ending.DRAIN)
    assert running.failure is None and running.job.status is JobStatus.FINISHED
    read = sum(start for start, _ in locate(drained).metadata.positions["numbers"]["left"][:1])
    assert read > 0
    assert sum(int(line.split()[1]) for line in lines(tmp_path / "drained")) >= read
    assert locate(drained).metadata.final

    with Running(windowed(tmp_path / "suspended", None, 99), str(tmp_path / "b")) as running:
        suspended = running.savepoint(tmp_path / "savepoints", Ending.SUSPEND)
    assert running.failure is None
    before = lines(tmp_path / "suspended")
    with Running(windowed(tmp_path / "suspended", suspended, 99), str(tmp_path / "c")) as again:
        again.ended()
    assert again.failure is None
    assert before in (
        [],
        lines(tmp_path / "suspended"),
    )  # nothing has fired, unless the job was faster than the request
    assert lines(tmp_path / "suspended") == ["0 50", "1 50"]


def test_what_is_asked_for_at_the_end_of_the_input_is_made_of_the_last_checkpoint(tmp_path: Path) -> None:
    for interval in (1, None):
        env = StreamExecutionEnvironment().set_parallelism(1)
        if interval is not None:
            env.enable_checkpointing(interval)
        env.from_sequence(1, 10).uid("numbers").key_by(lambda n: 0).reduce(lambda a, b: a + b).uid("totals")._end(
            Collect(), "Collect"
        )
        run = LocalRun(env, str(tmp_path / f"checkpoints-{interval}"))
        answers = [
            run.job.savepoints.ask(str(tmp_path / "savepoints"), ending) for ending in (Ending.NONE, Ending.CANCEL)
        ]
        wait_until(lambda run=run: len(run.job.savepoints._waiting) == 2, "both to wait")
        run.job.savepoints.take_ending = lambda: None  # type: ignore[method-assign]  # it comes too late
        run.run()
        assert run.job.status is JobStatus.FINISHED
        for answer in answers:
            path = answer.result(PATIENCE_S)
            assert totals_in(path) == {0: 55} and locate(path).metadata.final


def test_state_that_was_given_up_is_not_in_a_savepoint(tmp_path: Path) -> None:
    """In checkpoints it may be for a while, so that its operator must not come back. It may come back to a savepoint."""
    with Running(program(), str(tmp_path / "a")) as running:
        running.epochs()
        first = running.savepoint(tmp_path / "savepoints", Ending.SUSPEND)
    env = program(first, uid="others")
    env.start = StartSettings(first, allow_non_restored_state=True)
    with Running(env, str(tmp_path / "b")) as running:
        running.epochs()
        second = running.savepoint(tmp_path / "savepoints", Ending.SUSPEND)
    assert running.failure is None
    directory = JobDirectory.open(str(tmp_path / "b"), "job")
    newest = directory.latest()
    assert newest is not None and newest.metadata.given_up == ["totals"]
    assert locate(second).metadata.given_up == []
    assert totals_in(second) == {} and totals_in(second, "others")


# ---- what goes wrong


def test_without_a_directory_nothing_happens(tmp_path: Path) -> None:
    with Running(program(), str(tmp_path / "checkpoints")) as running:
        with pytest.raises(ConfigurationError, match=r"execution\.checkpointing\.savepoint-dir"):
            running.job.savepoints.ask(None).result(PATIENCE_S)
        for inside in ("job", "job/savepoints", "x/../job/inc-1"):
            with pytest.raises(ConfigurationError, match="in the job's own directory"):
                running.ask(tmp_path / "checkpoints" / inside).result(PATIENCE_S)
        with pytest.raises(ConfigurationError, match="s9"):
            running.job.savepoints.ask("s9://bucket").result(PATIENCE_S)
        running.epochs()
    env = program()
    env.set_default_savepoint_directory(str(tmp_path / "default"))
    with Running(env, str(tmp_path / "others")) as running:
        path = running.job.savepoints.ask(None).result(PATIENCE_S)
        assert os.path.dirname(path) == str(tmp_path / "default")


def test_a_target_that_is_a_file_is_said_before_anything_happens(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with Running(program(), str(tmp_path / "checkpoints")) as running:
        for ending in Ending:
            with pytest.raises(SavepointError, match=r"cannot be made or written to: (Not a directory|File exists)"):
                running.ask(tmp_path / "file" / "x", ending).result(PATIENCE_S)
        running.epochs()


@pytest.mark.parametrize("interval", [1, None])
@pytest.mark.parametrize("ending", [Ending.NONE, Ending.SUSPEND, Ending.CANCEL])
@pytest.mark.parametrize(("fault", "words"), [("full", "No space left on device"), ("", "killed by SIGKILL")])
def test_a_savepoint_that_cannot_be_written_says_why_and_the_job_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: Ending, fault: str, words: str, interval: int | None
) -> None:
    with Running(program(interval=interval), str(tmp_path / "checkpoints")) as running:
        running.epochs()
        with monkeypatch.context() as patched:
            patched.setenv("FIRESTEEL_CRASH", f"merging-state:1:{fault}")  # of the processes that merge
            with pytest.raises(SavepointError, match=rf"slot \d could not write its state: .*{words}"):
                running.ask(tmp_path / "savepoints", ending).result(PATIENCE_S)
        running.epochs()
        assert os.listdir(tmp_path / "savepoints") == []
        check_consistent(running.savepoint(tmp_path / "savepoints"))
    assert running.job.failures == []


def test_a_drain_that_cannot_be_written_takes_the_job_back_to_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its windows have fired, so nothing of that may be committed."""
    env = windowed(tmp_path / "out", None, 20_000)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(1, 0))
    with Running(env, str(tmp_path / "checkpoints")) as running:
        running.epochs()
        with monkeypatch.context() as patched:
            patched.setenv("FIRESTEEL_CRASH", "merging-state:1:full")
            with pytest.raises(SavepointError, match="No space left on device"):
                running.ask(tmp_path / "savepoints", Ending.DRAIN).result(PATIENCE_S)
        running.ended()
    assert running.failure is None
    assert [type(failure) for failure in running.job.failures] == [SavepointError]
    hours = [
        len([n for n in range(20_001) if n // 3600 == hour and n % 2 == half]) for hour in range(6) for half in (0, 1)
    ]
    assert lines(tmp_path / "out") == sorted(f"{index % 2} {count}" for index, count in enumerate(hours))


def test_a_savepoint_that_does_not_get_any_further_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    env = program()
    env.get_checkpoint_config().set_checkpoint_timeout(10_000)
    monkeypatch.setattr(savepoint_writing, "_LEAST_PATIENCE_S", 0)
    with Running(env, str(tmp_path / "checkpoints")) as running:
        running.epochs()
        with monkeypatch.context() as patched:
            patched.setenv("FIRESTEEL_CRASH", "merging-state:1:wait-600")
            with pytest.raises(SavepointError, match="no slot has got any further with it for 10 s"):
                running.ask(tmp_path / "savepoints").result(PATIENCE_S)
        assert os.listdir(tmp_path / "savepoints") == []
        check_consistent(running.savepoint(tmp_path / "savepoints"))  # the slots are free again
    assert running.job.failures == []


def test_two_at_once_are_two(tmp_path: Path) -> None:
    with Running(program(), str(tmp_path / "checkpoints")) as running:
        answers = [running.ask(tmp_path / "savepoints") for _ in range(2)]
        paths = {answer.result(PATIENCE_S) for answer in answers}
        assert len(paths) == 2
        for path in paths:
            check_consistent(path)
        stops = [running.ask(tmp_path / "savepoints", Ending.SUSPEND) for _ in range(2)]
        running.ended()
        failures = [stop.exception() for stop in stops]
        assert failures.count(None) == 1
        assert "the job has ended, its status is FINISHED" in str(next(filter(None, failures)))


def test_a_job_that_has_ended_takes_none(tmp_path: Path) -> None:
    with Running(program(), str(tmp_path / "checkpoints")) as running:
        running.epochs()
    with pytest.raises(SavepointError, match="the job has ended, its status is CANCELED"):
        running.ask(tmp_path / "savepoints").result(PATIENCE_S)
    assert not (tmp_path / "savepoints").exists()


def test_a_restart_fails_the_savepoint_under_way_and_serves_the_one_that_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = program()
    with Running(env, str(tmp_path / "checkpoints")) as running:
        running.epochs()
        with monkeypatch.context() as patched:
            patched.setenv("FIRESTEEL_CRASH", "merging-state:1:wait-60")
            under_way = running.ask(tmp_path / "savepoints")
            wait_until(lambda: list((tmp_path / "savepoints").glob("*/*.state")), "it to be under way")
        running.run.engine.fail_next = True
        wait_until(lambda: running.job.failures, "the job to fail")
        running.run.engine.fail_next = False
        waiting = running.ask(tmp_path / "savepoints")
        with pytest.raises(SavepointError, match="have ended"):
            under_way.result(PATIENCE_S)
        check_consistent(waiting.result(PATIENCE_S))
        assert os.listdir(tmp_path / "savepoints") == [os.path.basename(waiting.result())]


def test_the_files_of_its_checkpoint_stay_for_as_long_as_a_savepoint_is_made_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Running(program(), str(tmp_path / "checkpoints")) as running:
        running.epochs()
        with monkeypatch.context() as patched:
            patched.setenv("FIRESTEEL_CRASH", "merging-state:1:wait-1")
            slow = running.ask(tmp_path / "savepoints")
            wait_until(lambda: list((tmp_path / "savepoints").glob("*/*.state")), "it to be under way")
        seen = running.run.progress.checkpoints
        wait_until(lambda: running.run.progress.checkpoints > seen + 10 or slow.done(), "other checkpoints")
        assert not slow.done()  # or the test proves nothing
        check_consistent(slow.result(PATIENCE_S))
        directory = JobDirectory.open(str(tmp_path / "checkpoints"), "job")
        wait_until(lambda: len(directory.fencing.checkpoints(1)) == 1, "what was pinned to go")


def test_a_cancelled_job_fails_its_savepoints_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Running(program(), str(tmp_path / "checkpoints")) as running:
        running.epochs()
        monkeypatch.setenv("FIRESTEEL_CRASH", "merging-state:1:wait-60")
        answer = running.ask(tmp_path / "savepoints", Ending.SUSPEND)
        wait_until(lambda: list((tmp_path / "savepoints").glob("*/*.state")), "it to be under way")
        running.job.cancel()
        with pytest.raises(SavepointError):
            answer.result(PATIENCE_S)
    assert running.job.status is JobStatus.CANCELED
    assert os.listdir(tmp_path / "savepoints") == []


# ---- elsewhere


def test_savepoints_go_from_one_storage_to_another_and_are_claimed_and_deleted_there(
    s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "user")  # the paths that savepoints are known by hold no passwords
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "password")
    bucket = s3.bucket()
    with Running(program(), open_storage(bucket)) as running:  # from S3
        running.epochs()
        path = running.savepoint(bucket.replace("/checkpoints", "/savepoints"), Ending.SUSPEND)
    assert running.failure is None and "password" not in path
    check_consistent(path)
    assert locate(path.replace("?", "/_metadata?")).metadata == locate(path).metadata
    env = program(path)
    env.start = StartSettings(path, claim=True)
    with Running(env, str(tmp_path / "checkpoints"), "next") as running:  # to a directory
        wait_until(lambda: not open_storage(path).names() or running.failure, "the claimed one to go")
        running.epochs()
        there = running.savepoint(bucket.replace("/checkpoints", "/others"))  # and back
    check_consistent(there)
    dispose(there)
    assert open_storage(there).names() == []
