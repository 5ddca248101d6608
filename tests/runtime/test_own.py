"""Batches that a slot sends to itself."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from firesteel.common import Row, WatermarkStrategy
from firesteel.datastream import MapFunction, RuntimeContext, StreamExecutionEnvironment
from firesteel.datastream.connectors.file_system import FileSource, ParquetColumnarRowInputFormat
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.graph.nodes import Collect
from firesteel.runtime import task
from firesteel.runtime.flow import Batch
from firesteel.runtime.own import OwnBatches, size_of
from firesteel.runtime.task import LevelOrder, SlotTask
from tests.support.local_engine import LocalRun
from tests.support.slicing import Sliced


@pytest.mark.parametrize("value", [None, True, 1, 1.5, "a", b"a", (), (1, "a"), ("a", (1, (2.5, None)))], ids=repr)
def test_what_nobody_can_change_stays(value: Any) -> None:
    assert size_of([value] * 5) is not None
    assert size_of([7, value, "x", (value, 7)]) is not None


@pytest.mark.parametrize("value", [[], {}, Row(1), (1, []), ("a", (1, ({},))), object(), date(2026, 1, 1)], ids=repr)
def test_everything_else_goes(value: Any) -> None:
    assert size_of([value]) is None
    assert size_of([1, (1, "a"), value]) is None


def test_sizes_are_those_of_all_fields() -> None:
    few, many = size_of([("a", 1)] * 1000), size_of([("a" * 1000, 1)] * 1000)
    assert few is not None and 50_000 < few < 300_000
    assert many is not None and 1_000_000 < many < 1_300_000


def test_batches_come_back_in_their_order_and_the_senders_lists_are_its_own() -> None:
    own = OwnBatches()
    values, times = [1, 2], [10, 20]
    assert own.keep(1, 5, values)
    assert own.keep(2, 7, [3])
    assert own.keep(1, 6, (values, times, [(1, 15)], True))
    values.clear()
    times.clear()
    assert list(own.take(1)) == [(5, [1, 2]), (6, ([1, 2], [10, 20], [(1, 15)], True))]
    assert list(own.take(1)) == []
    assert list(own.take(2)) == [(7, [3])]


def test_behind_a_batch_that_goes_all_others_of_its_edge_go() -> None:
    own = OwnBatches()
    assert own.keep(1, 5, ["a"])
    assert not own.keep(1, 5, [["changeable"]])
    assert not own.keep(1, 5, ["b"])
    assert own.keep(1, 6, ["c"])
    assert own.keep(2, 5, ["d"])  # what counts is the level that takes them
    assert list(own.take(1)) == [(5, ["a"]), (6, ["c"])]
    assert own.keep(1, 5, ["e"])


def test_what_stays_is_not_too_much() -> None:
    own = OwnBatches(10_000)
    assert not own.keep(1, 5, ["x" * 1000] * 10)
    batch = list(range(1000, 1300))
    assert size_of(batch) == 300 * 28
    assert own.keep(1, 6, batch)
    assert not own.keep(1, 6, batch)
    assert not own.keep(2, 7, batch)
    list(own.take(1))
    assert own.keep(1, 6, batch)


def test_partial_results_stay_if_nobody_can_change_them() -> None:
    own = OwnBatches()
    plain: Batch = ([], None, [(0, (0, ["k"], [(1, 2)], 3))], False)
    assert own.keep(1, 5, plain)
    assert list(own.take(1)) == [(5, plain)]
    assert not own.keep(1, 5, ([], None, [(0, (0, ["k"], [[1, 2]], 3))], False))


class Remembering(MapFunction):
    """Gives out lists that it keeps, and what has become of those before."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.kept: list[list[Any]] = []

    def map(self, value: int) -> list[Any]:
        self.kept.append([value, repr(self.kept)])
        return self.kept[-1]


def test_a_record_that_its_receiver_changes_is_not_changed_where_it_came_from(tmp_path: Path) -> None:
    """Also in the same slot: with a parallelism of 1 everything is."""
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    numbers = env.from_source(Sliced(NumberSequenceSource(1, 3), 1), WatermarkStrategy.no_watermarks(), "numbers")
    numbers.map(Remembering()).rebalance().map(_changed)._end(Collect(), "Collect")
    results = LocalRun(env, str(tmp_path)).run().collected()
    assert results == [[1, "[]", 0], [2, "[[1, '[]']]", 0], [3, repr([[1, "[]"], [2, "[[1, '[]']]"]]), 0]]


def _changed(record: list[Any]) -> list[Any]:
    record.append(0)
    return record


EVENTS: list[Any] = []
_keep = OwnBatches.keep


def seen(number: int) -> int:
    EVENTS.append(number)
    return number


def run_watched(monkeypatch: pytest.MonkeyPatch, directory: Path, levels: int = 2, sources: int = 1) -> list[Any]:
    """Numbers of each source through that many levels of one slot; with them, the epochs' levels as their turns come."""
    run_level = SlotTask.run_level

    def run(self: SlotTask, order: LevelOrder, *rest: Any) -> None:
        EVENTS.append(f"level {order.level}")
        run_level(self, order, *rest)

    monkeypatch.setattr(SlotTask, "run_level", run)
    EVENTS.clear()
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    first, *others = (
        env.from_source(Sliced(NumberSequenceSource(1, 6), 3), WatermarkStrategy.no_watermarks(), f"numbers {index}")
        for index in range(sources)
    )
    stream = first.union(*others)
    for _ in range(levels - 1):
        stream = stream.rebalance().map(seen)
    stream._end(Collect(), "Collect")
    assert sorted(LocalRun(env, str(directory)).run().collected()) == sorted([1, 2, 3, 4, 5, 6] * sources)
    return EVENTS[:]


def test_a_level_begins_with_what_stayed_while_the_rest_is_on_its_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = run_watched(monkeypatch, tmp_path)
    assert found[:10] == ["level 0", 1, 2, 3, "level 1", "level 0", 4, 5, 6, "level 1"]


def test_what_a_level_sends_before_its_turn_waits_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OwnBatches, "keep", lambda self, level, *batch: level == 1 and _keep(self, level, *batch))
    found = run_watched(monkeypatch, tmp_path, levels=3)
    assert found[:9] == ["level 0", 1, 2, 3, "level 1", "level 2", 1, 2, 3], "rows of level 1 have come to level 2"


def test_it_does_not_go_on_once_too_much_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task, "MAX_HELD_BYTES", 1)
    found = run_watched(monkeypatch, tmp_path, sources=2)
    assert found[:8] == ["level 0", 1, 2, 3, "level 1", 1, 2, 3]


def test_what_nobody_else_has_stays_whatever_it_is() -> None:
    own = OwnBatches(100_000)
    assert own.keep(1, 5, [["changeable"], Row(1)], alone=True)
    assert list(own.take(1)) == [(5, [["changeable"], Row(1)])]
    assert not own.keep(1, 5, [["x" * 1000]] * 50, alone=True), "too much"
    assert not own.keep(2, 5, [lambda: 0], alone=True), "whoever sends it says that it cannot be pickled"


@pytest.mark.parametrize("readers", [1, 2])
def test_records_of_a_source_that_makes_them_anew_stay_if_only_one_reads_them(
    readers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stayed: list[bool] = []
    monkeypatch.setattr(OwnBatches, "keep", lambda *batch: stayed.append(_keep(*batch)) or stayed[-1])
    pyarrow.parquet.write_table(pyarrow.table({"id": [1, 2], "tags": [["a"], ["b"]]}), tmp_path / "in.parquet")
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    source = FileSource.for_bulk_file_format(ParquetColumnarRowInputFormat(), str(tmp_path / "in.parquet")).build()
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "rows")
    for _ in range(readers):
        stream.rebalance().map(lambda row: _changed(row[1]))._end(Collect(), "Collect")
    results = LocalRun(env, str(tmp_path / "checkpoints")).run().collected()
    assert sorted(results) == sorted([["a", 0], ["b", 0]] * readers)
    assert any(stayed) == (readers == 1)
