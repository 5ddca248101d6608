"""A job starts from any checkpoint, of its own or of another job, and then is a job like any other."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from firesteel.coordinator import importing
from firesteel.coordinator.completed import Completed, locate, read_completed
from firesteel.coordinator.lineage import Incarnation, JobDirectory, confirm
from firesteel.coordinator.metadata import CheckpointMetadata
from firesteel.coordinator.retention import CompletedCheckpoints, drop_abandoned
from firesteel.coordinator.starting import check_start
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.errors import ConfigurationError, FiresteelError, JobCancelledError, RestoreError
from firesteel.graph.nodes import Collect
from firesteel.graph.settings import CheckpointSettings, JobSettings, StartSettings
from tests.support.completing import some_metadata
from tests.support.local_engine import LocalRun
from tests.support.slicing import Sliced

KEYS = 3


def program(
    start_from: str | None = None, retained: int = 20, leave: bool = False, uid: str = "totals"
) -> StreamExecutionEnvironment:
    """Numbers, summed by key, without end."""
    env = StreamExecutionEnvironment().set_parallelism(1).enable_checkpointing(1)
    env.get_checkpoint_config().set_max_retained_checkpoints(retained)
    env.start = StartSettings(start_from, leave)
    numbers = env.from_source(Sliced(NumberSequenceSource(1, 10**9), 100), source_name="numbers").uid("numbers")
    numbers.key_by(lambda n: n % KEYS).reduce(lambda a, b: a + b).uid(uid)._end(Collect(), "Collect")
    return env


def run_for(env: StreamExecutionEnvironment, root: Path, checkpoints: int, name: str = "job") -> LocalRun:
    """Until that many checkpoints are complete; then it is cancelled."""
    run = LocalRun(env, str(root), name).in_step()
    left = [checkpoints]

    def count(metadata: CheckpointMetadata) -> None:
        left[0] -= 1
        if left[0] <= 0:
            run.job.cancel()

    run.progress.checkpoint = count  # type: ignore[method-assign]
    with pytest.raises(JobCancelledError):
        run.run()
    return run


def checkpoints_of(root: Path, name: str = "job") -> list[Completed]:
    directory = JobDirectory.open(str(root), name)
    return [found for number in reversed(directory.incarnations()) for found in directory.completed(number)]


def read_by(checkpoint: Completed) -> int:
    """Up to which number the source had been read."""
    position: Any = checkpoint.metadata.positions["numbers"]
    return int(position["left"][0][0]) - 1


def check_continues(run: LocalRun, checkpoint: Completed) -> None:
    """What the run gave out first is what follows from exactly the state of that checkpoint."""
    read = read_by(checkpoint)
    numbers = [range(key or KEYS, read + 1, KEYS) for key in range(KEYS)]
    totals = [(n[0] + n[-1]) * len(n) // 2 if n else 0 for n in numbers]  # a slow disk makes for many records
    expected = []
    for number in range(read + 1, read + 61):
        totals[number % KEYS] += number
        expected.append(totals[number % KEYS])
    assert run.collected()[:60] == expected


def test_of_twenty_retained_checkpoints_the_job_starts_from_the_fifth(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run_for(program(), tmp_path, 25)
    kept = checkpoints_of(tmp_path)
    assert len(kept) == 20
    fifth, newest = kept[4], kept[-1]
    second = run_for(program(os.path.join(fifth.path, "_metadata")), tmp_path, 1)
    check_continues(second, fifth)
    assert f"goes back to checkpoint {fifth.metadata.checkpoint}" in caplog.text
    assert "it will write again" in caplog.text
    numbers = [found.metadata.checkpoint for found in checkpoints_of(tmp_path)]
    assert numbers == sorted(set(numbers))  # none is given twice: sinks may know checkpoints by their numbers
    assert numbers[-1] > newest.metadata.checkpoint

    last = checkpoints_of(tmp_path)[-1]
    third = run_for(program(), tmp_path, 1)  # without being told anything, from its own newest
    check_continues(third, last)


def test_every_retained_checkpoint_can_be_started_from_in_whatever_order(tmp_path: Path) -> None:
    run_for(program(), tmp_path, 6)
    for found in (chosen := checkpoints_of(tmp_path)[:5])[::-2] + chosen[1::2]:
        check_continues(run_for(program(found.path), tmp_path, 2), found)


def test_with_one_retained_going_back_keeps_its_files_for_as_long_as_they_are_needed(tmp_path: Path) -> None:
    run_for(program(), tmp_path, 10)
    third = checkpoints_of(tmp_path)[2]
    run_for(program(third.path, retained=1), tmp_path, 4)
    (left,) = checkpoints_of(tmp_path)
    assert left.problem() is None
    assert not os.path.exists(third.path)
    check_continues(run_for(program(retained=1), tmp_path, 1), left)


def test_another_job_in_another_directory_goes_on_alone(tmp_path: Path) -> None:
    run_for(program(), tmp_path / "one", 6)
    before = sorted(path.relative_to(tmp_path) for path in (tmp_path / "one").rglob("*"))
    found = checkpoints_of(tmp_path / "one")[3]
    check_continues(run_for(program(found.path, retained=1), tmp_path / "two", 3, "other"), found)
    assert sorted(path.relative_to(tmp_path) for path in (tmp_path / "one").rglob("*")) == before
    shutil.rmtree(tmp_path / "one")
    (last,) = checkpoints_of(tmp_path / "two", "other")
    assert last.problem() is None
    check_continues(run_for(program(), tmp_path / "two", 1, "other"), last)


def test_a_failure_before_its_first_own_checkpoint_starts_from_the_chosen_one_again(tmp_path: Path) -> None:
    run_for(program(), tmp_path, 6)
    third = checkpoints_of(tmp_path)[2]
    run = LocalRun(program(third.path), str(tmp_path), fail_at=[1])
    run.progress.checkpoint = lambda metadata: run.job.cancel()  # type: ignore[method-assign]
    with pytest.raises(JobCancelledError):
        run.run()
    assert len(run.job.failures) == 1
    check_continues(run, third)


def test_state_is_copied_where_links_cannot_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_for(program(), tmp_path / "one", 3)
    found = checkpoints_of(tmp_path / "one")[1]
    real = os.link

    def link(source: str, target: str) -> None:
        if source.endswith(".state"):
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        real(source, target)

    monkeypatch.setattr(os, "link", link)
    check_continues(run_for(program(found.path), tmp_path / "two", 1), found)


def test_state_that_nobody_restores_is_given_up_only_when_allowed_and_does_not_come_back(tmp_path: Path) -> None:
    run_for(program(), tmp_path, 2)
    with pytest.raises(RestoreError, match=r"uid totals.*--allow-non-restored-state"):
        LocalRun(program(uid="renamed"), str(tmp_path)).run()
    run_for(program(leave=True, uid="renamed"), tmp_path, 2)
    with pytest.raises(RestoreError, match=r"uid totals.* its state was given up"):
        LocalRun(program(leave=True), str(tmp_path)).run()
    run_for(program(uid="renamed"), tmp_path, 1)  # nothing is left to be allowed


# ---- with checkpoints of which only metadata matters


def checkpoint(incarnation: Incarnation, number: int, committed: bool = True) -> Completed:
    file = f"inc-{incarnation.number}/state/slot-0-chk-{number}.state"
    incarnation.begin(number)
    completed = incarnation.complete(some_metadata(incarnation, number, (file,)))
    if committed:
        confirm(completed)
    return completed


def test_a_checkpoint_whose_output_is_not_committed_is_dropped_when_the_job_goes_back(tmp_path: Path) -> None:
    directory = JobDirectory.open(str(tmp_path), "job")
    first = directory.claim()
    older, newest = checkpoint(first, 1), checkpoint(first, 2, committed=False)
    second = directory.claim(older.path)
    assert second.start is not None
    assert (second.start.metadata.checkpoint, second.start.confirmed) == (3, True)
    drop_abandoned(second)
    assert os.path.exists(older.path) and not os.path.exists(newest.path)
    CompletedCheckpoints(second, retained=20)
    assert sorted(os.listdir(os.path.join(first.path, "state"))) == ["slot-0-chk-1.state"]


def test_the_newest_checkpoint_is_gone_on_from_as_usual_when_it_is_named(tmp_path: Path) -> None:
    directory = JobDirectory.open(str(tmp_path), "job")
    newest = checkpoint(directory.claim(), 1, committed=False)
    alias = tmp_path / "alias"
    alias.symlink_to(newest.path)
    for location in (newest.path, f"file://{newest.path}/", f"{newest.path}/_metadata", str(alias)):
        start = directory.claim(location).start
        assert start is not None
        assert (start.path, start.confirmed) == (newest.path, False)  # its output is still to be committed


def test_uncommitted_output_of_another_job_is_not_left_behind_silently(tmp_path: Path) -> None:
    theirs = checkpoint(JobDirectory.open(str(tmp_path), "theirs").claim(), 7, committed=False)
    ours = JobDirectory.open(str(tmp_path), "ours")
    with pytest.raises(RestoreError, match="output of job 'job' that is not committed yet"):
        ours.claim(theirs.path)
    start = ours.claim(theirs.path, leave_output=True).start
    assert start is not None
    assert (start.metadata.checkpoint, start.metadata.committables) == (7, {})
    assert not read_completed(theirs.storage, theirs.folder).confirmed


def test_a_start_that_died_half_way_changed_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = JobDirectory.open(str(tmp_path), "job")
    first = directory.claim()
    older, newest = checkpoint(first, 1), checkpoint(first, 2)

    def die(point: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(importing, "crash_point", die)
    with pytest.raises(KeyboardInterrupt):
        directory.claim(older.path)
    start = directory.claim().start
    assert start is not None
    assert start.path == newest.path


def test_a_job_goes_back_behind_a_damaged_checkpoint_whose_files_stay(tmp_path: Path) -> None:
    directory = JobDirectory.open(str(tmp_path), "job")
    first = directory.claim()
    older, newest = checkpoint(first, 1), checkpoint(first, 2)
    Path(newest.path, "_metadata").write_bytes(b"nonsense")
    with pytest.raises(RestoreError, match="damaged"):
        directory.claim()
    claimed = directory.claim(older.path)
    assert claimed.start is not None
    assert claimed.start.metadata.checkpoint == 3
    CompletedCheckpoints(claimed, retained=1)
    assert len(os.listdir(os.path.join(first.path, "state"))) == 2
    assert os.path.exists(newest.path)


def test_what_is_no_checkpoint_is_refused_before_anything_is_claimed(tmp_path: Path) -> None:
    directory = JobDirectory.open(str(tmp_path / "c"), "job")
    found = checkpoint(directory.claim(), 1)
    (tmp_path / "file").write_text("")
    shutil.copytree(found.path, tmp_path / "x" / "y" / "copy")
    for location, words in {
        "nowhere": "no such file or directory",
        "c/job": "is no checkpoint",
        "file": "is no checkpoint",
        "x/y/copy": r"cannot be restored: state file .* No such file",
        "s4://bucket/chk-1": "Unrecognized filesystem type",
    }.items():
        with pytest.raises(FiresteelError, match=words):
            locate(location if ":" in location else str(tmp_path / location))
        with pytest.raises(FiresteelError, match=words):
            check_start(
                program().plan(),
                settings(tmp_path / "c", restore_from=location if ":" in location else str(tmp_path / location)),
            )
    assert directory.incarnations() == [1]


def settings(root: Path, **start: Any) -> JobSettings:
    return JobSettings("job", CheckpointSettings(1000, directory=str(root)), start=StartSettings(**start))


def test_a_job_that_must_resume_needs_a_checkpoint_and_makes_no_directory(tmp_path: Path) -> None:
    with pytest.raises(RestoreError, match="cannot resume: it has no checkpoint in"):
        check_start(program().plan(), settings(tmp_path / "none", must_resume=True))
    assert not (tmp_path / "none").exists()
    with pytest.raises(ConfigurationError, match="it has no checkpoint directory"):
        check_start(
            program().plan(), JobSettings("job", CheckpointSettings(1000), start=StartSettings(must_resume=True))
        )
    with pytest.raises(ConfigurationError, match="it has no checkpoint interval"):
        check_start(program().plan(), JobSettings("job", start=StartSettings(must_resume=True)))
    with pytest.raises(ConfigurationError, match="cannot do both"):
        check_start(program().plan(), settings(tmp_path, restore_from="x", must_resume=True))
    incarnation = JobDirectory.open(str(tmp_path), "job").claim()
    with pytest.raises(RestoreError, match="cannot resume"):
        check_start(program().plan(), settings(tmp_path, must_resume=True))
    checkpoint(incarnation, 1)
    check_start(program().plan(), settings(tmp_path, must_resume=True))


def test_a_driver_that_was_replaced_cannot_take_away_what_its_successor_went_back_to(tmp_path: Path) -> None:
    directory = JobDirectory.open(str(tmp_path), "job")
    old = directory.claim()
    kept = CompletedCheckpoints(old, retained=2)
    chosen = checkpoint(old, 1)
    kept.add(chosen)
    kept.add(checkpoint(old, 2))
    third = checkpoint(old, 3)
    new = directory.claim(chosen.path)
    kept.add(third)  # it had looked just before that whether it is still the one
    assert not os.path.exists(chosen.path)
    assert new.start is not None and new.start.problem() is None
