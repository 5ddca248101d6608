"""Records that several operators get: what one of them does to its own is nobody else's business."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from firesteel.common import Row
from firesteel.datastream import DataStream, OutputTag, ProcessFunction, StreamExecutionEnvironment
from firesteel.runtime.flow import Emitter
from firesteel.runtime.sharing import receivers
from firesteel.testing import GraphHarness

SIDE = OutputTag("side")


def environment() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)


def marked(record: Any) -> Any:
    """The record itself, changed."""
    if isinstance(record, Row):
        record[0] = -1
    elif isinstance(record, dict):
        record["m"] = "m"
    else:
        record.append("m")
    return record


def results(env: StreamExecutionEnvironment, *streams: DataStream, **options: Any) -> list[list[Any]]:
    with GraphHarness(env, collect=streams, **options) as harness:
        harness.run()
        return [harness.results(stream) for stream in streams]


@pytest.mark.parametrize("sizes", [None, 1])
@pytest.mark.parametrize("changing_first", [True, False])
@pytest.mark.parametrize(
    ("make", "changed"),
    [
        (lambda n: [n], lambda n: [n, "m"]),
        (lambda n: {"n": n}, lambda n: {"n": n, "m": "m"}),
        (Row, lambda n: Row(-1)),
    ],
)
def test_each_of_several_readers_has_records_of_its_own(
    make: Any, changed: Any, changing_first: bool, sizes: Any
) -> None:
    env = environment()
    stream = env.from_collection([1, 2]).map(make)
    if changing_first:
        changing, looking = stream.map(marked), stream.map(lambda record: record)
    else:
        looking, changing = stream.map(lambda record: record), stream.map(marked)
    again = stream.map(marked)
    assert results(env, changing, looking, again, epoch_records=sizes) == [
        [changed(1), changed(2)],
        [make(1), make(2)],
        [changed(1), changed(2)],
    ]


@pytest.mark.parametrize("changing_first", [True, False])
def test_a_reader_that_is_called_does_not_change_what_waits_to_be_sent_to_another(changing_first: bool) -> None:
    env = environment()
    stream = env.from_collection([1, 2]).map(lambda n: [n])
    if changing_first:
        changing, sent = stream.map(marked), stream.rebalance().map(list)
    else:
        sent, changing = stream.rebalance().map(list), stream.map(marked)
    assert results(env, changing, sent) == [[[1, "m"], [2, "m"]], [[1], [2]]]


class Twice(ProcessFunction):
    """Every record to the stream and, the same object, to a side output."""

    def process_element(self, value, ctx):  # type: ignore[no-untyped-def]
        record = [value]
        yield record
        yield SIDE, record


@pytest.mark.parametrize("which", ["main", "side"])
@pytest.mark.parametrize("sent", [False, True])
def test_the_stream_and_its_side_outputs_share_no_records(which: str, sent: bool) -> None:
    env = environment()
    main = env.from_collection([1, 2]).process(Twice())
    side = main.get_side_output(SIDE)
    changing, looking = (main, side) if which == "main" else (side, main)
    changed = changing.map(marked)
    seen = (looking.rebalance() if sent else looking).map(list)
    assert results(env, changed, seen) == [[[1, "m"], [2, "m"]], [[1], [2]]]


def test_with_object_reuse_records_are_shared_as_flink_shares_them() -> None:
    env = environment()
    env.get_config().enable_object_reuse()
    stream = env.from_collection([1, 2]).map(lambda n: [n])
    changing, looking = stream.map(marked), stream.map(list)
    assert results(env, changing, looking)[1] == [[1, "m"], [2, "m"]]


class Pushed:
    """A receiver that remembers the lists that it got."""

    def __init__(self) -> None:
        self.got: list[list[Any]] = []

    def push(self, values: list[Any], times: list[Any] | None) -> None:
        self.got.append(values)

    def advance(self, watermark: int) -> None: ...

    def idle(self, idle: bool) -> None: ...


def pushed(values: list[Any], direct: list[bool], kept: bool = False) -> list[bool]:
    """For each of the readers, whether it got the very objects."""
    readers = [Pushed() for _ in direct]
    emitter = Emitter([0, 0])
    for receiver in receivers(list(zip(readers, direct, strict=True)), kept):
        emitter.add(receiver)
    emitter.push(values, None)
    assert all(reader.got == [values] for reader in readers)
    return [reader.got[0][0] is values[0] for reader in readers]


CALLED, SENT = True, False


@pytest.mark.parametrize(
    ("direct", "kept", "shared"),
    [
        ([CALLED], False, [True]),
        ([SENT], False, [True]),
        ([SENT, SENT], True, [True, True]),
        ([CALLED, CALLED, CALLED], False, [False, False, True]),
        ([CALLED, SENT, CALLED], False, [False, True, False]),
        ([CALLED, CALLED, SENT], False, [False, False, True]),
        ([CALLED], True, [False]),
        ([CALLED, SENT], True, [False, True]),
    ],
)
def test_no_more_copies_are_made_than_are_needed(direct: list[bool], kept: bool, shared: list[bool]) -> None:
    assert pushed([[1], [2]], direct, kept) == shared


def test_what_nobody_can_change_is_not_copied() -> None:
    assert pushed([("a", (1, 2.5)), ("b", None)], [CALLED, CALLED, SENT], kept=True) == [True, True, True]


def test_what_cannot_be_pickled_is_shared_and_the_others_of_its_batch_are_not() -> None:
    lock = threading.Lock()
    first, second = Pushed(), Pushed()
    for values in ([[lock], [1]], [[1], [lock]]):
        (fan,) = receivers([(first, CALLED), (second, CALLED)], False)
        fan.push(values, None)
        assert first.got[-1] == values
        shared = [mine is theirs for mine, theirs in zip(first.got[-1], values, strict=True)]
        assert shared == [lock in value for value in values]


class Unreadable(Exception):
    """Can be pickled, and not be read again: its arguments are not those of its constructor."""

    def __init__(self, first: int, second: int) -> None:
        super().__init__(first)


def test_what_cannot_be_unpickled_is_shared() -> None:
    assert pushed([Unreadable(1, 2)], [CALLED, CALLED]) == [True, True]
