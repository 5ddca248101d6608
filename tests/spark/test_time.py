"""Timers, watermarks, side outputs and every kind of state on a real Spark, with a slot that is killed on the way."""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from firesteel.common import Configuration, Duration, Encoder, Types, WatermarkStrategy
from firesteel.datastream import (
    AggregateFunction,
    AggregatingStateDescriptor,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ListStateDescriptor,
    MapStateDescriptor,
    OutputTag,
    ReducingStateDescriptor,
    StreamExecutionEnvironment,
    ValueStateDescriptor,
)
from firesteel.datastream.connectors.file_system import FileSink
from firesteel.datastream.connectors.number_seq import NumberSequenceSource

RECORDS, KEYS = 30_000, 40
EVENS = OutputTag("evens", Types.LONG())


class Longest(AggregateFunction):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: int, accumulator: int) -> int:
        return max(accumulator, len(str(value)))

    def get_result(self, accumulator: int) -> str:
        return f"{accumulator} digits"

    def merge(self, acc_a: int, acc_b: int) -> int:
        return max(acc_a, acc_b)


class Everything(KeyedCoProcessFunction):
    """Every 50 units of time of a key, by a timer: what each of its states holds."""

    def __init__(self, marker: str | None) -> None:
        self.marker = marker

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self.recent = runtime_context.get_list_state(ListStateDescriptor("recent", Types.LONG()))
        self.by_digit = runtime_context.get_map_state(MapStateDescriptor("by digit", Types.LONG(), Types.LONG()))
        self.total = runtime_context.get_reducing_state(
            ReducingStateDescriptor("total", lambda a, b: a + b, Types.LONG())
        )
        self.longest = runtime_context.get_aggregating_state(
            AggregatingStateDescriptor("longest", Longest(), Types.LONG())
        )

    def process_element1(self, value: int, ctx: Any) -> Any:
        if self.marker and value == RECORDS * 2 // 3 and not os.path.exists(self.marker):
            with open(self.marker, "w"):
                os.kill(os.getpid(), signal.SIGKILL)
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        self.recent.add(value)
        self.by_digit.put(value % 10, (self.by_digit.get(value % 10) or 0) + 1)
        self.total.add(value)
        self.longest.add(value)
        ctx.timer_service().register_event_time_timer(value - value % (KEYS * 50) + KEYS * 50)
        if count % 2 == 0:
            yield EVENS, value

    def process_element2(self, value: int, ctx: Any) -> Any:
        self.total.add(-value)

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        digits = ",".join(f"{digit}:{n}" for digit, n in sorted(self.by_digit.items()))
        recent = list(self.recent.get())
        self.recent.clear()
        yield f"{ctx.get_current_key()} {timestamp} {self.count.value()} {len(recent)} {digits} {self.longest.get()}"


def program(env: StreamExecutionEnvironment, root: Path, marker: str | None) -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value)
    numbers = env.from_source(NumberSequenceSource(1, RECORDS), strategy, "numbers").set_parallelism(1)
    others = env.from_source(NumberSequenceSource(1, 1000), strategy, "others").set_parallelism(1)
    out = numbers.key_by(lambda n: n % KEYS).connect(others.key_by(lambda n: n % KEYS)).process(Everything(marker))
    evens = out.get_side_output(EVENS)
    for name, stream in (("main", out), ("evens", evens)):
        stream.sink_to(FileSink.for_row_format(str(root / name), Encoder.simple_string_encoder()).build())


def lines(directory: Path) -> list[str]:
    return sorted(line for file in directory.iterdir() for line in file.read_text().splitlines())


def test_a_killed_slot_changes_nothing_in_what_timers_states_and_side_outputs_give(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    marker = tmp_path / "killed"
    for name, kill in (("killed once", str(marker)), ("whole", None)):
        env.configure(Configuration().set_string("firesteel.epoch.target-duration", "100 ms"))
        env.enable_checkpointing(100)
        env.get_checkpoint_config().set_checkpoint_storage_dir(str(tmp_path / "checkpoints"))
        program(env, tmp_path / name, kill)
        env.execute(name)
    assert marker.exists()
    assert lines(tmp_path / "killed once" / "main") == lines(tmp_path / "whole" / "main")
    assert lines(tmp_path / "killed once" / "evens") == lines(tmp_path / "whole" / "evens")
    counts: dict[int, int] = defaultdict(int)
    evens = []
    for n in range(1, RECORDS + 1):
        counts[n % KEYS] += 1
        if counts[n % KEYS] % 2 == 0:
            evens.append(str(n))
    assert lines(tmp_path / "whole" / "evens") == sorted(evens)
    fired = Counter(line.split()[0] for line in lines(tmp_path / "whole" / "main"))
    times = {(n % KEYS, n // (KEYS * 50)) for n in range(1, RECORDS + 1)}
    assert fired == Counter(str(key) for key, _ in times)


class Reminder(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        ctx.timer_service().register_processing_time_timer(ctx.timer_service().current_processing_time() + 100)

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield ctx.get_current_key()


def test_a_processing_timer_fires_although_no_record_comes(env: StreamExecutionEnvironment) -> None:
    fired = threading.Event()

    def one_and_wait() -> Iterator[str]:
        yield "key"
        fired.wait(60)

    reminders = env.add_source(one_and_wait).key_by(lambda v: v).process(Reminder())
    with reminders.execute_and_collect("reminder") as results:
        assert next(results) == "key"
        fired.set()
        assert list(results) == []


class FiresByEventTime(KeyedProcessFunction):
    def process_element(self, value: int, ctx: Any) -> Any:
        ctx.timer_service().register_event_time_timer(value)

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield timestamp


def test_an_idle_source_does_not_hold_up_event_time(env: StreamExecutionEnvironment) -> None:
    fired = threading.Event()

    def numbers() -> Iterator[int]:
        yield from (10, 20, 30)
        fired.wait(60)

    def silence() -> Iterator[int]:
        fired.wait(60)
        yield from ()

    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value)
    strategy = strategy.with_idleness(Duration.of_millis(200))
    streams = [env.add_source(source).assign_timestamps_and_watermarks(strategy) for source in (numbers, silence)]
    both = streams[0].union(streams[1]).key_by(lambda v: 0).process(FiresByEventTime())
    with both.execute_and_collect("idle") as results:
        assert [next(results), next(results)] == [10, 20]
        fired.set()
        assert list(results) == [30]
