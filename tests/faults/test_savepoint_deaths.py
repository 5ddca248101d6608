"""Processes die while a savepoint is taken: there is a whole one or none, and the job loses and repeats nothing."""

from __future__ import annotations

import contextlib
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from firesteel.coordinator.completed import locate
from firesteel.coordinator.savepoint import dispose
from firesteel.errors import RestoreError
from firesteel.state.files import StateFile
from tests.faults.supervisor import Arena, Driver, wait_until

SLOW = 400  # records a second: the job lives for some seconds


@pytest.fixture
def savepoints(arena: Arena) -> Path:
    directory = arena.home / "savepoints"
    arena.options |= {"savepoints": directory, "rate": SLOW}
    return directory


def folders(savepoints: Path) -> list[Path]:
    return list(savepoints.glob("savepoint-*"))


def check_whole(savepoint: Path) -> None:
    found = locate(str(savepoint))
    counted = 0
    for chain in found.metadata.state:
        for handle in chain:
            with StateFile(handle["file"], handle["checksum"], found.storage) as file:
                for delta in file.deltas():
                    if delta.name == "count":
                        counted += sum(delta.values)
    (left,) = [position["left"] for position in found.metadata.positions.values()]
    read = 3000 - sum(end - start for start, end in left)
    assert counted == read > 0


@pytest.mark.parametrize("point", ["savepoint-before-state", "savepoint-before-metadata", "savepoint-after-metadata"])
def test_a_driver_killed_while_it_takes_a_savepoint_leaves_a_whole_one_or_none(
    arena: Arena, savepoints: Path, point: str
) -> None:
    driver = arena.start(point)
    arena.wait_checkpoint(driver)
    driver.tell("savepoint")
    assert driver.wait() == -signal.SIGKILL, driver.said()
    arena.check_so_far()
    driver.wait_family_gone()
    (left,) = folders(savepoints)
    if point == "savepoint-after-metadata":
        check_whole(left)
    else:
        with pytest.raises(RestoreError, match="is no checkpoint"):
            locate(str(left))
    dispose(str(left))
    assert folders(savepoints) == []
    arena.finish(savepoints=None, rate=None)


def test_a_slot_killed_while_its_state_is_merged_fails_the_savepoint_and_the_job_goes_on(
    arena: Arena, savepoints: Path
) -> None:
    driver = arena.start("merging-state:1:wait-3", once="held")
    arena.wait_checkpoint(driver)
    driver.tell("savepoint")
    wait_until(lambda: (arena.home / "held").exists(), "the state to be merged")
    slot = driver._with_command("firesteel.state.compaction")[0].parent()
    assert slot is not None
    slot.kill()
    wait_until(lambda: "not taken: " in driver.said(), "the savepoint to fail")
    assert folders(savepoints) == []
    driver.tell("savepoint")
    wait_until(lambda: "taken: /" in driver.said(), "another savepoint")
    check_whole(folders(savepoints)[0])
    assert driver.wait() == 0, driver.said()
    assert arena.newest_incarnation() == 2
    arena.check_end()


def test_a_job_goes_on_from_the_savepoint_it_was_stopped_with(arena: Arena, savepoints: Path) -> None:
    """Under another name, in another directory, as the savepoint's owner; all output together is that of one run."""
    driver = arena.start()
    arena.wait_checkpoint(driver)
    driver.tell("stop")
    assert driver.wait() == 0, driver.said()
    driver.wait_family_gone()
    arena.check_so_far()
    (savepoint,) = folders(savepoints)
    check_whole(savepoint)
    arena.checkpoints = arena.home / "others"
    options = {"start-from": savepoint, "claim": True, "checkpoints": arena.checkpoints}
    again = arena.start_and_crash("after-drop:2", **options)
    again.wait_family_gone()
    assert folders(savepoints) == []  # the job has checkpoints of its own, and goes on from those
    arena.finish(checkpoints=arena.checkpoints, savepoints=None, rate=None)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte."""
    disk = tmp_path / "disk"
    disk.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)], capture_output=True, text=True)
    if made.returncode != 0:
        pytest.skip(f"needs the right to mount a file system: {made.stderr.strip()}")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_full_disk_fails_the_savepoint_and_nothing_else(arena: Arena, small_disk: Path) -> None:
    arena.options |= {"savepoints": small_disk, "rate": SLOW}
    driver = arena.start()
    arena.wait_checkpoint(driver)
    filler = small_disk / "filler"
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)
    driver.tell("stop")
    wait_until(lambda: "not taken: " in driver.said(), "the savepoint to fail")
    assert "No space left on device" in driver.said()
    filler.unlink()
    driver.tell("savepoint")
    wait_until(lambda: "taken: /" in driver.said(), "the next one")
    assert driver.wait() == 0, driver.said()
    arena.check_end()


def test_a_job_cancelled_with_a_savepoint_ends_at_it(arena: Arena, savepoints: Path) -> None:
    driver: Driver = arena.start()
    arena.wait_checkpoint(driver)
    driver.tell("cancel")
    assert driver.wait() == 1, driver.said()
    assert "JobCancelledError" in driver.said()
    check_whole(folders(savepoints)[0])
    arena.finish(savepoints=None, rate=None)  # from its own checkpoints, which are where the savepoint is
