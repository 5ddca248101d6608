"""Runs an example as its user would, but in this process: on the tests' engine, or on one Spark for all of them."""

from __future__ import annotations

import re
import runpy
import sys
import tempfile
from pathlib import Path

import pytest

from firesteel.common.completable_future import CompletableFuture
from firesteel.coordinator.collecting import CollectedResults
from firesteel.coordinator.job import Job
from firesteel.coordinator.lineage import JobDirectory
from firesteel.coordinator.progress import Progress
from firesteel.datastream.collecting import END
from firesteel.graph.plan import JobPlan
from firesteel.graph.settings import JobSettings
from tests.support.local_engine import DescribingEngine

REPOSITORY = Path(__file__).resolve().parents[2]
EXAMPLES = REPOSITORY / "examples"

SUBTASK = re.compile(r"^(?:(\w+):)?\d+(?(1)(> )|> )")


class LocalClient:
    """Stands for the client of a job, which has ended by the time it is there."""

    def __init__(self, plan: JobPlan, settings: JobSettings) -> None:
        collected, engine = CollectedResults(), DescribingEngine(plan)
        self.results = collected.queue
        self.result: CompletableFuture[None] = CompletableFuture()
        with tempfile.TemporaryDirectory() as directory:
            where = JobDirectory.open(directory, settings.name)
            progress = Progress(plan, settings.name, shown=False)
            self.job = Job(plan, settings, where, engine, collected, progress, lambda stream, text: None)
            try:
                self.job.run()
            except BaseException as error:  # noqa: BLE001  it reaches whoever waits for the result
                self.result.set_exception(error)
            else:
                self.result.set_result(None)
            finally:
                engine.close()
        self.results.put(END)

    def get_job_execution_result(self) -> CompletableFuture[None]:
        return self.result

    def cancel(self) -> CompletableFuture[None]:
        return CompletableFuture.completed(None)


class Runner:
    """Runs examples and catches what they print."""

    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._capsys, self._monkeypatch = capsys, monkeypatch

    def run(self, example: str, *arguments: str) -> list[str]:
        """The lines that it prints: `2> a` becomes `a`, and `sum:2> a` becomes `sum> a`."""
        self._monkeypatch.setattr(sys, "argv", [example, *arguments])
        self._capsys.readouterr()
        runpy.run_path(str(EXAMPLES / example), run_name="__main__")
        return [SUBTASK.sub(r"\1\2", line) for line in self._capsys.readouterr().out.splitlines()]


def of(what: str, lines: list[str]) -> list[str]:
    """The lines with this in them, in their order. Between keys there is no order, so tests look at one at a time."""
    return [line for line in lines if what in line]
