"""Streams with watermarks in them, and windows whose results show which records came in which order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from firesteel.common import WatermarkGenerator, WatermarkStrategy
from firesteel.coordinator.engine import EpochOrder, EpochResult
from firesteel.datastream import (
    AggregateFunction,
    DataStream,
    ReduceFunction,
    StreamExecutionEnvironment,
    WindowFunction,
)
from firesteel.testing import GraphHarness
from firesteel.testing.engine import LocalEngine
from tests.support.partitioned import Partitioned
from tests.windows.cases import ASSIGNERS
from tests.windows.driving import FAR

MARK = "mark"


class Marked(WatermarkGenerator):
    """Watermarks where the stream says so: records (MARK, watermark, 0)."""

    def on_event(self, event: Any, event_timestamp: int, output: Any) -> None:
        if event[0] == MARK:
            output.emit_watermark(event[1])

    def on_periodic_emit(self, output: Any) -> None:
        pass


class Joined(ReduceFunction):
    """Associative, and that is all: the order of a channel's records shows."""

    def reduce(self, value1: Any, value2: Any) -> Any:
        return value1[0], value1[1] + value2[1]


class Texts(AggregateFunction):
    """A list that is changed in place, in the order of the records."""

    def create_accumulator(self) -> list[Any]:
        return []

    def add(self, value: Any, accumulator: list[Any]) -> list[Any]:
        accumulator.append(value[1])
        return accumulator

    def get_result(self, accumulator: list[Any]) -> Any:
        return "", "".join(accumulator)

    def merge(self, acc_a: list[Any], acc_b: list[Any]) -> list[Any]:
        acc_a.extend(acc_b)
        return acc_a


class Named(WindowFunction[Any, Any, Any, Any]):
    def apply(self, key: Any, window: Any, inputs: Any) -> Iterator[Any]:
        yield key, repr(window), *inputs


FUNCTIONS = ("reduce", "reduce and apply", "aggregate")
ALIGNED = ("tumbling", "tumbling+3", "sliding", "sliding-1", "gaps")


def build(stream: DataStream, assigner: str, function: str) -> DataStream:
    windowed = stream.key_by(lambda record: record[0]).window(ASSIGNERS[assigner].engine)
    if function == "aggregate":
        return windowed.aggregate(Texts(), Named()).uid("windows")
    return windowed.reduce(Joined(), Named() if "apply" in function else None).uid("windows")


def environment(parallelism: int, combining: bool) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    env.get_config().set_window_pre_combining(combining)
    return env


def read(env: StreamExecutionEnvironment, partitions: dict[str, list[Any]]) -> DataStream:
    strategy = WatermarkStrategy.for_generator(Marked).with_timestamp_assigner(lambda record, _: record[2])
    found = env.from_source(Partitioned(partitions), strategy, "partitions")
    return found.filter(lambda record: record[0] != MARK).map(lambda record: (record[0], f"{record[1]},"))


def run(
    partitions: dict[str, list[Any]],
    assigner: str,
    function: str,
    combining: bool,
    parallelism: int = 2,
    sizes: list[int] | None = None,
    fail_at: tuple[int, ...] = (),
    every: int | None = None,
    receivers: int = 2,
    others: list[Any] | None = None,
) -> tuple[list[Any], int, int]:
    """Results, late records, and how many records went into the operator.

    :param receivers: the parallelism of the windows.
    :param others: records of a second stream into the same windows.
    """
    env = environment(parallelism, combining)
    records = read(env, partitions)
    if others is not None:
        records = records.union(read(env, {"others": others}))
    stream = build(records, assigner, function).set_parallelism(receivers)
    with GraphHarness(
        env, collect=stream, epoch_records=sizes or [3], fail_at=fail_at, checkpoint_every=every
    ) as harness:
        received = counting(harness._engine)
        harness.run()
        dropped = harness.metrics().get("windows", {}).get("numLateRecordsDropped", 0)
        return sorted(map(by_channel, harness.results(stream))), dropped, sum(received)


def counting(engine: LocalEngine) -> list[int]:
    """How many records each epoch gives to the operator."""
    received: list[int] = []
    run_epoch = engine.run_epoch

    def counted(order: EpochOrder) -> EpochResult:
        result = run_epoch(order)
        received.append(sum(report["records"].get("windows", (0, 0))[0] for report in result.reports))
        return result

    engine.run_epoch = counted  # type: ignore[method-assign]
    return received


def in_time(records: list[Any]) -> list[Any]:
    """Without those that are behind a watermark of their own stream."""
    kept, watermark = [], -FAR
    for key, number, time in records:
        if key == MARK:
            watermark = max(watermark, number)
        if key == MARK or time > watermark:
            kept.append((key, number, time))
    return kept


def of_channel(channel: int, records: list[Any]) -> list[Any]:
    return [(key, number if key == MARK else f"{channel}:{number}", time) for key, number, time in records]


def by_channel(result: Any) -> Any:
    """Texts with what each channel gave, in its order: there is none between channels."""
    if isinstance(result, tuple):
        return tuple(map(by_channel, result))
    return sorted(result.split(","), key=lambda part: part[:1]) if str(result).endswith(",") else result
