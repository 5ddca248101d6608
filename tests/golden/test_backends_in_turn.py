"""A savepoint is the same whatever the backend: a program with every kind of state goes from one to the other through it."""

from __future__ import annotations

import os
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from firesteel.common.completable_future import CompletableFuture
from firesteel.common.storage import MemoryStorage, Storage
from firesteel.coordinator.completed import locate
from firesteel.coordinator.engine import EpochOrder, EpochResult
from firesteel.coordinator.savepoint_requests import Ending, SavepointRequests
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.state.chains import native_part
from tests.golden.everything import program
from tests.golden.test_golden_savepoints import KINDS, kinds
from tests.support.local_engine import DescribingEngine, LocalRun
from tests.support.running import PATIENCE_S, wait_until


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


class AsksOnItsWay(DescribingEngine):
    """For a savepoint to stop with, after some epochs. It goes on only when no checkpoint is on its way any more: otherwise the
    input could end before one that takes its time has made room for the savepoint."""

    savepoints: SavepointRequests
    target: str
    answer: CompletableFuture[str]
    epochs = 8

    def run_epoch(self, order: EpochOrder) -> EpochResult:
        if self.epochs <= 0:
            wait_until(lambda: all(each.name != "checkpoint" for each in threading.enumerate()), "the checkpoint")
        result = super().run_epoch(order)
        self.epochs -= 1
        if self.epochs == 0:
            self.answer = self.savepoints.ask(self.target, Ending.SUSPEND)
            wait_until(lambda: self.savepoints._waiting, "the request")
        return result


def run(env: StreamExecutionEnvironment, directory: str | Storage, target: Path | None = None) -> tuple[list[str], str]:
    """What it gives out, and its savepoint."""
    local = LocalRun(env, directory)
    local.results.wait_for_room = lambda cancelled: None  # type: ignore[method-assign]  # nobody reads them meanwhile
    engine: Any = local.engine
    if target is not None:
        engine.__class__ = AsksOnItsWay
        engine.savepoints, engine.target = local.job.savepoints, str(target)
    local.run()
    return local.collected(), engine.answer.result(PATIENCE_S) if target is not None else ""


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
