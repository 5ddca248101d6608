"""A savepoint is the same whatever the backend: a program with every kind of state goes from one to the other through it."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from firesteel.common.storage import MemoryStorage, Storage
from firesteel.coordinator.completed import locate
from firesteel.coordinator.savepoint_requests import Ending
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.state.chains import native_part
from tests.golden.everything import program
from tests.golden.test_golden_savepoints import KINDS, kinds
from tests.support.local_engine import LocalRun
from tests.support.waiting import PATIENCE_S


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def run(env: StreamExecutionEnvironment, directory: str | Storage, target: Path | None = None) -> tuple[list[str], str]:
    """What it gives out, and its savepoint."""
    local = LocalRun(env, directory).unread()
    if target is None:
        return local.run().collected(), ""
    local.asking(target, Ending.SUSPEND).run()
    return local.collected(), local.answer.result(PATIENCE_S)


@pytest.fixture(scope="module")
def uninterrupted() -> Counter[str]:
    return Counter(run(program(), MemoryStorage())[0])


@pytest.mark.parametrize("interval", [1, None])
@pytest.mark.parametrize("first_in_rocksdb", [True, False])
def test_state_goes_from_one_backend_to_the_other_and_back(
    interval: int | None, first_in_rocksdb: bool, uninterrupted: Counter[str], tmp_path: Path
) -> None:
    found, saved, start = Counter[str](), set[str](), None
    for round_, parallelism in enumerate((2, 3, 1, 1, 2)):
        rocksdb = (round_ % 2 == 0) == first_in_rocksdb or round_ == 3  # once without a change
        env = program(start, parallelism, rocksdb=rocksdb, interval=interval)
        given_out, start = run(env, str(tmp_path / f"checkpoints-{round_}"), tmp_path / "savepoints")
        found.update(given_out)
        saved |= kinds(Path(start))
        assert not any(map(native_part, locate(start).metadata.state))
    assert saved >= KINDS  # what waits for windows is in them since the second time
    found.update(run(program(start, 2, rocksdb=not first_in_rocksdb), str(tmp_path / "last"))[0])
    assert found == uninterrupted
