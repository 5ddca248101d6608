"""The driver's directory lives exactly as long as its driver, however that one ends."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from firesteel.engine import scratch
from firesteel.engine.scratch import ScratchDir, sweep_stale

OWNER = """
import sys, subprocess
from pathlib import Path
from firesteel.engine.scratch import ScratchDir
directory = ScratchDir.create(Path(sys.argv[1]))
(directory.subdir("spark") / "block").write_text("data")
print(directory.path, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def owner(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Another driver process, and its directory."""
    command = [sys.executable, "-c", OWNER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process, Path(process.stdout.readline().strip())
        process.kill()


def dead_directory(base: Path) -> Path:
    directory = ScratchDir.create(base)
    (directory.path / "left").write_text("over")
    directory._lock.release()  # what the kernel does when the owner dies
    return directory.path


def test_a_directory_is_private_and_named_after_its_owner(tmp_path: Path) -> None:
    directory = ScratchDir.create(tmp_path)
    assert directory.path.stat().st_mode & 0o777 == 0o700
    assert directory.path.name.startswith(f"firesteel-{os.getpid()}-")
    assert os.listdir(tmp_path) == [directory.path.name]
    assert directory.remove()


def test_remove_leaves_nothing_and_may_be_called_again(tmp_path: Path) -> None:
    directory = ScratchDir.create(tmp_path)
    (directory.subdir("spark") / "block").write_text("data")
    (directory.path / "link").symlink_to("/nowhere")
    assert directory.remove()
    assert directory.remove()
    assert os.listdir(tmp_path) == []


def test_the_directory_of_a_living_owner_is_not_swept(owner: tuple[subprocess.Popen[str], Path]) -> None:
    _, path = owner
    assert sweep_stale(path.parent) == []
    assert (path / "spark" / "block").exists()


def test_a_killed_owners_directory_vanishes_with_the_next_start(
    owner: tuple[subprocess.Popen[str], Path],
) -> None:
    process, path = owner
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert path.exists()
    mine = ScratchDir.create(path.parent)
    assert os.listdir(path.parent) == [mine.path.name]
    mine.remove()


def test_children_of_the_owner_do_not_keep_its_lock(tmp_path: Path) -> None:
    directory = ScratchDir.create(tmp_path)
    executed = subprocess.Popen(["sleep", "60"], close_fds=False)
    here, there = socket.socketpair()
    forked = os.fork()
    if forked == 0:
        here.close()
        there.send(b"forked")  # and what runs after a fork has run
        there.recv(1)
        os._exit(0)
    there.close()
    try:
        assert here.recv(6) == b"forked"
        directory._lock.release()
        assert sweep_stale(tmp_path) == [directory.path]
    finally:
        here.close()
        os.waitpid(forked, 0)
        executed.kill()
        executed.wait()


def test_a_forked_child_cannot_remove_its_parents_directory(tmp_path: Path) -> None:
    directory = ScratchDir.create(tmp_path)
    forked = os.fork()
    if forked == 0:
        directory.remove()
        os._exit(0)
    os.waitpid(forked, 0)
    assert (directory.path / "lock").exists()
    assert sweep_stale(tmp_path) == []
    directory.remove()


def test_only_own_directories_of_the_pattern_are_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("firesteel-12-notahexno", "firesteel-x-0123abcd", "other-12-0123abcd"):
        (tmp_path / name).mkdir()
    (tmp_path / "firesteel-13-0123abcd").write_text("a file")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "firesteel-14-0123abcd").symlink_to(tmp_path / "elsewhere")
    before = sorted(os.listdir(tmp_path))
    assert sweep_stale(tmp_path) == []
    assert sorted(os.listdir(tmp_path)) == before

    dead = dead_directory(tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert sweep_stale(tmp_path) == []
    monkeypatch.undo()
    assert sweep_stale(tmp_path) == [dead]


def test_a_deletion_cut_short_at_any_step_is_finished_by_a_sweep(tmp_path: Path) -> None:
    for still_there in (["lock", "left"], ["lock"], [], ["written-late"]):
        dead = dead_directory(tmp_path)
        for name in set(os.listdir(dead)) - set(still_there):
            (dead / name).unlink()
        for name in still_there:
            (dead / name).touch()
        assert sweep_stale(tmp_path) == [dead]


def test_a_directory_another_sweeper_is_at_is_left_to_it(tmp_path: Path) -> None:
    dead = dead_directory(tmp_path)
    with (dead / "lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert sweep_stale(tmp_path) == []
    assert sweep_stale(tmp_path) == [dead]


def test_sweepers_and_creators_at_the_same_time_do_not_hurt_each_other(tmp_path: Path) -> None:
    stale = [dead_directory(tmp_path) for _ in range(20)]
    alive: list[ScratchDir] = []
    failures: list[BaseException] = []
    start = threading.Barrier(6)

    def work() -> None:
        try:
            start.wait()
            for _ in range(20):
                alive.append(ScratchDir.create(tmp_path))
        except BaseException as failure:  # noqa: BLE001  a thread's failure must reach the test
            failures.append(failure)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert all((directory.path / "lock").exists() for directory in alive)
    assert not any(path.exists() for path in stale)
    for directory in alive:
        assert directory.remove()


def test_a_temporary_directory_too_long_for_sockets_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: "/var/folders/" + "x" * 60)
    assert scratch.default_base() == Path("/tmp")
