"""Deaths at every step of the protocol: no record is lost, none is there twice, and nothing is left over."""

from __future__ import annotations

import os
import pickle
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firesteel.common import Encoder
from firesteel.connectors.base import Sink
from firesteel.datastream.connectors.file_system import BucketAssigner, FileSink
from tests.connectors.killing import HandRun, every_death, files_below, step, watch
from tests.connectors.toy_store import LogSink, OneTransactionLogSink, Store, StoreSink, UpsertingLogSink

NUMBERS = 11


@pytest.fixture(autouse=True)
def watched(monkeypatch: pytest.MonkeyPatch) -> None:
    watch(monkeypatch)
    step.kill_at()


class Place:
    """Fresh directories, one for each run."""

    def __init__(self, root: Path) -> None:
        self.root, self.runs = root, 0
        self.job = self.out = self.store = ""

    def fresh(self) -> Place:
        self.runs += 1
        base = self.root / str(self.runs)
        self.job, self.out, self.store = str(base / "job"), str(base / "out"), str(base / "store.db")
        os.makedirs(self.job)
        return self


class ByParity(BucketAssigner):
    def get_bucket_id(self, element: int, context: BucketAssigner.Context) -> str:
        return f"parity={element % 2}/third={element % 3}"


def file_sink(path: str) -> Sink:
    return FileSink.for_row_format(path, Encoder.simple_string_encoder()).with_bucket_assigner(ByParity()).build()


def lines(path: str) -> list[int]:
    visible = [file for file in files_below(path) if not os.path.basename(file).startswith(".")]
    return sorted(int(line) for file in visible for line in Path(file).read_text().splitlines())


def shipped(sink: Sink) -> Sink:
    return pickle.loads(pickle.dumps(sink))  # type: ignore[no-any-return]


def test_a_two_phase_commit_sink_is_exactly_once_whatever_step_is_the_last(tmp_path: Path) -> None:
    place = Place(tmp_path)

    def make() -> HandRun:
        place.fresh()
        return HandRun(place.job, {"store": shipped(StoreSink(place.store))}, NUMBERS)

    def check(run: HandRun) -> None:
        store = Store(place.store)
        assert store.visible() == list(range(NUMBERS))
        assert store.violations() == []
        assert store.unresolved() == []
        assert files_below(place.job) == []

    assert every_death(make, check) > 80


def test_a_write_ahead_sink_with_notes_repeats_only_what_was_being_sent(tmp_path: Path) -> None:
    place = Place(tmp_path)

    def make() -> HandRun:
        place.fresh()
        return HandRun(place.job, {"store": shipped(LogSink(place.store))}, NUMBERS)

    def check(run: HandRun) -> None:
        found = Counter(Store(place.store).visible())
        assert set(found) == set(range(NUMBERS))
        sent_and_not_noted = step.last in ("after send_values", "wal-after-send", "before the note")
        assert bool(found - Counter(range(NUMBERS))) == sent_and_not_noted
        assert files_below(place.job) == []

    assert every_death(make, check) > 40


def test_a_write_ahead_sink_whose_values_and_notes_are_one_transaction_is_exactly_once_whatever_step_is_the_last(
    tmp_path: Path,
) -> None:
    place = Place(tmp_path)

    def make() -> HandRun:
        place.fresh()
        return HandRun(place.job, {"store": shipped(OneTransactionLogSink(place.store))}, NUMBERS)

    def check(run: HandRun) -> None:
        assert Store(place.store).visible() == list(range(NUMBERS))
        assert files_below(place.job) == []

    assert every_death(make, check) > 40


@pytest.mark.parametrize("notes", [True, False])
def test_a_write_ahead_sink_that_upserts_is_exactly_once_whatever_step_is_the_last(tmp_path: Path, notes: bool) -> None:
    place = Place(tmp_path)

    def make() -> HandRun:
        place.fresh()
        return HandRun(place.job, {"store": shipped(UpsertingLogSink(place.store, notes))}, NUMBERS)

    def check(run: HandRun) -> None:
        assert Store(place.store).visible() == list(range(NUMBERS))
        assert files_below(place.job) == []

    assert every_death(make, check) > 40


def test_a_file_sink_with_buckets_is_exactly_once_whatever_step_is_the_last(tmp_path: Path) -> None:
    place = Place(tmp_path)

    def make() -> HandRun:
        place.fresh()
        return HandRun(place.job, {"files": shipped(file_sink(place.out))}, NUMBERS)

    def check(run: HandRun) -> None:
        assert lines(place.out) == list(range(NUMBERS))
        assert not [file for file in files_below(place.out) if os.path.basename(file).startswith(".")]

    assert every_death(make, check) > 20


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kills=st.lists(st.integers(1, 150), max_size=8), numbers=st.integers(0, 14), per_epoch=st.integers(1, 4))
def test_two_sinks_show_no_record_twice_however_often_and_wherever_the_job_dies(
    tmp_path_factory: pytest.TempPathFactory, kills: list[int], numbers: int, per_epoch: int
) -> None:
    place = Place(tmp_path_factory.mktemp("deaths")).fresh()
    sinks = {"store": shipped(StoreSink(place.store)), "files": shipped(file_sink(place.out))}
    step.kill_at(*kills)
    HandRun(place.job, sinks, numbers, per_epoch).run()
    store = Store(place.store)
    assert store.visible() == lines(place.out) == list(range(numbers))
    assert (store.violations(), store.unresolved(), files_below(place.job)) == ([], [], [])
