"""A slot's chain stays short although compacting processes are killed, and it says once what keeps one from working."""

from __future__ import annotations

import os
import pickle
import signal
from pathlib import Path
from typing import Any

import pytest

from firesteel.common.storage import LocalStorage
from firesteel.runtime.compacting import COMPACT_FILES, Compactor
from firesteel.state.compaction import Compaction
from firesteel.state.files import Delta, StateFile, StateFileWriter
from tests.support.waiting import PATIENCE_S


class Chain:
    """A chain of state files that grows, its compactor, and the time."""

    def __init__(self, directory: Path, files: int = COMPACT_FILES) -> None:
        self.directory, self.now = directory, 100.0
        (directory / "state").mkdir()
        self.compactor = Compactor(LocalStorage(str(directory)), "state", 3, pickle.dumps({}), clock=lambda: self.now)
        self.files = [self.write(number) for number in range(files)]

    def write(self, number: int) -> dict[str, Any]:
        writer = StateFileWriter(0, number)
        writer.add(Delta("op", "last", "value", 1, [number % 5], [number], []))
        data, checksum = writer.finish()
        (self.directory / f"d{number}").write_bytes(data)
        return writer.handle(f"d{number}", data, checksum)

    def started(self) -> Compaction | None:
        assert self.compactor.shortened(self.files) == self.files
        return self.compactor._running

    def ended(self, compaction: Compaction) -> list[dict[str, Any]]:
        compaction._process.wait(PATIENCE_S)
        return self.compactor.shortened(self.files)

    def values(self, chain: list[dict[str, Any]]) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for handle in chain:
            with StateFile(handle["file"], handle["checksum"], LocalStorage(str(self.directory))) as file:
                for delta in file.deltas():
                    found.update(zip(delta.keys, delta.values, strict=True))
        return found


def test_a_killed_compaction_is_tried_again_after_a_while(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = Chain(tmp_path)
    with monkeypatch.context() as patched:
        patched.setenv("FIRESTEEL_CRASH", "merging-state:1:wait-600")
        first = chain.started()
    assert first is not None
    os.kill(first._process.pid, signal.SIGKILL)
    assert chain.ended(first) == chain.files  # they are as good as before
    said = capsys.readouterr().err
    assert "slot 3 failed: it was killed by SIGKILL" in said and "tried again in 1 s" in said
    assert chain.started() is None
    chain.now += 1
    second = chain.started()
    assert second is not None
    (compacted,) = chain.ended(second)
    assert chain.values([compacted]) == chain.values(chain.files)
    assert capsys.readouterr().err == ""


def test_one_that_is_killed_before_it_reads_its_order_is_no_reason_to_decline_a_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", "/bin/false")
    chain = Chain(tmp_path)
    chain.files = [{**handle, "comment": "x" * 100_000} for handle in chain.files]  # more than a pipe holds
    compaction = chain.started()
    assert compaction is not None
    assert chain.ended(compaction) == chain.files
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    chain.now += 1
    assert chain.started() is None


def test_a_broken_file_is_named_once_and_looked_at_less_and_less_often(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chain = Chain(tmp_path)
    intact = (tmp_path / "d2").read_bytes()
    (tmp_path / "d2").write_bytes(intact[:-1])
    for pause in (1, 2, 4):
        compaction = chain.started()
        assert compaction is not None
        assert chain.ended(compaction) == chain.files
        chain.now += pause - 0.1
        assert chain.started() is None
        chain.now += 0.1
        chain.files.append(chain.write(len(chain.files)))
    said = capsys.readouterr().err
    assert said.count("it ended with exit status 1") == 1 and str(tmp_path / "d2") in said
    (tmp_path / "d2").write_bytes(intact)
    compaction = chain.started()
    assert compaction is not None
    assert len(chain.ended(compaction)) == 1
    assert len(list(tmp_path.glob("state/slot-3-base-*"))) == 1  # nothing is left of those that failed


def test_a_compaction_that_nobody_used_is_removed_at_the_end(tmp_path: Path) -> None:
    chain = Chain(tmp_path)
    compaction = chain.started()
    assert compaction is not None
    compaction._process.wait(PATIENCE_S)
    assert len(list(tmp_path.glob("state/slot-3-base-*"))) == 1
    chain.compactor.close()
    assert list(tmp_path.glob("state/*")) == []


def test_a_signal_that_ends_the_slot_does_not_wait_for_whom_it_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When Spark's JVM dies, a slot is told to end by the driver and by a signal, at the same time."""
    sleeper = tmp_path / "sleeper"
    sleeper.write_text("#!/bin/sh\nexec sleep 1000\n")
    sleeper.chmod(0o700)
    monkeypatch.setattr("sys.executable", str(sleeper))
    chain = Chain(tmp_path)
    compaction = chain.started()
    assert compaction is not None
    before = signal.signal(signal.SIGALRM, lambda *_: chain.compactor.kill())
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        assert compaction._process.wait() == -signal.SIGKILL
    finally:
        signal.signal(signal.SIGALRM, before)
