"""The same lineage, retention and recovery in every storage."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from pyarrow.fs import LocalFileSystem

from firesteel.common import RestartStrategies
from firesteel.common.storage import LocalStorage, MemoryStorage, Storage, open_storage
from firesteel.common.storage.objects import ObjectStorage
from firesteel.coordinator.completed import Completed, locate
from firesteel.coordinator.engine import EpochOrder, EpochResult
from firesteel.coordinator.lineage import Incarnation, JobDirectory, confirm
from firesteel.coordinator.listing import list_checkpoints
from firesteel.coordinator.metadata import CheckpointMetadata
from firesteel.coordinator.retention import CompletedCheckpoints, discard
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.errors import CheckpointError, ConfigurationError, RestoreError, SupersededError
from firesteel.testing.engine import InjectedFailure
from tests.support.completing import some_metadata
from tests.support.local_engine import LocalRun
from tests.support.s3 import S3Server
from tests.support.slicing import Sliced
from tests.support.storage_job import check_output, program


@pytest.fixture(params=["local", "folders", "s3", "memory"])
def checkpoints(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    """`folders` is a file system that is no object store."""
    if request.param == "s3":
        server: S3Server = request.getfixturevalue("s3")
        return open_storage(server.bucket())
    return {
        "local": lambda: LocalStorage(str(tmp_path / "c")),
        "folders": lambda: ObjectStorage(LocalFileSystem(), str(tmp_path / "c"), f"test://{tmp_path}/c"),
        "memory": MemoryStorage,
    }[request.param]()


without_renames = pytest.mark.parametrize("checkpoints", ["folders", "s3", "memory"], indirect=True)


def complete(incarnation: Incarnation, number: int, files: tuple[str, ...] = ()) -> Completed:
    incarnation.begin(number)
    return incarnation.complete(some_metadata(incarnation, number, files))


def test_a_start_goes_on_from_the_newest_completed_checkpoint(checkpoints: Storage) -> None:
    directory = JobDirectory.open(checkpoints, "job")
    first = directory.claim()
    assert (first.number, first.start) == (1, None)
    complete(first, 1)
    newest = complete(first, 2)
    first.begin(3)  # never completed
    second = JobDirectory.open(checkpoints, "job").claim()
    assert second.start is not None
    assert (second.number, second.start) == (2, newest) or second.start.metadata == newest.metadata
    assert not second.start.confirmed
    confirm(newest)
    third = directory.claim()  # the second one completed nothing: the same checkpoint again
    assert third.start is not None
    assert (third.start.metadata.checkpoint, third.start.confirmed) == (2, True)


def test_a_superseded_driver_completes_nothing_at_whatever_step_it_wakes(checkpoints: Storage) -> None:
    directory = JobDirectory.open(checkpoints, "job")
    old = directory.claim()
    complete(old, 1)
    old.begin(2)
    new = directory.claim()
    for step in (lambda: old.complete(some_metadata(old, 2)), lambda: old.begin(3), old.check):
        with pytest.raises(SupersededError, match=r"incarnation 1 .*superseded by incarnation 2"):
            step()
    assert new.start is not None and new.start.metadata.checkpoint == 1
    complete(new, 2)
    newest = directory.claim()
    assert newest.start is not None and newest.start.metadata.incarnation == 2


@without_renames
def test_what_an_older_driver_completes_too_late_is_never_gone_on_from(checkpoints: Storage) -> None:
    """Its PUT was under way while the successor claimed. It may appear, and then its driver is told before it commits."""
    directory = JobDirectory.open(checkpoints, "job")
    old = directory.claim()
    complete(old, 1)
    new = directory.claim()
    folder = f"{old.folder}/chk-2"
    directory.storage.write(f"{folder}/_metadata", directory.storage.read(f"{old.folder}/chk-1/_metadata"))
    with pytest.raises(SupersededError):
        old.check()
    assert new.start is not None and new.start.metadata.checkpoint == 1
    after = directory.claim()
    assert after.start is not None and after.start.folder == new.start.folder


def test_an_incarnation_that_died_before_it_recorded_its_start_is_skipped(checkpoints: Storage) -> None:
    directory = JobDirectory.open(checkpoints, "job")
    complete(directory.claim(), 1)
    second = directory.claim()
    directory.storage.delete(f"{second.folder}/_start")
    third = directory.claim()
    assert third.start is not None and third.start.metadata.checkpoint == 1


def test_drivers_that_claim_at_the_same_time_get_different_numbers(checkpoints: Storage) -> None:
    directory = JobDirectory.open(checkpoints, "job")
    numbers: list[int] = []
    together = threading.Barrier(4)

    def claim() -> None:
        together.wait()
        numbers.append(directory.fencing.claim())

    threads = [threading.Thread(target=claim) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(numbers)) == 4


@without_renames
def test_a_claim_that_a_dead_driver_left_behind_is_nobodys(checkpoints: Storage) -> None:
    directory = JobDirectory.open(checkpoints, "job")
    complete(directory.claim(), 1)
    directory.storage.write("inc-2/_claim-of-somebody-who-died", b"")
    claimed = directory.claim()
    assert claimed.number == 3
    assert claimed.start is not None and claimed.start.metadata.checkpoint == 1


def test_checkpoints_beyond_the_retained_number_go_with_the_files_only_they_needed(checkpoints: Storage) -> None:
    directory = JobDirectory.open(checkpoints, "job")
    incarnation = directory.claim()
    kept = CompletedCheckpoints(incarnation, retained=2)
    for number, names in {1: ("a",), 2: ("a", "b"), 3: ("c",), 4: ("c", "d")}.items():
        kept.add(complete(incarnation, number, tuple(f"inc-1/state/{name}" for name in names)))
    assert directory.fencing.checkpoints(1) == [3, 4]
    assert sorted(directory.storage.names("inc-1/state")) == ["c", "d"]


def test_a_successor_keeps_what_it_started_from_and_removes_leftovers(checkpoints: Storage) -> None:
    directory = JobDirectory.open(checkpoints, "job")
    first = directory.claim()
    confirm(complete(first, 1, ("inc-1/state/needed",)))
    directory.storage.write("inc-1/state/orphan", b"half written")
    half = complete(first, 2)
    directory.fencing.remove(half.folder)
    CompletedCheckpoints(directory.claim(), retained=1)
    assert directory.storage.names("inc-1/state") == ["needed"]
    assert directory.fencing.checkpoints(1) == [1]


@without_renames
def test_a_half_removed_checkpoint_is_none(checkpoints: Storage) -> None:
    directory = JobDirectory.open(checkpoints, "job")
    first = directory.claim()
    complete(first, 1)
    confirm(complete(first, 2))
    directory.storage.delete("inc-1/chk-2/_metadata")
    second = directory.claim()
    assert second.start is not None and second.start.metadata.checkpoint == 1
    CompletedCheckpoints(second, retained=1)
    assert not directory.storage.exists("inc-1/chk-2/_confirmed")


@pytest.mark.parametrize("into", ["local", "s3", "memory"])
def test_a_job_starts_from_a_checkpoint_in_another_storage(
    into: str, s3: S3Server, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    for source in (str(tmp_path / "source"), s3.bucket()):
        theirs = JobDirectory.open(source, "theirs")
        first = theirs.claim()
        chosen = complete(first, 7, ("inc-1/state/slot-0.state",))
        confirm(chosen)
        location = open_storage(source).below(f"theirs/{chosen.folder}").uri
        target = {"local": str(tmp_path / "target"), "s3": s3.bucket(), "memory": MemoryStorage()}[into]
        ours = JobDirectory.open(target, f"job of {request.node.name} {source[:2]}")
        start = ours.claim(f"{location}/_metadata" if "?" not in location else location).start
        assert start is not None and start.confirmed
        assert (start.metadata.checkpoint, start.metadata.positions) == (7, chosen.metadata.positions)
        assert [ours.storage.read(file) for file in start.metadata.files()] == [b"state"]
        theirs.storage.delete_folder()
        again = ours.claim().start
        assert again is not None and again.problem() is None


def test_checkpoints_in_s3_are_listed_and_found_by_what_the_list_says(s3: S3Server) -> None:
    bucket = s3.bucket()
    incarnation = JobDirectory.open(bucket, "job").claim()
    confirm(complete(incarnation, 1, ("inc-1/state/a",)))
    complete(incarnation, 2)
    listed = list_checkpoints(bucket)
    assert [(one.checkpoint, one.confirmed, one.problem) for one in listed] == [(1, True, None), (2, False, None)]
    assert "password" not in listed[0].path
    only = open_storage(bucket).below("job/inc-1/chk-2").uri
    assert [one.checkpoint for one in list_checkpoints(only)] == [2]
    assert locate(only).metadata.checkpoint == 2
    with pytest.raises(ConfigurationError, match="there is no s3://"):
        list_checkpoints(open_storage(bucket).below("nothing").uri)
    with pytest.raises(RestoreError, match="there is no checkpoint s3://"):
        locate(open_storage(bucket).below("job/inc-1/chk-3").uri)
    with pytest.raises(RestoreError, match="is no checkpoint"):
        locate(bucket)


def test_a_cancelled_jobs_checkpoints_are_removed(checkpoints: Storage) -> None:
    directory = JobDirectory.open(checkpoints, "job")
    incarnation = directory.claim()
    completed = complete(incarnation, 1)
    discard(incarnation)
    assert directory.fencing.checkpoints(1) == [1]  # its output is not committed yet
    confirm(completed)
    discard(incarnation)
    assert checkpoints.names("job") == []


# ---- whole jobs


@pytest.fixture(params=["local", "s3", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str | Storage:
    if request.param == "local":
        return str(tmp_path / "c")
    if request.param == "memory":
        return MemoryStorage()
    server: S3Server = request.getfixturevalue("s3")
    return server.bucket()


def test_a_job_that_fails_again_and_again_loses_and_repeats_nothing(place: str | Storage, tmp_path: Path) -> None:
    run = LocalRun(program(tmp_path), place, fail_at=(5, 12, 13)).in_step()
    run_epoch = run.engine.run_epoch

    def fail_after_a_checkpoint(order: EpochOrder) -> EpochResult:
        result = run_epoch(order)
        if order.completed is not None and len(run.job.failures) == 3:
            raise InjectedFailure
        return result

    run.engine.run_epoch = fail_after_a_checkpoint  # type: ignore[method-assign]
    run.run()
    assert len(run.job.failures) == 4
    assert any(deployment.restore for deployment in run.engine.deployments)
    check_output(tmp_path)
    directory = JobDirectory.open(place, "job")
    completed = [found for number in directory.incarnations() for found in directory.completed(number)]
    assert len(completed) == 1  # as many as are retained, and their files, and no others
    needed = completed[0].metadata.files()
    assert {
        f"inc-{n}/state/{f}" for n in directory.incarnations() for f in directory.storage.names(f"inc-{n}/state")
    } == needed


@pytest.mark.parametrize(
    "point",
    [
        "after-claim", "after-lineage", "before-rename:3", "after-rename:3", "before-confirm:2", "half-dropped:2",
        "between-drops:2", "slot-after-state-file:5",
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["local", "s3"])
def test_a_driver_that_is_killed_anywhere_is_followed_by_one_that_goes_on(
    kind: str, point: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    place = request.getfixturevalue("s3").bucket() if kind == "s3" else str(tmp_path / "c")
    command = [sys.executable, "-m", "tests.support.storage_job", place, str(tmp_path)]
    killed = subprocess.run(command, env={**os.environ, "FIRESTEEL_CRASH": point}, timeout=60)
    assert killed.returncode == -signal.SIGKILL
    LocalRun(program(tmp_path), place).run()
    check_output(tmp_path)
    directory = JobDirectory.open(place, "job")
    completed = [found for number in directory.incarnations() for found in directory.completed(number)]
    assert [found.problem() for found in completed] == [None]


def test_a_driver_that_is_superseded_while_it_completes_a_checkpoint_commits_nothing(
    place: str | Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The successor takes over at the worst moment, right before or right after the commit point."""
    for number, after in enumerate((False, True)):
        root = tmp_path / str(number)
        root.mkdir()
        name = f"job-{number}"
        successor: list[LocalRun] = []

        def complete(
            incarnation: Incarnation, metadata: CheckpointMetadata, *given: Any, after: bool = after, root: Path = root,
            name: str = name, successor: list[LocalRun] = successor, real: Any = Incarnation.complete,
        ) -> Completed:  # fmt: skip
            done = real(incarnation, metadata) if after else None
            if not successor:
                successor.append(LocalRun(program(root), place, name))
                successor[0].run()
            return done or real(incarnation, metadata)

        with monkeypatch.context() as patch:
            patch.setattr(Incarnation, "complete", complete)
            with pytest.raises(SupersededError, match="another driver has taken the job over"):
                LocalRun(program(root), place, name).run()
        check_output(root)


def growing(keys: int) -> StreamExecutionEnvironment:
    """State that grows with every record."""
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2).enable_checkpointing(1)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(5, 0))
    numbers = env.from_source(Sliced(NumberSequenceSource(1, keys), 1000), source_name="numbers")
    numbers.key_by(lambda n: n).reduce(lambda a, b: a + b).uid("totals").filter(lambda n: n == 0).print()
    return env


def test_state_beyond_the_limit_of_the_drivers_memory_is_declined_with_what_to_do(
    caplog: pytest.LogCaptureFixture,
) -> None:
    memory = MemoryStorage(limit=50_000)
    with pytest.raises(CheckpointError) as raised:  # the final checkpoint cannot be left out
        LocalRun(growing(40_000), memory).in_step().run()
    words = r"its state is [\d.]+ KB, more than the 48.8 KB a slot .*execution.checkpointing.dir.*max_state_size="
    assert re.search(words, str(raised.value))
    assert any(re.search(words, record.getMessage()) for record in caplog.records)
    sizes = [memory.size(f"job/inc-{n}/state/{f}") for n in range(1, 9) for f in memory.names(f"job/inc-{n}/state")]
    assert all(size <= 50_000 for size in sizes)
    assert sum(sizes) <= 50_000 * 2 * 2  # of two slots: the last completed checkpoint, and nothing piles up beside it


def test_a_checkpoint_in_memory_is_one_file_of_each_slot_however_many_there_were() -> None:
    memory = MemoryStorage()
    run = LocalRun(growing(20_000), memory, fail_at=(8,)).in_step().run()
    directory = JobDirectory.open(memory, "job")
    newest = directory.latest()
    assert newest is not None
    assert newest.metadata.checkpoint > 3 and [len(chain) for chain in newest.metadata.state] == [1, 1]
    assert newest.problem() is None
    assert all("data" not in handle for chain in newest.metadata.state for handle in chain)
    assert len(run.job.failures) == 1
