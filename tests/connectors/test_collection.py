from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.connectors.base import CHUNK, EnumeratorContext
from firesteel.connectors.collection import CollectionSource
from firesteel.errors import RestoreError
from tests.connectors.connector_reading import ReadingJob, read_in_any_way


@given(st.lists(st.integers() | st.text()), st.data())
def test_every_value_is_read_once_and_in_order(values: list[object], data: st.DataObject) -> None:
    assert read_in_any_way(CollectionSource(values), data, 10).records() == values


def test_only_the_first_subtask_reads() -> None:
    job = ReadingJob(CollectionSource("abc"), parallelism=3)
    assert [len(ranges) for ranges in job.enumerator.plan(10).ranges] == [1, 0, 0]


def test_long_collections_come_in_chunks() -> None:
    job = ReadingJob(CollectionSource(range(CHUNK * 2 + 1)))
    chunks = list(job.readers[0].read({"start": 0, "stop": CHUNK * 2 + 1}))
    assert list(map(len, chunks)) == [CHUNK, CHUNK, 1]


def test_an_empty_collection_is_finished_at_once() -> None:
    job = ReadingJob(CollectionSource([]))
    assert job.enumerator.finished()
    assert job.enumerator.progress() == 1.0


@pytest.mark.parametrize("other", [[1, 2], [1, 2, "3"], []])
def test_another_collection_is_refused(other: list[object]) -> None:
    state = CollectionSource([1, 2, 3]).create_enumerator(EnumeratorContext("numbers", 1)).snapshot()
    enumerator = CollectionSource(other).create_enumerator(EnumeratorContext("numbers", 1))
    with pytest.raises(RestoreError, match=r"'numbers'.*same collection.*another uid"):
        enumerator.restore(state)
