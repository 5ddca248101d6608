"""The checkpoint protocol when something goes wrong on the way."""

from __future__ import annotations

import logging
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Encoder, RestartStrategies
from firesteel.common.storage import local
from firesteel.connectors.file_sink import FileCommitter
from firesteel.coordinator.failure_manager import FailureManager
from firesteel.coordinator.lineage import JobDirectory
from firesteel.datastream import (
    ExternalizedCheckpointRetention,
    KeyedProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
    ValueStateDescriptor,
)
from firesteel.datastream.connectors.file_system import FileSink
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.errors import JobCancelledError, RestoreError, SerializationError, SupersededError
from tests.support.local_engine import LocalRun
from tests.support.slicing import Sliced
from tests.support.waiting import PATIENCE_S

RECORDS = 120_000


def program(root: Path, interval: int = 5, rate: float | None = None) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2).enable_checkpointing(interval)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(3, 0))
    numbers = env.from_source(Sliced(NumberSequenceSource(1, RECORDS, rate), 3000), source_name="numbers")
    totals = numbers.key_by(lambda n: n % 100).reduce(lambda a, b: a + b).uid("totals")
    totals.sink_to(FileSink.for_row_format(str(root / "out"), Encoder.simple_string_encoder()).build()).uid("files")
    return env


def committed(root: Path) -> Counter[int]:
    files = list((root / "out").iterdir())
    assert not [file.name for file in files if file.name.startswith(".")]
    return Counter(int(line) for file in files for line in file.read_text().splitlines())


def check_output(root: Path) -> None:
    output = committed(root)
    assert sum(output.values()) == RECORDS
    finals = {remainder: sum(range(remainder or 100, RECORDS + 1, 100)) for remainder in range(100)}
    assert all(output[total] >= 1 for total in finals.values())


def failing_writes(monkeypatch: pytest.MonkeyPatch, fails: Callable[[int], bool]) -> None:
    """Snapshot files of some checkpoints cannot be written: the disk is full, say."""
    real = local.write_durable

    def write(path: str, data: bytes) -> None:
        if "-chk-" in path and fails(int(path.split("-chk-")[1].split("-")[0])):
            raise OSError(28, "No space left on device")
        real(path, data)

    monkeypatch.setattr(local, "write_durable", write)


def test_a_checkpoint_that_cannot_be_written_is_dropped_but_its_output_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    failed: list[int] = []

    def fails(checkpoint: int) -> bool:  # the first two that have something to write
        if len(failed) < 2 and checkpoint not in failed:
            failed.append(checkpoint)
        return checkpoint in failed

    failing_writes(monkeypatch, fails)
    run = LocalRun(program(tmp_path), str(tmp_path / "checkpoints")).in_step().run()
    check_output(tmp_path)
    dropped = [record.message for record in caplog.records if "was dropped" in record.message]
    assert len(dropped) == 2
    assert "No space left on device" in dropped[0]
    assert run.job.failures == []


def test_a_checkpoint_too_many_that_cannot_be_written_fails_the_job_and_the_restart_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = program(tmp_path)
    env.get_checkpoint_config().set_tolerable_checkpoint_failure_number(1)
    run = LocalRun(env, str(tmp_path / "checkpoints")).in_step()
    failing_writes(monkeypatch, lambda checkpoint: not run.job.failures)
    run.run()
    check_output(tmp_path)
    assert [type(failure).__name__ for failure in run.job.failures] == ["CheckpointError"]
    assert "second in a row" in str(run.job.failures[0])


@pytest.mark.parametrize("retention", ["DELETE_ON_CANCELLATION", "RETAIN_ON_CANCELLATION"])
def test_checkpoints_of_a_cancelled_job_are_deleted_if_that_was_asked_for(tmp_path: Path, retention: str) -> None:
    env = program(tmp_path, rate=RECORDS / 60)
    config = env.get_checkpoint_config()
    config.set_externalized_checkpoint_retention(ExternalizedCheckpointRetention[retention])
    run = LocalRun(env, str(tmp_path / "checkpoints"))
    run.progress.checkpoint = lambda metadata: run.job.cancel()  # type: ignore[method-assign]
    with pytest.raises(JobCancelledError):
        run.run()
    left = list((tmp_path / "checkpoints").rglob("_metadata"))
    assert bool(left) == (retention == "RETAIN_ON_CANCELLATION")


def test_a_checkpoint_that_takes_too_long_is_dropped_and_the_job_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    late = threading.Event()
    real = local.write_durable

    def write(path: str, data: bytes) -> None:
        if "-chk-1-" in path:
            late.wait(PATIENCE_S)
        real(path, data)

    def failed(manager: FailureManager, *given: Any, real: Any = FailureManager.failed) -> None:
        late.set()
        real(manager, *given)

    monkeypatch.setattr(local, "write_durable", write)
    monkeypatch.setattr(FailureManager, "failed", failed)
    env = program(tmp_path)
    env.get_checkpoint_config().set_checkpoint_timeout(1000)
    LocalRun(env, str(tmp_path / "checkpoints")).run()
    check_output(tmp_path)
    assert any("checkpoint 1 was dropped: it took longer than 1 s" in record.message for record in caplog.records)


def test_a_final_checkpoint_that_cannot_be_written_fails_the_job_and_commits_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        failing_writes(patched, lambda checkpoint: True)
        with pytest.raises(Exception, match=r"final checkpoint .* was dropped"):
            LocalRun(program(tmp_path, interval=100_000), str(tmp_path / "checkpoints")).run()
    LocalRun(program(tmp_path), str(tmp_path / "checkpoints")).run()
    check_output(tmp_path)


def test_a_commit_that_fails_is_tried_again_until_it_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    attempts = Counter[str]()
    real = FileCommitter.commit

    def commit(self: FileCommitter, committables: Any) -> None:
        attempts["commit"] += 1
        if attempts["commit"] <= 2:
            raise ConnectionError("the server is restarting")
        real(self, committables)

    monkeypatch.setattr(FileCommitter, "commit", commit)
    with caplog.at_level(logging.WARNING):
        LocalRun(program(tmp_path), str(tmp_path / "checkpoints")).run()
    check_output(tmp_path)
    assert sum("could not commit" in record.message for record in caplog.records) == 2


def test_a_driver_that_was_superseded_while_it_ran_stops_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The successor takes over in the worst moment: everything is durable, the metadata is written, not yet renamed."""
    real = local.write_durable
    successor: list[LocalRun] = []

    def write(path: str, data: bytes) -> None:
        real(path, data)
        if path.endswith("_metadata") and not successor:
            successor.append(LocalRun(program(tmp_path), str(tmp_path / "checkpoints")))
            successor[0].run()

    monkeypatch.setattr(local, "write_durable", write)
    run = LocalRun(program(tmp_path), str(tmp_path / "checkpoints"))
    with pytest.raises(SupersededError, match="another driver has taken the job over"):
        run.run()
    lines = committed_lines(tmp_path)
    assert sum(lines.values()) == RECORDS


def committed_lines(root: Path) -> Counter[str]:
    return Counter(
        line for f in (root / "out").iterdir() if not f.name.startswith(".") for line in f.read_text().splitlines()
    )


def test_as_many_checkpoints_are_retained_as_asked_for(tmp_path: Path) -> None:
    env = program(tmp_path, rate=RECORDS / 1.5)  # so that there is time for some
    env.get_checkpoint_config().set_max_retained_checkpoints(3)
    run = LocalRun(env, str(tmp_path / "checkpoints")).run()
    directory = JobDirectory.open(str(tmp_path / "checkpoints"), "job")
    assert len(directory.completed(1)) == min(3, run.progress.checkpoints)
    kept = set().union(*(completed.metadata.files() for completed in directory.completed(1)))
    on_disk = {f"inc-1/state/{name}" for name in os.listdir(os.path.join(directory.path, "inc-1", "state"))}
    assert kept <= on_disk


def test_state_of_an_operator_that_is_gone_is_not_lost_silently(tmp_path: Path) -> None:
    LocalRun(program(tmp_path), str(tmp_path / "checkpoints")).run()
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2).enable_checkpointing(5)
    env.from_source(NumberSequenceSource(1, RECORDS), source_name="numbers").print()
    with pytest.raises(RestoreError, match=r"would be lost: 'Keyed Reduce' \(uid totals\)\. .* 'Print to Std. Out'"):
        LocalRun(env, str(tmp_path / "checkpoints")).run()


class KeepsItsLock(KeyedProcessFunction):
    """What a user might write who wants to guard something, and forgets that state is stored."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.guard = runtime_context.get_state(ValueStateDescriptor("guard"))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[int]:
        if value > RECORDS // 2:
            self.guard.update(threading.Lock())
        yield value


def test_state_that_cannot_be_stored_fails_the_job_at_once_and_its_last_checkpoint_stays(tmp_path: Path) -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1).enable_checkpointing(5)
    numbers = env.from_source(NumberSequenceSource(1, RECORDS, rate_per_second=RECORDS / 2), source_name="numbers")
    numbers.key_by(lambda n: n % 7).process(KeepsItsLock()).uid("guarded").print()
    run = LocalRun(env, str(tmp_path / "checkpoints"))
    with pytest.raises(
        SerializationError, match=r"value state 'guard' of operator guarded holds .*lock.* under the key \d"
    ):
        run.run()
    assert len(run.job.failures) == 1  # a restart would only meet it again
    assert JobDirectory.open(str(tmp_path / "checkpoints"), "job").latest() is not None
