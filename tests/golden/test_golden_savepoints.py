"""Savepoints that older versions wrote are restored, and go on as if it had been yesterday."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from firesteel.coordinator.completed import locate
from firesteel.coordinator.metadata import encode
from firesteel.state.files import VERSION, StateFile
from tests.golden.everything import rest_of

HERE = Path(__file__).parent
VERSIONS = sorted(path.name for path in HERE.glob("v*"))
ADVICE = "formats have changed: python -m tests.golden.everything tests/golden/v<next number>"
KINDS = {
    *("value", "value+ttl", "list", "list+ttl", "map", "map+ttl", "reducing", "aggregating", "timers", "subtask"),
    *("operator-list", "operator-union", "raw", "broadcast", "aggregating+windows", "reducing+windows"),
}


def kinds(savepoint: Path) -> set[str]:
    found = locate(str(savepoint))
    handles = [handle for chain in found.metadata.state for handle in chain]
    kinds = set()
    for handle in handles:
        with StateFile(handle["file"], handle["checksum"], found.storage) as file:
            file.verify()
            kinds |= {state["kind"] for state in file.footer["states"]}
    return kinds


def test_the_formats_of_today_have_a_golden_savepoint() -> None:
    savepoint = HERE / VERSIONS[-1] / "savepoint"
    written, today = (savepoint / "_metadata").read_bytes(), encode(locate(str(savepoint)).metadata)
    assert written.split()[:2] == today.split()[:2], ADVICE
    for file in savepoint.glob("*.state"):
        assert int.from_bytes(file.read_bytes()[8:10], "big") == VERSION, ADVICE


def test_it_has_every_kind_of_state() -> None:
    assert kinds(HERE / VERSIONS[-1] / "savepoint") >= KINDS


@pytest.mark.parametrize(("parallelism", "rocksdb"), [(2, False), (1, False), (3, False), (2, True), (3, True)])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_job_goes_on_from_it(version: str, parallelism: int, rocksdb: bool, tmp_path: Path) -> None:
    savepoint = tmp_path / "moved"
    shutil.copytree(HERE / version / "savepoint", savepoint)
    assert rest_of(savepoint, parallelism, rocksdb=rocksdb) == (HERE / version / "rest.txt").read_text().splitlines()
