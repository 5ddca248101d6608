"""What a person sees of a job: that a large restore goes on, too."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from firesteel.coordinator import progress
from firesteel.coordinator.lineage import JobDirectory
from firesteel.coordinator.metadata import CheckpointMetadata
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from tests.support.local_engine import LocalRun


def program() -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment().set_parallelism(2).enable_checkpointing(5)
    numbers = env.from_source(NumberSequenceSource(1, 30_000), source_name="numbers").uid("numbers")
    numbers.key_by(lambda n: n % 100).reduce(lambda a, b: a + b).uid("totals").print()
    return env


def finished(tmp_path: Path) -> CheckpointMetadata:
    LocalRun(program(), str(tmp_path)).run()
    latest = JobDirectory.open(str(tmp_path), "job").latest()
    assert latest is not None
    return latest.metadata


def test_a_long_restore_shows_how_far_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now[0]))
    state = [[{"file": "a", "size": 6_000_000}], [{"file": "b", "size": 2_000_000}]]
    metadata = replace(finished(tmp_path), checkpoint=7, state=state)
    shown = io.StringIO()
    line = progress.Progress(program().plan(), "job", True, shown)
    line.restore(metadata)
    now[0] = 0.5
    line.restoring(1_000_000)
    now[0] = 1.5
    line.restoring(1_000_000)
    now[0] = 4.0
    line.restoring(6_000_000)
    line.restored(4.2)
    assert shown.getvalue().splitlines() == [
        "[job] restoring checkpoint 7: 2.0 of 8.0 MB",
        "[job] restoring checkpoint 7: 8.0 of 8.0 MB",
        "[job] restored checkpoint 7: 8.0 MB in 4.2 s, slots' start included",
    ]


def test_a_job_tells_when_it_restores_and_how_long_that_took(tmp_path: Path) -> None:
    finished(tmp_path)
    again = LocalRun(program(), str(tmp_path))
    took: list[float] = []
    again.progress.restored = took.append  # type: ignore[method-assign]
    again.run()
    assert len(took) == 1
