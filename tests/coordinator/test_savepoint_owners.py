"""Who may start from a savepoint, who owns it, who deletes it, and what is no savepoint (any more)."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from xxhash import xxh3_64_hexdigest

from firesteel.coordinator.completed import locate
from firesteel.coordinator.documents import NEWEST
from firesteel.coordinator.driver_lock import DriverLock
from firesteel.coordinator.lineage import JobDirectory
from firesteel.coordinator.listing import list_checkpoints
from firesteel.coordinator.savepoint import dispose
from firesteel.coordinator.savepoint_requests import Ending
from firesteel.coordinator.starting import check_start
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.errors import ConfigurationError, FiresteelError, JobRunningError, RestoreError, SupersededError
from firesteel.graph.nodes import Collect
from firesteel.graph.settings import StartSettings
from tests.support.running import Running
from tests.support.slicing import Sliced
from tests.support.waiting import wait_until


def program(start_from: str | None = None, *, claim: bool = False, uid: str = "totals") -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment().set_parallelism(1).enable_checkpointing(1)
    env.start = StartSettings(start_from, claim=claim)
    numbers = env.from_source(Sliced(NumberSequenceSource(1, 10**12), 50), source_name="numbers").uid("numbers")
    numbers.key_by(lambda n: n % 3).reduce(lambda a, b: a + b).uid(uid)._end(Collect(), "Collect")
    return env


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A savepoint of a job that has ended, with the job's checkpoints beside it."""
    home = tmp_path_factory.mktemp("made")
    with Running(program(), str(home / "checkpoints"), "maker") as running:
        running.epochs()
        running.savepoint(home / "savepoints", Ending.SUSPEND)
    return home


@pytest.fixture
def home(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "home")
    savepoint = next((tmp_path / "home" / "savepoints").iterdir())
    edit(savepoint, job_directory=str(tmp_path / "home" / "checkpoints" / "maker"))
    return tmp_path / "home"


def edit(savepoint: Path, version: int = 1, **changes: object) -> None:
    head, _, body = (savepoint / "_metadata").read_bytes().partition(b"\n")
    content = json.dumps({**json.loads(body), **changes}).encode()
    (savepoint / "_metadata").write_bytes(
        f"{head.split()[0].decode()} {version} {xxh3_64_hexdigest(content)}\n".encode() + content
    )


def savepoint_in(home: Path) -> Path:
    return next((home / "savepoints").iterdir())


def start(home: Path, env: StreamExecutionEnvironment, name: str = "next") -> None:
    """What a start checks before it does anything."""
    settings = env.settings(name)
    env.get_checkpoint_config().set_checkpoint_storage_dir(str(home / "checkpoints"))
    settings = env.settings(name)
    check_start(env.plan(), settings)


# ---- claiming


def test_a_claimed_savepoint_goes_when_newer_checkpoints_are_there(home: Path) -> None:
    savepoint = savepoint_in(home)
    with Running(program(str(savepoint), claim=True), str(home / "checkpoints"), "next") as running:
        wait_until(lambda: not savepoint.exists() or running.failure, "it to go")
        running.epochs()
    assert not savepoint.exists()
    with Running(program(), str(home / "checkpoints"), "next") as again:
        again.epochs()


def test_a_savepoint_that_is_not_claimed_stays(home: Path) -> None:
    savepoint = savepoint_in(home)
    before = {path.name: path.read_bytes() for path in savepoint.iterdir()}
    with Running(program(str(savepoint)), str(home / "checkpoints"), "next") as running:
        running.epochs(10)
    assert {path.name: path.read_bytes() for path in savepoint.iterdir()} == before


def test_a_job_that_dies_before_its_first_checkpoint_finds_what_it_has_claimed_again(home: Path) -> None:
    savepoint = savepoint_in(home)
    env = program(str(savepoint), claim=True)
    env.enable_checkpointing(1_000_000)
    with Running(env, str(home / "checkpoints"), "next") as running:
        running.epochs()
    assert (savepoint / "_claimed").exists() and locate(str(savepoint))
    with pytest.raises(RestoreError, match="claimed by job 'next'"):
        start(home, program(str(savepoint), claim=True), "another")
    with Running(program(str(savepoint), claim=True), str(home / "checkpoints"), "next") as again:
        wait_until(lambda: not savepoint.exists() or again.failure, "it to go")
        again.epochs()


def test_what_another_running_job_made_cannot_be_claimed(home: Path) -> None:
    savepoint = savepoint_in(home)
    maker = JobDirectory.find(str(home / "checkpoints"), "maker")
    assert maker is not None
    with DriverLock() as lock:
        lock.acquire(maker)
        with pytest.raises(JobRunningError, match=r"while the job that made it runs.*NO_CLAIM"):
            start(home, program(str(savepoint), claim=True))
        with Running(program(str(savepoint), claim=True), str(home / "checkpoints"), "next") as running:
            running.ended()
        assert isinstance(running.failure, JobRunningError)
        start(home, program(str(savepoint)))  # beside it, without a claim
    assert not (savepoint / "_claimed").exists()
    start(home, program(str(savepoint), claim=True))


def test_claiming_fences_a_job_that_runs_where_nobody_sees_it(home: Path) -> None:
    """Without locks, in an object store for one: it runs, and must not complete another checkpoint."""
    savepoint = savepoint_in(home)
    with Running(program(), str(home / "checkpoints"), "maker") as unseen:  # it holds no lock here
        unseen.epochs()
        with Running(program(str(savepoint), claim=True), str(home / "checkpoints"), "next") as running:
            unseen.ended()
            running.epochs()
    assert isinstance(unseen.failure, SupersededError)
    with Running(program(), str(home / "checkpoints"), "maker") as again:  # it is not broken
        again.epochs()


def test_only_jobs_with_checkpoints_that_last_can_claim_and_only_savepoints(home: Path) -> None:
    env = program(str(savepoint_in(home)), claim=True)
    with pytest.raises(ConfigurationError, match="no checkpoints that last"):
        check_start(env.plan(), env.settings("next"))
    checkpoint = next((home / "checkpoints" / "maker").glob("inc-*/chk-*"))
    with pytest.raises(RestoreError, match="it is a checkpoint of job 'maker'"):
        start(home, program(str(checkpoint), claim=True))
    start(home, program(str(checkpoint), claim=True), "maker")  # its own are its own


def test_the_claim_mode_is_a_setting() -> None:
    from firesteel.common import Configuration

    env = StreamExecutionEnvironment()
    for mode, claim in {"CLAIM": True, "NO_CLAIM": False}.items():
        env.configure(Configuration.from_dict({"execution.state-recovery.claim-mode": mode}))
        assert env.start.claim is claim


def test_only_what_was_claimed_is_deleted(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    savepoint = savepoint_in(home)
    env = program(str(savepoint), claim=True)
    env.enable_checkpointing(1_000_000)
    with Running(env, str(home / "checkpoints"), "next") as running:
        running.epochs()
    edit(savepoint, state=[])  # another one has taken its place
    with Running(program(), str(home / "checkpoints"), "next"):
        wait_until(lambda: "something else is there now" in caplog.text, "the warning")
    assert savepoint.exists()


# ---- starting


def test_what_cannot_be_restored_is_refused_with_the_reason_before_anything_happens(home: Path) -> None:
    savepoint = savepoint_in(home)
    with pytest.raises(
        RestoreError, match=r"operators that are not in the program.*'Reduce' \(uid totals\)|uid totals"
    ):
        start(home, program(str(savepoint), uid="others"))
    (state,) = savepoint.glob("*.state")
    content = state.read_bytes()
    state.write_bytes(content[:-1])
    with pytest.raises(RestoreError, match=rf"savepoint {savepoint} cannot be restored: state file {state} has"):
        start(home, program(str(savepoint)))
    state.unlink()
    with pytest.raises(RestoreError, match=r"No such file.*A savepoint is copied and moved with everything"):
        start(home, program(str(savepoint)))
    state.write_bytes(content[:50] + bytes([content[50] ^ 1]) + content[51:])
    with Running(program(str(savepoint)), str(home / "checkpoints"), "torn") as running:
        running.ended()
    assert isinstance(running.failure, RestoreError) and "checksum" in str(running.failure)
    state.write_bytes(content)
    edit(savepoint, version=NEWEST + 1)
    with pytest.raises(RestoreError, match=f"has format {NEWEST + 1}, newer than {NEWEST}"):
        start(home, program(str(savepoint)))
    (savepoint / "_metadata").unlink()
    with pytest.raises(RestoreError, match="is no checkpoint"):
        start(home, program(str(savepoint)))
    assert sorted(os.listdir(home / "checkpoints")) == ["maker", "torn"]


# ---- listing


def test_savepoints_are_listed_whole_ones_and_what_is_left_of_others(home: Path) -> None:
    savepoint = savepoint_in(home)
    shutil.copytree(savepoint, home / "savepoints" / "unfinished")
    (home / "savepoints" / "unfinished" / "_metadata").unlink()
    checkpoint, *listed = list_checkpoints(str(home), verify=True)
    assert (checkpoint.kind, checkpoint.job_name) == ("checkpoint", "maker")
    assert sorted((one.kind, one.job_name, one.problem is None) for one in listed) == [
        ("savepoint", "", False),
        ("savepoint", "maker", True),
    ]
    assert [one.path for one in list_checkpoints(str(savepoint))] == [str(savepoint)]
    (state,) = savepoint.glob("*.state")
    content = state.read_bytes()
    state.write_bytes(content[:50] + bytes([content[50] ^ 1]) + content[51:])
    (damaged,) = list_checkpoints(str(savepoint), verify=True)
    assert damaged.problem is not None and str(state) in damaged.problem


# ---- disposing


def test_a_savepoint_is_disposed_of_by_its_directory_or_metadata(home: Path) -> None:
    savepoint = savepoint_in(home)
    copy = home / "renamed"
    shutil.copytree(savepoint, copy)
    dispose(f"{copy}/_metadata")
    dispose(f"file://{savepoint}")
    assert not copy.exists() and not savepoint.exists()
    with pytest.raises(RestoreError, match="there is no savepoint"):
        dispose(str(savepoint))


def test_what_is_left_of_a_savepoint_can_be_disposed_of(home: Path) -> None:
    savepoint = savepoint_in(home)
    for name, damage in {
        "unfinished": lambda path: (path / "_metadata").unlink(),
        "damaged": lambda path: (path / "_metadata").write_bytes(b"x"),
        "stateless": lambda path: [file.unlink() for file in path.glob("*.state")],
        "half-written": lambda path: (path / "_metadata").rename(path / "_metadata.17.tmp"),
    }.items():
        shutil.copytree(savepoint, home / name)
        damage(home / name)
        with pytest.raises(FiresteelError):
            locate(str(home / name))
        dispose(str(home / name))
        assert not (home / name).exists()
    empty = home / "savepoint-0123ab-0123456789ab"  # as one is called that never got further
    empty.mkdir()
    dispose(str(empty))
    assert not empty.exists()


def test_nothing_else_is_ever_deleted(home: Path) -> None:
    savepoint = savepoint_in(home)
    (savepoint / "mine.txt").write_text("notes")
    (home / "empty").mkdir()
    job = home / "checkpoints" / "maker"
    (checkpoint,) = job.glob("inc-*/chk-*")
    places = [
        home,
        home / "empty",
        home / "savepoints",
        job,
        checkpoint,
        checkpoint / "_metadata",
        job / "inc-1" / "state",
        savepoint,
    ]
    before = sorted(home.rglob("*"))
    for place in places:
        with pytest.raises(RestoreError, match="Nothing was deleted"):
            dispose(str(place))
    (checkpoint / "_metadata").write_bytes(b"damaged")
    with pytest.raises(RestoreError, match="Nothing was deleted"):
        dispose(str(checkpoint))
    assert sorted(home.rglob("*")) == before
