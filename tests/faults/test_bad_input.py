"""Disks that are full and directories that may not be written: the job says which and why, and loses nothing."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.supervisor import Arena, wait_until

FOREVER = 1_000_000


def test_a_checkpoint_directory_without_permission_is_refused_by_name(arena: Arena) -> None:
    arena.checkpoints.mkdir(mode=0o500)
    driver = arena.start(privileged=False)
    assert driver.wait() > 0
    said = driver.said()
    assert f"the checkpoint directory {arena.job_directory} cannot be made or used: Permission denied" in said
    assert "Check its path and permissions" in said
    assert not arena.out.exists()


def test_a_directory_whose_permission_is_taken_away_costs_a_while_and_nothing_else(arena: Arena) -> None:
    driver = arena.start(privileged=False, attempts=FOREVER)
    arena.wait_checkpoint(driver)
    arena.job_directory.chmod(0o500)
    for path in arena.job_directory.glob("inc-*/pending"):
        path.chmod(0o500)
    wait_until(lambda: f"Permission denied: '{arena.job_directory}" in driver.said(), "the job to notice")
    arena.job_directory.chmod(0o700)
    for path in arena.job_directory.glob("inc-*/pending"):
        path.chmod(0o700)
    assert driver.wait() == 0, driver.said()
    arena.check_end()


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


@pytest.mark.parametrize("what", ["checkpoints", "checkpoints and output"])
def test_a_full_disk_holds_the_job_up_until_there_is_room_again(small_disk: Path, arena: Arena, what: str) -> None:
    arena.checkpoints = small_disk / "checkpoints"
    if "output" in what:
        arena.out = small_disk / "out"
    arena.options["checkpoints"] = arena.checkpoints
    driver = arena.start(attempts=FOREVER)
    arena.wait_checkpoint(driver)
    filler = small_disk / "filler"
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)
    wait_until(lambda: f"No space left on device: '{small_disk}" in driver.said(), "the job to say which file it was")
    assert driver.process.poll() is None, driver.said()
    arena.check_so_far()
    filler.unlink()
    assert driver.wait() == 0, driver.said()
    assert "in discard" not in driver.said()  # of what there was no room for either
    arena.check_end()
