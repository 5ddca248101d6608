"""Damaged, incomplete, newer and foreign checkpoint directories: the job refuses, names the file, says what to do, and
writes nothing."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from xxhash import xxh3_64_hexdigest

from firesteel.coordinator.lineage import JobDirectory
from firesteel.errors import RestoreError
from firesteel.state.files import StateFile
from tests.faults.jvm import java_options
from tests.faults.supervisor import KEYS, PATIENCE_S, RATE, RECORDS, REPOSITORY, Arena, end_session

ADVICE = ("restore", "copy", "move", "install", "another", "use ", "give ")
"""A message that helps has one of these in it."""


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    """A job that was killed twice, with two retained checkpoints: its directory has something of everything."""
    arena = Arena(tmp_path_factory.mktemp("killed"))
    try:
        arena.start_and_crash("after-drop:3", retained=2)
        arena.start_and_crash("recovery-after-sweep")
        yield arena
    finally:
        arena.close()


@dataclass
class Case:
    """A copy of the killed job's directory, to be damaged."""

    home: Path

    @property
    def job(self) -> Path:
        return self.home / "checkpoints" / "sensor"

    @property
    def out(self) -> Path:
        return self.home / "out"

    def newest(self) -> Path:
        return max(self.job.glob("inc-*/chk-*"), key=lambda path: int(path.name[4:]))

    def state_file(self) -> Path:
        """The last delta of slot 0."""
        return self.job / Arena.metadata(self.newest())["state"][0][-1]["file"]

    def start_file(self) -> Path:
        return self.job / "inc-2" / "_start"


def _copy(killed: Arena, home: Path) -> Case:
    shutil.copytree(killed.checkpoints, home / "checkpoints")
    return Case(home)


def _flip(path: Path, position: int, bit: int = 0) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1 << bit
    path.write_bytes(data)


Damage = Callable[[Case], Path]  # returns the file that the error has to name


def _flipped_metadata(case: Case) -> Path:
    path = case.newest() / "_metadata"
    _flip(path, path.stat().st_size // 2)
    return path


def _flipped_state(part: float) -> Damage:
    def damage(case: Case) -> Path:
        path = case.state_file()
        _flip(path, int((path.stat().st_size - 1) * part))
        return path

    return damage


def _flipped_job(case: Case) -> Path:
    _flip(case.job / "_job", 3)
    return case.job / "_job"


def _flipped_start(case: Case) -> Path:
    """The bit that makes it name the checkpoint before the one it started from."""
    path = case.start_file()
    text = path.read_bytes()
    older, newer = sorted(case.job.glob("inc-*/chk-*"), key=lambda found: int(found.name[4:]))[-2:]
    path.write_bytes(text.replace(newer.name.encode(), older.name.encode()))
    assert path.read_bytes() != text
    return path


def _empty_start(case: Case) -> Path:
    case.start_file().write_bytes(b"{")
    return case.start_file()


def _missing_state(case: Case) -> Path:
    path = case.state_file()
    path.unlink()
    return path


def _torn_state(case: Case) -> Path:
    path = case.state_file()
    os.truncate(path, path.stat().st_size - 9)
    return path


def _missing_metadata(case: Case) -> Path:
    path = case.newest() / "_metadata"
    path.unlink()
    return path


def _missing_job(case: Case) -> Path:
    (case.job / "_job").unlink()
    return case.job


def _rewrite(path: Path, version: int = 1, **changes: str) -> None:
    """Another content or format under a checksum that fits."""
    head, body = path.read_bytes().split(b"\n", 1)
    body = json.dumps({**json.loads(body), **changes}).encode()
    kind = head.split(b" ")[0].decode()
    path.write_bytes(f"{kind} {version} {xxh3_64_hexdigest(body)}\n".encode() + body)


def _newer_metadata(case: Case) -> Path:
    _rewrite(case.newest() / "_metadata", version=99)
    return case.newest() / "_metadata"


def _newer_job(case: Case) -> Path:
    _rewrite(case.job / "_job", version=99)
    return case.job


def _newer_state(case: Case) -> Path:
    path = case.state_file()
    data = path.read_bytes()
    path.write_bytes(data[:8] + struct.pack(">H", 2) + data[10:])
    return path


def _job_of_another_name(case: Case) -> Path:
    _rewrite(case.job / "_job", job_name="billing")
    return case.job


def _job_of_another_id(case: Case) -> Path:
    _rewrite(case.job / "_job", job_id="0" * 32)
    return case.newest()


DAMAGES: dict[str, Damage] = {
    "a flipped bit in _metadata": _flipped_metadata,
    "a flipped bit in a state file's header": _flipped_state(0.0),
    "a flipped bit in a state file's first quarter": _flipped_state(0.25),
    "a flipped bit in a state file's middle": _flipped_state(0.5),
    "a flipped bit in a state file's end": _flipped_state(1.0),
    "a flipped bit in _job": _flipped_job,
    "a _start that names an older checkpoint": _flipped_start,
    "a broken _start": _empty_start,
    "a missing state file": _missing_state,
    "a torn state file": _torn_state,
    "a missing _metadata": _missing_metadata,
    "a missing _job": _missing_job,
    "a newer _metadata": _newer_metadata,
    "a newer _job": _newer_job,
    "a newer state file": _newer_state,
    "the directory of a job of another name": _job_of_another_name,
    "the directory of a job of another id": _job_of_another_id,
}


@pytest.fixture(scope="module")
def refusals(killed: Arena, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Case, Path, dict[str, str]]]:
    """For every damage, what a start of the job said to it."""
    cases = {}
    for name, damage in DAMAGES.items():
        case = _copy(killed, tmp_path_factory.mktemp("case"))
        cases[name] = (case, damage(case))
    common = f"--records {RECORDS} --keys {KEYS} --rate {RATE} --retained 2".split()
    orders = [
        ["--out", str(case.out), "--checkpoints", str(case.home / "checkpoints"), *common] for case, _ in cases.values()
    ]
    starter = subprocess.Popen(
        [sys.executable, str(REPOSITORY / "tests/faults/jobs/many_starts_job.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={
            **os.environ,
            "PYTHONPATH": str(REPOSITORY),
            "TMPDIR": str(killed.tmp),
            "JAVA_TOOL_OPTIONS": java_options(),
        },
        start_new_session=True,
    )
    try:
        answer, complaint = starter.communicate(json.dumps(orders).encode(), timeout=2 * PATIENCE_S)
    finally:
        end_session(starter)
    assert starter.returncode == 0, complaint.decode()
    outcomes = json.loads(answer)
    return {name: (*case, outcome) for (name, case), outcome in zip(cases.items(), outcomes, strict=True)}


@pytest.mark.parametrize("damage", DAMAGES)
def test_the_job_refuses_and_says_what_to_do(
    refusals: dict[str, tuple[Case, Path, dict[str, str]]], damage: str
) -> None:
    case, culprit, outcome = refusals[damage]
    assert outcome["kind"] == "RestoreError", outcome
    assert str(culprit) in outcome["message"]
    assert any(word in outcome["message"].lower() for word in ADVICE), outcome["message"]
    assert [path for path in case.out.rglob("*") if path.is_file()] == []


def test_a_refused_job_exits_with_an_error(killed: Arena, tmp_path: Path) -> None:
    case = _copy(killed, tmp_path)
    _newer_job(case)
    driver = killed.start(out=case.out, checkpoints=case.home / "checkpoints")
    assert driver.wait() > 0
    assert "install the firesteel that wrote it" in driver.said()


def _restore(case: Case) -> None:
    """What the engine reads on a restart, without Spark."""
    start = JobDirectory.open(str(case.home / "checkpoints"), "sensor").claim().start
    assert start is not None
    for chain in start.metadata.state:
        for handle in chain:
            with StateFile(str(case.job / handle["file"]), handle["checksum"]) as file:
                list(file.deltas())


@pytest.mark.parametrize("kind", ["_job", "_start", "_metadata", "state"])
def test_no_flipped_bit_goes_unnoticed(
    killed: Arena, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # thousands of claims, and no power cut between them
    case = _copy(killed, tmp_path)
    _restore(case)
    path = {
        "_job": case.job / "_job",
        "_start": max(case.job.glob("inc-*"), key=lambda found: int(found.name[4:])) / "_start",
        "_metadata": case.newest() / "_metadata",
        "state": case.state_file(),
    }[kind]
    intact = path.read_bytes()
    unnoticed = []
    for position in range(len(intact)):
        for bit in range(8) if position < 200 else [position % 8]:  # all bits of what comes first: magic and format
            _flip(path, position, bit)
            try:
                _restore(case)
            except RestoreError as refusal:
                if str(path) not in str(refusal):
                    unnoticed.append((position, bit, "the file is not named", str(refusal)[:300]))
            else:
                unnoticed.append((position, bit, "accepted", path.read_bytes()[max(0, position - 20) :][:40]))
            for newer in case.job.glob("inc-*"):  # the claims of this loop
                if int(newer.name[4:]) > 3:
                    shutil.rmtree(newer)
            path.write_bytes(intact)
    assert unnoticed == []
