"""Watermarks, timestamps and batches on their way between operators."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.common import Duration, WatermarkStrategy
from firesteel.common.watermark_strategy import WatermarkGenerator
from firesteel.graph.keys import KeyGroups
from firesteel.graph.nodes import Map, Partitioning
from firesteel.graph.plan import PlannedEdge, PlannedOperator
from firesteel.runtime.edges import create_exchange
from firesteel.runtime.exchange import BATCH_RECORDS, Exchange, receive
from firesteel.runtime.failures import OperatorFailure
from firesteel.runtime.flow import MAX_WATERMARK, MIN_WATERMARK, Emitter, Gate
from firesteel.runtime.own import MAX_BYTES, OwnBatches
from firesteel.runtime.timestamps import WATERMARK_RECORDS, Timestamper
from firesteel.runtime.wire import ROW


class Recorder:
    """A receiver that remembers everything, one record at a time."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def push(self, values: list[Any], times: list[Any] | None) -> None:
        self.seen += [(value, None if times is None else times[i]) for i, value in enumerate(values)]

    def advance(self, watermark: int) -> None:
        self.seen.append(("watermark", watermark))

    def idle(self, idle: bool) -> None:
        self.seen.append(("idle", idle))


def operator(number: int, parallelism: int) -> PlannedOperator:
    return PlannedOperator(number, f"op-{number}", f"op {number}", Map(None), number, parallelism, 128, "here:1", ())


def test_an_operators_watermark_is_the_minimum_of_its_channels_and_never_goes_back() -> None:
    seen: list[int] = []
    gate = Gate(seen.append, lambda idle: None)
    first, second = gate.channel("a", print), gate.channel("b", print)
    first.advance(10)
    assert seen == []
    second.advance(5)
    second.advance(20)
    first.advance(7)  # behind what it said before: ignored
    assert seen == [5, 10]


def test_an_idle_channel_holds_nobody_up_and_comes_back_without_turning_time_back() -> None:
    seen: list[int] = []
    idle: list[bool] = []
    gate = Gate(seen.append, idle.append)
    first, second = gate.channel("a", print), gate.channel("b", print)
    first.advance(10)
    second.idle(True)
    assert seen == [10]
    second.idle(False)
    second.advance(3)
    assert seen == [10]
    first.idle(True)
    second.idle(True)
    assert idle == [True]
    second.idle(False)
    assert idle == [True, False]


def test_a_gates_watermarks_survive_a_snapshot() -> None:
    seen: list[int] = []
    gate = Gate(lambda watermark: None, lambda idle: None)
    first, second = gate.channel("a", print), gate.channel("b", print)
    first.advance(10)
    second.advance(5)
    again = Gate(seen.append, lambda idle: None)
    first, second = again.channel("a", print), again.channel("b", print)
    again.restore(pickle.loads(pickle.dumps(gate.snapshot())))
    assert again.watermark == 5
    second.advance(30)
    assert seen == [10]


ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("push"), st.integers(1, 300)),
        st.tuples(st.just("timed"), st.integers(1, 300)),
        st.tuples(st.just("changeable"), st.integers(1, 300)),
        st.tuples(st.just("advance"), st.just(0)),
        st.tuples(st.just("flush"), st.just(0)),
    ),
    max_size=30,
)


class Changeable(int):
    """A number that one may give attributes."""


@given(
    actions=ACTIONS,
    partitioning=st.sampled_from(list(Partitioning)),
    parallelism=st.integers(1, 4),
    room=st.sampled_from((0, 20_000, MAX_BYTES)),
)
def test_every_target_gets_its_records_and_all_watermarks_in_the_order_they_were_written(
    actions: list[tuple[str, int]], partitioning: Partitioning, parallelism: int, room: int
) -> None:
    own = OwnBatches(room)
    upstream, downstream = operator(0, parallelism), operator(1, parallelism)
    edge = PlannedEdge(0, 0, 1, partitioning, False)
    rows: list[tuple[int, bytes]] = []
    exchange = create_exchange(
        edge,
        upstream,
        downstream,
        0,
        lambda target, payload: rows.append((target, payload)),
        own,
        lambda value: value,
        lambda key, count: key % count,
        KeyGroups(128),
    )
    written: list[Any] = []
    number = watermark = 0
    for action, count in actions:
        if action in ("push", "timed", "changeable"):
            values = list(map(Changeable if action == "changeable" else int, range(number, number + count)))
            times = [value * 10 for value in values] if action == "timed" else None
            exchange.push(values, times)
            written += [(value, value * 10 if times else None) for value in values]
            number += count
        elif action == "advance":
            watermark = number * 10
            exchange.advance(watermark)
            written.append(("watermark", watermark))
        else:
            exchange.flush()
    exchange.flush()
    targets = edge.targets(0, parallelism, parallelism)
    received = {target: Recorder() for target in targets}
    for _, batch in own.take(1):
        receive(batch, received[0])
    for target, payload in rows:
        assert ROW.unpack_from(payload) == (1, 0, 0)
        receive(pickle.loads(payload[ROW.size :]), received[target])
    copies = len(targets) if partitioning is Partitioning.BROADCAST else 1
    records = [item for r in received.values() for item in r.seen if item[0] not in ("watermark", "idle")]
    assert sorted(records, key=str) == sorted([i for i in written if i[0] != "watermark"] * copies, key=str)
    for recorder in received.values():
        # against what was written, a target misses other targets' records and watermarks that a later one overtook
        mine = set(recorder.seen)
        order = [item for item in written if item in mine]
        assert [item for item in recorder.seen if item[0] != "idle"] == list(dict.fromkeys(order))
        if watermark:
            assert [item for item in recorder.seen if item[0] == "watermark"][-1] == ("watermark", watermark)


def forward(rows: list[bytes]) -> Exchange:
    return create_exchange(
        PlannedEdge(0, 0, 1, Partitioning.FORWARD, False),
        operator(0, 1),
        operator(1, 1),
        0,
        lambda target, payload: rows.append(payload),
        OwnBatches(0),
        None,
        None,
        KeyGroups(128),
    )


def test_batches_close_at_record_counts() -> None:
    rows: list[bytes] = []
    exchange = forward(rows)
    exchange.push(list(range(BATCH_RECORDS - 1)), None)
    assert rows == []
    exchange.push([0], None)
    assert len(rows) == 1


def _sent(values: list[Any]) -> list[Any]:
    rows: list[bytes] = []
    exchange = forward(rows)
    exchange.push(values, None)
    exchange.flush()
    recorder = Recorder()
    receive(pickle.loads(rows[0][ROW.size :]), recorder)
    return [value for value, _ in recorder.seen]


def test_plain_records_may_be_followed_by_any_others() -> None:
    """Batches are judged by their first record."""
    values = [("a", 1), ("a", 2), {"b": [1, 2]}, None, Recorder, Partitioning.KEY]
    assert _sent(values) == values


def test_a_record_that_holds_itself_among_plain_ones() -> None:
    cycle: list[Any] = [1]
    cycle.append(cycle)
    first, second = _sent(["plain", cycle])
    assert first == "plain" and second[0] == 1 and second[1] is second


def timestamper(strategy: WatermarkStrategy, clock: list[int] | None = None) -> tuple[Timestamper, Recorder]:
    recorder = Recorder()
    emitter = Emitter([0, 0])
    emitter.add(recorder)
    now = clock or [0]
    return Timestamper(operator(0, 1), strategy, frozenset({"source"}), emitter, lambda: now[0]), recorder


def by_value(value: Any, _: int) -> int:
    return int(value)


@given(
    values=st.lists(st.integers(-1000, 100_000), max_size=40),
    copies=st.integers(1, 400),
    sizes=st.lists(st.integers(1, 9000), min_size=1, max_size=8),
    bound=st.integers(0, 500),
)
def test_watermarks_fall_between_the_same_records_however_the_input_is_cut(
    values: list[int], copies: int, sizes: list[int], bound: int
) -> None:
    values = values * copies
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(bound)).with_timestamp_assigner(
        by_value
    )
    whole, expected = timestamper(strategy)
    if values:
        whole.push(values, None)
    whole.caught_up()
    cut, seen = timestamper(strategy)
    done = index = 0
    while done < len(values):
        size = sizes[index % len(sizes)]
        cut.push(values[done : done + size], None)
        again, later = timestamper(strategy)  # a restore at every cut
        if saved := cut.snapshot():
            again.restore(pickle.loads(pickle.dumps(saved)))
        later.seen = seen.seen
        cut, seen = again, later
        done, index = done + size, index + 1
    cut.caught_up()
    assert seen.seen == expected.seen
    if values:
        watermarks = [i for i in expected.seen if i[0] == "watermark"]
        assert watermarks[-1] == ("watermark", max(values) - bound - 1)
        assert len(watermarks) <= len(values) // WATERMARK_RECORDS + 1


def test_a_source_that_gives_nothing_for_long_is_idle_until_it_gives_something() -> None:
    clock = [1000]
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(by_value)
    stamper, recorder = timestamper(strategy.with_idleness(Duration.of_millis(50)), clock)
    stamper.push([5], None)
    stamper.caught_up()
    assert stamper.wake() == 1050
    clock[0] = 1050
    stamper.caught_up()
    assert recorder.seen == [(5, 5), ("watermark", 4), ("idle", True)]
    assert stamper.wake() is None
    stamper.push([6], None)
    assert recorder.seen[-2:] == [("idle", False), (6, 6)]


class EveryTen(WatermarkGenerator):
    def on_event(self, event: Any, event_timestamp: int, output: Any) -> None:
        if event_timestamp % 10 == 0:
            output.emit_watermark(event_timestamp)

    def on_periodic_emit(self, output: Any) -> None:
        """Only by events."""


def test_a_generator_of_the_users_own_puts_its_watermark_right_after_the_record() -> None:
    strategy = WatermarkStrategy.for_generator(EveryTen).with_timestamp_assigner(by_value)
    stamper, recorder = timestamper(strategy)
    stamper.push([9, 10, 11, 20], None)
    assert recorder.seen == [(9, 9), (10, 10), ("watermark", 10), (11, 11), (20, 20), ("watermark", 20)]


class PausedByZero(EveryTen):
    def on_event(self, event: Any, event_timestamp: int, output: Any) -> None:
        if event == 0:
            output.mark_idle()
        elif event == 1:
            output.mark_active()
        else:
            super().on_event(event, event_timestamp, output)


def test_a_generator_of_the_users_own_says_when_nobody_has_to_wait_for_it() -> None:
    strategy = WatermarkStrategy.for_generator(PausedByZero).with_timestamp_assigner(by_value)
    stamper, recorder = timestamper(strategy)
    stamper.push([0, 5, 1, 0, 0, 20], None)
    assert recorder.seen[:4] == [(0, 0), ("idle", True), (5, 5), (1, 1)]
    assert recorder.seen[4:7] == [("idle", False), (0, 0), ("idle", True)]
    assert recorder.seen[7:] == [(0, 0), (20, 20), ("watermark", 20), ("idle", False)]


def test_the_end_of_the_input_is_the_only_watermark_that_passes_an_assigner() -> None:
    stamper, recorder = timestamper(WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(by_value))
    stamper.advance(100)
    assert recorder.seen == []
    stamper.advance(MAX_WATERMARK)
    assert recorder.seen == [("watermark", MAX_WATERMARK)]
    assert MIN_WATERMARK < 0


@pytest.mark.parametrize("stamp", [None, 1.5, "now"])
def test_a_timestamp_that_is_no_int_names_the_record(stamp: Any) -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: stamp)
    stamper, _ = timestamper(strategy)
    with pytest.raises(OperatorFailure, match="on the record 'x'") as failure:
        stamper.push(["x"], None)
    assert "milliseconds" in str(failure.value.cause)


def test_records_without_timestamps_pass_and_are_told_once_how_to_get_them(capsys: pytest.CaptureFixture[str]) -> None:
    """As in Flink, whose word_count example has such a strategy on a file source."""
    stamper, recorder = timestamper(WatermarkStrategy.for_monotonous_timestamps())
    stamper.push(["x"], None)
    stamper.push(["y"], None)
    assert capsys.readouterr().err.count("with_timestamp_assigner") == 1
    assert recorder.seen == [("x", None), ("y", None)]


def test_one_record_without_a_timestamp_among_others_says_how_to_give_it_one() -> None:
    stamper, _ = timestamper(WatermarkStrategy.for_monotonous_timestamps())
    with pytest.raises(OperatorFailure) as failure:
        stamper.push(["x", "y"], [1, None])
    assert "with_timestamp_assigner" in str(failure.value.cause)
