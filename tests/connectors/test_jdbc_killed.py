"""Deaths at every step: no row is lost, none is there twice, and no transaction is left in doubt."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.connectors.jdbc_killing import MODES, TABLE, in_doubt, numbers_sink, watch_connections
from tests.connectors.killing import HandRun, every_death, files_below, step
from tests.support.databases import Database

COUNT = 6


@pytest.fixture(autouse=True)
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    watch_connections(monkeypatch)
    yield
    step.kill_at()


@pytest.fixture
def numbers(database: Database) -> Database:
    database.run(TABLE)
    return database


class Runs:
    """One after the other over the same table, each of a job of its own."""

    def __init__(self, numbers: Database, root: Path, mode: str) -> None:
        self.numbers, self.root, self.mode = numbers, root, mode
        self.jobs = itertools.count(1)

    def make(self, count: int = COUNT, per_epoch: int = 2) -> HandRun:
        self.numbers.run("DELETE FROM numbers")
        self.directory = str(self.root / str(next(self.jobs)))
        sinks = {f"table of {self.directory}": numbers_sink(self.numbers, self.mode)}
        return HandRun(self.directory, sinks, count, per_epoch)

    def check(self, run: HandRun) -> None:
        assert self.numbers.numbers() == list(range(run.numbers)), f"after a death at {step.last!r}"
        assert in_doubt(self.numbers) == [], f"after a death at {step.last!r}"
        assert files_below(self.directory) == []


@pytest.mark.parametrize("mode", MODES)
def test_rows_are_there_exactly_once_whatever_step_is_the_last(numbers: Database, tmp_path: Path, mode: str) -> None:
    runs = Runs(numbers, tmp_path, mode)
    assert every_death(runs.make, runs.check) > 15


@pytest.mark.parametrize("mode", MODES)
@settings(
    max_examples=10,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # shrinking would take minutes, and the kills say it all
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(kills=st.lists(st.integers(1, 40), max_size=6), count=st.integers(0, 14), per_epoch=st.integers(1, 4))
def test_rows_are_there_exactly_once_however_often_the_job_dies(
    numbers: Database, tmp_path_factory: pytest.TempPathFactory, mode: str, kills: list[int], count: int, per_epoch: int
) -> None:
    runs = Runs(numbers, tmp_path_factory.mktemp("deaths"), mode)
    step.kill_at(*kills)
    runs.check(runs.make(count, per_epoch).run())


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "moment", ["jdbc-before-prepare", "pre-committed", "before the commit point", "after the commit point", "confirmed"]
)
def test_a_server_that_crashes_between_the_phases_loses_nothing(
    numbers: Database, tmp_path: Path, mode: str, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = Runs(numbers, tmp_path, mode)
    run = runs.make()
    crashed = []

    def crash(name: str, *details: object) -> None:
        if name == moment and not crashed:
            crashed.append(name)
            numbers.server.restart()

    for module in ("tests.connectors.killing.step", "firesteel.connectors.jdbc_prepared.crash_point"):
        monkeypatch.setattr(module, crash)
    try:
        run._run_incarnation()
    except Exception as error:
        if not getattr(error, "transient", False):
            raise
        run.run()
    runs.check(run)
    assert crashed or (moment, mode) == ("jdbc-before-prepare", "local transactions")
