"""Incarnations: one may write, and it knows where it started."""

from __future__ import annotations

from pathlib import Path

import pytest

from firesteel.common.storage import LocalStorage
from firesteel.coordinator import metadata as metadata_files
from firesteel.coordinator.documents import encode_document
from firesteel.coordinator.lineage import Incarnation, JobDirectory, confirm
from firesteel.coordinator.retention import CompletedCheckpoints
from firesteel.errors import ConfigurationError, RestoreError, SupersededError
from tests.support.completing import some_metadata


def complete(incarnation: Incarnation, number: int, files: tuple[str, ...] = ()) -> None:
    incarnation.begin(number)
    incarnation.complete(some_metadata(incarnation, number, files))


def test_a_start_goes_on_from_the_newest_completed_checkpoint(tmp_path: Path) -> None:
    directory = JobDirectory.open(str(tmp_path), "job")
    first = directory.claim()
    assert (first.number, first.start) == (1, None)
    complete(first, 1)
    complete(first, 2)
    first.begin(3)  # never completed
    second = JobDirectory.open(str(tmp_path), "job").claim()
    assert second.number == 2
    assert second.start is not None
    assert second.start.metadata == some_metadata(first, 2)
    third = directory.claim()  # the second one completed nothing: the same checkpoint again
    assert third.start is not None
    assert third.start.metadata.checkpoint == 2


def test_confirmation_is_remembered(tmp_path: Path) -> None:
    directory = JobDirectory.open(str(tmp_path), "job")
    first = directory.claim()
    first.begin(1)
    completed = first.complete(some_metadata(first, 1))
    second = directory.claim()
    assert second.start is not None and not second.start.confirmed
    confirm(completed)
    third = directory.claim()
    assert third.start is not None and third.start.confirmed


def test_a_superseded_incarnation_can_complete_nothing_at_whatever_step_it_wakes(tmp_path: Path) -> None:
    directory = JobDirectory.open(str(tmp_path), "job")
    old = directory.claim()
    complete(old, 1)
    old.begin(2)
    new = directory.claim()
    with pytest.raises(SupersededError, match=r"incarnation 1 .*superseded by incarnation 2"):
        old.complete(some_metadata(old, 2))
    with pytest.raises(SupersededError):
        old.begin(3)
    assert new.start is not None and new.start.metadata.checkpoint == 1
    complete(new, 2)
    newest = directory.claim()
    assert newest.start is not None
    assert newest.start.metadata.incarnation == 2


def test_an_incarnation_that_died_before_it_recorded_its_start_is_skipped(tmp_path: Path) -> None:
    directory = JobDirectory.open(str(tmp_path), "job")
    first = directory.claim()
    complete(first, 1)
    second = directory.claim()
    Path(second.path, "_start").unlink()
    third = directory.claim()
    assert third.start is not None and third.start.metadata.checkpoint == 1


def test_concurrent_claims_get_different_numbers(tmp_path: Path) -> None:
    directory = JobDirectory.open(str(tmp_path), "job")
    numbers = [directory.fencing.claim() for _ in range(5)]
    assert numbers == [1, 2, 3, 4, 5]


def test_checkpoints_beyond_the_retained_number_go_with_the_files_only_they_needed(tmp_path: Path) -> None:
    directory = JobDirectory.open(str(tmp_path), "job")
    incarnation = directory.claim()
    kept = CompletedCheckpoints(incarnation, retained=2)
    chains = {1: ("a",), 2: ("a", "b"), 3: ("c",), 4: ("c", "d")}
    for number, names in chains.items():
        incarnation.begin(number)
        files = tuple(f"inc-1/state/{name}" for name in names)
        kept.add(incarnation.complete(some_metadata(incarnation, number, files)))
    assert sorted(path.name for path in Path(incarnation.path).glob("chk-*")) == ["chk-3", "chk-4"]
    assert sorted(path.name for path in Path(incarnation.path, "state").iterdir()) == ["c", "d"]


def test_a_successor_keeps_what_it_started_from_and_removes_leftovers(tmp_path: Path) -> None:
    directory = JobDirectory.open(str(tmp_path), "job")
    first = directory.claim()
    complete(first, 1, ("inc-1/state/needed",))
    Path(first.path, "state", "orphan").write_bytes(b"half written")
    second = directory.claim()
    kept = CompletedCheckpoints(second, retained=1)
    assert [path.name for path in Path(first.path, "state").iterdir()] == ["needed"]
    second.begin(2)
    kept.add(second.complete(some_metadata(second, 2, ("inc-1/state/needed", "inc-2/state/delta"))))
    assert not Path(first.path, "chk-1").exists()
    assert Path(first.path, "state", "needed").exists()  # chk-2 is built on it


def test_another_jobs_directory_is_refused(tmp_path: Path) -> None:
    JobDirectory.open(str(tmp_path), "job a")
    with pytest.raises(RestoreError, match="belongs to the job 'job a', not to 'job/a'"):
        JobDirectory.open(str(tmp_path), "job/a")


def test_a_checkpoint_copied_from_another_job_is_refused(tmp_path: Path) -> None:
    directory = JobDirectory.open(str(tmp_path), "job")
    first = directory.claim()
    complete(first, 1)
    directory.storage.replace("_job", encode_document("job", {"job_id": "another-id", "job_name": "job"}))
    with pytest.raises(SupersededError, match=r"made the job 'job' in .* anew"):
        directory.claim()
    with pytest.raises(RestoreError, match=r"chk-1 belongs to the job 'job'"):
        JobDirectory.open(str(tmp_path), "job").claim()


def test_a_newer_job_directory_is_refused(tmp_path: Path) -> None:
    directory = JobDirectory.open(str(tmp_path), "job")
    marker = Path(directory.path, "_job")
    marker.write_bytes(marker.read_bytes().replace(b"firesteel-job 1 ", b"firesteel-job 99 ", 1))
    with pytest.raises(RestoreError, match="format 99, newer than 2"):
        JobDirectory.open(str(tmp_path), "job")


def test_a_directory_that_cannot_be_made_is_a_configuration_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="cannot be made"):
        JobDirectory.open(str(tmp_path / "file" / "below"), "job")


def test_every_flipped_bit_of_metadata_is_noticed(tmp_path: Path) -> None:
    directory = JobDirectory.open(str(tmp_path), "job")
    good = metadata_files.encode(some_metadata(directory.claim(), 1))
    for position in range(len(good)):
        bad = bytearray(good)
        bad[position] ^= 1 << (position % 8)
        (tmp_path / "_metadata").write_bytes(bad)
        with pytest.raises(RestoreError, match="_metadata"):
            metadata_files.read(LocalStorage(str(tmp_path)), "")


def test_newer_metadata_is_refused(tmp_path: Path) -> None:
    directory = JobDirectory.open(str(tmp_path), "job")
    good = metadata_files.encode(some_metadata(directory.claim(), 1))
    (tmp_path / "_metadata").write_bytes(good.replace(b"checkpoint 1 ", b"checkpoint 99 ", 1))
    with pytest.raises(RestoreError, match="format 99, newer than 2"):
        metadata_files.read(LocalStorage(str(tmp_path)), "")
