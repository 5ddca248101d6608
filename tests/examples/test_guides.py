"""What docs/state.md and docs/for-flink-users.md say without showing it."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.common import Time, Types, WatermarkStrategy
from firesteel.datastream import KeyedProcessFunction, MapFunction, RuntimeExecutionMode, StreamExecutionEnvironment
from firesteel.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from firesteel.errors import StateError, TypeMismatchError
from firesteel.testing import FunctionHarness, MutationError, run_locally


def environment(parallelism: int = 1) -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)


def one_key(value: Any) -> int:
    return 0


class ChangesInPlace(KeyedProcessFunction):
    def open(self, runtime_context):
        self.values = runtime_context.get_state(ValueStateDescriptor("values"))

    def process_element(self, value, ctx):
        values = self.values.value()
        if values is None:
            values = []
            self.values.update(values)
        values.append(value)
        yield list(values)


def test_a_value_changed_in_place_is_lost_by_a_restart_and_found_by_the_harness() -> None:
    env = environment()
    stream = env.from_collection([1, 2, 3, 4]).key_by(one_key).process(ChangesInPlace())
    right = [[1], [1, 2], [1, 2, 3], [1, 2, 3, 4]]
    options = {"epoch_records": 1, "check_mutation": False}
    assert run_locally(env, stream, **options) == right
    assert run_locally(env, stream, fail_at=[3], **options) != right
    with pytest.raises(MutationError):
        run_locally(env, stream)


class StoresText(MapFunction):
    def open(self, runtime_context):
        self.number = runtime_context.get_state(ValueStateDescriptor("number", Types.INT()))

    def map(self, value):
        self.number.update("text")
        return self.number.value()


def test_types_of_states_are_not_enforced() -> None:
    with FunctionHarness(StoresText(), key_selector=one_key) as harness:
        assert harness.process(1).output() == ["text"]


class OneNameTwice(StoresText):
    def open(self, runtime_context):
        runtime_context.get_state(ValueStateDescriptor("number", Types.INT()))
        runtime_context.get_state(ValueStateDescriptor("number", Types.STRING()))


def test_one_name_has_one_type() -> None:
    with pytest.raises(StateError, match="one name has one type"):
        FunctionHarness(OneNameTwice(), key_selector=one_key)


class Numbered(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        yield self.count.value()


def test_equal_keys_are_one_key() -> None:
    with FunctionHarness(Numbered(), key_selector=lambda value: value) as harness:
        assert harness.process(1).process(1.0).process(True).output() == [1, 2, 3]


class Expiring(KeyedProcessFunction):
    def open(self, runtime_context):
        ttl = StateTtlConfig.new_builder(Time.seconds(10)).build()
        entries, elements = MapStateDescriptor("entries"), ListStateDescriptor("elements")
        entries.enable_time_to_live(ttl)
        elements.enable_time_to_live(ttl)
        self.entries = runtime_context.get_map_state(entries)
        self.elements = runtime_context.get_list_state(elements)

    def process_element(self, value, ctx):
        self.entries.put(value, True)
        self.elements.add(value)
        yield list(self.entries.keys()), list(self.elements.get())


def test_entries_of_maps_and_lists_expire_for_themselves() -> None:
    with FunctionHarness(Expiring(), key_selector=one_key) as harness:
        harness.process("a").advance_clock(6_000).process("b").advance_clock(6_000).process("c")
        assert harness.output()[-1] == (["b", "c"], ["b", "c"])


class Reads(KeyedProcessFunction):
    def __init__(self, builder):
        self.builder = builder

    def open(self, runtime_context):
        descriptor = ValueStateDescriptor("value")
        descriptor.enable_time_to_live(self.builder.build())
        self.value = runtime_context.get_state(descriptor)

    def process_element(self, value, ctx):
        if value is not None:
            self.value.update(value)
        yield self.value.value()


@pytest.mark.parametrize(("prolonged", "seen"), [(False, None), (True, "a")])
def test_reading_prolongs_the_time_to_live_if_it_is_told_to(prolonged: bool, seen: str | None) -> None:
    builder = StateTtlConfig.new_builder(Time.seconds(10))
    if prolonged:
        builder.update_ttl_on_read_and_write()
    with FunctionHarness(Reads(builder), key_selector=one_key) as harness:
        harness.process("a").advance_clock(6_000).process(None).advance_clock(6_000).process(None)
        assert harness.output() == ["a", "a", seen]


class TwoTimers(KeyedProcessFunction):
    def process_element(self, value, ctx):
        late = ctx.timestamp() <= ctx.timer_service().current_watermark()
        for time in (200, 100, 100):  # the same time again is the same timer
            ctx.timer_service().register_event_time_timer(time)
        yield "late" if late else "in time"

    def on_timer(self, timestamp, ctx):
        yield timestamp


def test_timers_fire_in_the_order_of_their_times_and_late_records_are_not_dropped() -> None:
    with FunctionHarness(TwoTimers(), key_selector=one_key) as harness:
        harness.process("a", 50).watermark(250).process("b", 10)
        assert harness.output() == ["in time", 100, 200, "late"]


class WatermarkOfRecords(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield value, ctx.timer_service().current_watermark()


@pytest.mark.parametrize("epoch_records", [10_000, 777])
def test_watermarks_fall_after_every_4096_records_wherever_epochs_are_cut(epoch_records: int) -> None:
    env = environment()
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, timestamp: value)
    timed = env.from_collection(range(10_000)).assign_timestamps_and_watermarks(strategy)
    results = run_locally(env, timed.key_by(one_key).process(WatermarkOfRecords()), epoch_records=epoch_records)
    first_to_see: dict[int, int] = {}
    for value, watermark in results:
        first_to_see.setdefault(watermark, value)
    assert first_to_see == {-(2**63): 0, 4_094: 4_096, 8_190: 8_192}


class BothTimers(KeyedProcessFunction):
    def process_element(self, value, ctx):
        timers = ctx.timer_service()
        timers.register_processing_time_timer(timers.current_processing_time() + 60_000)
        timers.register_event_time_timer(5)

    def on_timer(self, timestamp, ctx):
        yield ctx.time_domain().name


def test_the_end_of_the_input_fires_timers_of_event_time_only() -> None:
    env = environment()
    assert run_locally(env, env.from_collection([1]).key_by(one_key).process(BothTimers())) == ["EVENT_TIME"]


@pytest.mark.parametrize(
    ("declared", "given"),
    [(Types.INT(), 1.5), (Types.TUPLE([Types.INT(), Types.INT()]), (1, 2, 3))],
)
def test_what_does_not_fit_its_declared_type_is_refused(declared: Any, given: Any) -> None:
    env = environment()
    with pytest.raises(TypeMismatchError):
        run_locally(env, env.from_collection([given]).map(lambda value: value, declared))


def test_a_float_is_rounded_for_whoever_comes_next() -> None:
    env = environment()
    rounded = env.from_collection([0.1]).map(lambda value: value, Types.FLOAT()).map(repr)
    assert run_locally(env, rounded) == ["0.10000000149011612"]


def test_a_map_may_give_none() -> None:
    env = environment()
    assert run_locally(env, env.from_collection([1]).map(lambda value: None)) == [None]


def test_batch_mode_emits_every_update() -> None:
    env = environment()
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    summed = env.from_collection([1, 2]).key_by(one_key).reduce(lambda one, other: one + other)
    assert run_locally(env, summed) == [1, 3]
