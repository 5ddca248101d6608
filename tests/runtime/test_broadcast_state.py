"""Streams connected with a broadcast one: state that is the same on every subtask, whatever fails on the way."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from firesteel.common import RestartStrategies, Time, Types, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import (
    BroadcastProcessFunction,
    BroadcastStream,
    KeyedBroadcastProcessFunction,
    KeyedStateFunction,
    ListStateDescriptor,
    MapStateDescriptor,
    OutputTag,
    StateTtlConfig,
    StreamExecutionEnvironment,
    ValueStateDescriptor,
)
from firesteel.errors import FiresteelError, GraphError, StateError, TimerError
from firesteel.graph.nodes import BroadcastProcess, Partitioning
from firesteel.testing import GraphHarness
from tests.support.local_engine import LocalRun
from tests.support.scheduled import Scheduled

RULES = MapStateDescriptor("rules", Types.STRING(), Types.LONG())


def environment(parallelism: int = 2) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism).enable_checkpointing(1)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(5, 0))
    return env


def scheduled(env: StreamExecutionEnvironment, name: str, *epochs: list[Any]) -> Any:
    return env.from_source(Scheduled(*epochs), source_name=name).set_parallelism(1)


class Scale(BroadcastProcessFunction):
    """Multiplies by a factor that broadcast records set."""

    def process_element(self, value: int, ctx: BroadcastProcessFunction.ReadOnlyContext) -> Any:
        yield value * (ctx.get_broadcast_state(RULES).get("factor") or 1)

    def process_broadcast_element(self, value: int, ctx: BroadcastProcessFunction.Context) -> Any:
        ctx.get_broadcast_state(RULES).put("factor", value)


def test_every_subtask_knows_every_rule() -> None:
    env = environment(3)
    factors = scheduled(env, "factors", [], [10], [], [100], []).broadcast(RULES)
    values = scheduled(env, "values", [1, 2, 3], [], [4, 5, 6], [], [7, 8, 9]).rebalance()
    scaled = values.connect(factors).process(Scale(), Types.LONG())
    with GraphHarness(env, collect=scaled) as harness:
        results = harness.run().results()
    assert sorted(results) == [1, 2, 3, 40, 50, 60, 700, 800, 900]


@settings(max_examples=15, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(
    parallelism=st.integers(1, 3),
    failures=st.sets(st.integers(1, 8), max_size=3),
    every=st.integers(1, 3),
)
def test_failures_change_neither_the_state_nor_the_results(parallelism: int, failures: set[int], every: int) -> None:
    def run(**options: Any) -> list[Any]:
        env = environment(parallelism)
        factors = scheduled(env, "factors", *([n] if n % 2 else [] for n in range(1, 7))).broadcast(RULES)
        values = scheduled(env, "values", *([n, n + 1, n + 2] for n in range(0, 24, 3)))
        scaled = values.key_by(lambda n: n % 5).connect(factors).process(Tally())
        with GraphHarness(env, collect=scaled, **options) as harness:
            return harness.run().results()

    assert Counter(run(fail_at=failures, checkpoint_every=every)) == Counter(run())


class Tally(KeyedBroadcastProcessFunction):
    """How many records a key has had, and the rules known then."""

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext) -> Any:
        self.count.update((self.count.value() or 0) + 1)
        yield ctx.get_current_key(), self.count.value(), tuple(sorted(ctx.get_broadcast_state(RULES).items()))

    def process_broadcast_element(self, value: Any, ctx: KeyedBroadcastProcessFunction.Context) -> Any:
        ctx.get_broadcast_state(RULES)[f"rule {value}"] = value
        if value > 2:
            ctx.get_broadcast_state(RULES).remove(f"rule {value - 2}")


class Reset(KeyedStateFunction):
    def process(self, key: Any, state: Any) -> None:
        state.clear()


class Commanded(Tally):
    """Broadcast records are commands over the state of all keys."""

    descriptor = ValueStateDescriptor("count", Types.LONG())

    def process_broadcast_element(self, value: Any, ctx: KeyedBroadcastProcessFunction.Context) -> Any:
        if value == "reset":
            ctx.apply_to_keyed_state(self.descriptor, Reset())
        elif value == "double":
            ctx.apply_to_keyed_state(self.descriptor, lambda key, state: state.update(state.value() * 2))
        else:
            found: list[Any] = []
            ctx.apply_to_keyed_state(self.descriptor, lambda key, state: found.append((key, state.value())))
            yield "report", tuple(sorted(found))


def test_a_broadcast_record_can_reach_the_state_of_every_key() -> None:
    env = environment(1)
    values = scheduled(env, "values", ["a", "b", "a"], [], [], ["a"], [], [], ["b"])
    commands = scheduled(env, "commands", [], ["double"], ["report"], [], ["reset"], ["report"], [])
    told = values.key_by(lambda v: v).connect(commands.broadcast(RULES)).process(Commanded())
    with GraphHarness(env, collect=told, fail_at=[3, 5]) as harness:
        results = [result[:2] for result in harness.run().results()]
    assert results == [
        ("a", 1),
        ("b", 1),
        ("a", 2),
        ("report", (("a", 4), ("b", 2))),
        ("a", 5),
        ("report", ()),
        ("b", 1),
    ]


class Gathers(Tally):
    """Lists and maps have several entries for a key, which is still given out once."""

    words, letters = ListStateDescriptor("words"), MapStateDescriptor("letters")

    def open(self, runtime_context: Any) -> None:
        self.list = runtime_context.get_list_state(self.words)
        self.map = runtime_context.get_map_state(self.letters)

    def process_element(self, value: str, ctx: Any) -> Any:
        self.list.add(value)
        for letter in value:
            self.map.put(letter, 1)

    def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
        found: list[Any] = []
        ctx.apply_to_keyed_state(self.words, lambda key, state: found.append((key, tuple(state.get()))))
        ctx.apply_to_keyed_state(self.letters, lambda key, state: found.append((key, sorted(state.keys()))))
        yield from found


def test_every_key_is_visited_once_whatever_kind_of_state_it_is() -> None:
    env = environment(1)
    words = scheduled(env, "words", ["ab", "ba", "xy"], []).key_by(lambda word: min(word))
    gathered = words.connect(scheduled(env, "ask", [], [1]).broadcast(RULES)).process(Gathers())
    with GraphHarness(env, collect=gathered) as harness:
        assert harness.run().results() == [
            ("a", ("ab", "ba")),
            ("x", ("xy",)),
            ("a", ["a", "b"]),
            ("x", ["x", "y"]),
        ]


class Stamp(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return value if isinstance(value, int) else value[1]  # type: ignore[no-any-return]


LATE = OutputTag("rules seen")


class Alarms(KeyedBroadcastProcessFunction):
    """A timer for each record, which says what the rules are when it fires; broadcast records go to a side output."""

    def process_element(self, value: Any, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext) -> Any:
        assert ctx.timestamp() == value[1]
        ctx.timer_service().register_event_time_timer(value[1] + 5)

    def process_broadcast_element(self, value: int, ctx: KeyedBroadcastProcessFunction.Context) -> Any:
        ctx.get_broadcast_state(RULES).put_all({"newest": value})
        assert ctx.current_processing_time() >= 0
        yield LATE, (value, ctx.timestamp())

    def on_timer(self, timestamp: int, ctx: KeyedBroadcastProcessFunction.OnTimerContext) -> Any:
        yield ctx.get_current_key(), timestamp, ctx.time_domain().name, ctx.get_broadcast_state(RULES)["newest"]


@pytest.mark.parametrize("failures", [(), (2,), (1, 3)])
def test_timers_wait_for_both_streams_and_see_the_rules(failures: tuple[int, ...]) -> None:
    env = environment(2)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())
    values = scheduled(env, "values", [("a", 1), ("b", 2)], [("a", 30)], []).assign_timestamps_and_watermarks(strategy)
    rules = scheduled(env, "rules", [3], [], [20]).assign_timestamps_and_watermarks(strategy)
    alarms = values.key_by(lambda v: v[0]).connect(rules.broadcast(RULES)).process(Alarms())
    seen = alarms.get_side_output(LATE)
    with GraphHarness(env, collect=[alarms, seen], fail_at=failures) as harness:
        harness.run()
        # the rules' watermark is at 2 until the rule of 20 comes, so nothing fires before it
        assert sorted(harness.results(alarms)) == [
            ("a", 6, "EVENT_TIME", 20),
            ("a", 35, "EVENT_TIME", 20),
            ("b", 7, "EVENT_TIME", 20),
        ]
        assert harness.results(seen) == [(3, 3)] * 2 + [(20, 20)] * 2  # on both subtasks


class Collects(BroadcastProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield tuple(sorted(ctx.get_broadcast_state(RULES).keys()))

    def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
        ctx.get_broadcast_state(RULES).put(value, 1)


def test_new_subtasks_know_the_rules_after_a_change_of_parallelism(tmp_path: Path) -> None:
    expected: list[tuple[str, ...]] = [(), ("first",), ("first", "second")]
    for start, parallelism in enumerate([2, 4, 1]):
        env = environment(parallelism)
        values = scheduled(env, "values", [], *[[1, 2, 3, 4], []] * 3, []).rebalance()
        rules = scheduled(env, "rules", [], [], ["first"], [], ["second"], [], [], []).broadcast(RULES)
        known = values.connect(rules).process(Collects()).uid("collects")
        with GraphHarness(env, collect=known, directory=str(tmp_path)) as harness:
            harness.step(3 if start == 0 else 2)
            assert harness.results() == [expected[start]] * 4


# ---- what is refused


class Misused(KeyedBroadcastProcessFunction):
    def __init__(self, element: Any = None, broadcast: Any = None) -> None:
        self.element, self.broadcast = element, broadcast

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self.all = runtime_context.get_map_state(MapStateDescriptor("all"))

    def process_element(self, value: Any, ctx: Any) -> Any:
        if self.element is not None:
            self.element(self, ctx)

    def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
        if self.broadcast is not None:
            self.broadcast(self, ctx)


READ_ONLY = r"'rules' can be changed in process_broadcast_element\(\) only"


@pytest.mark.parametrize(
    ("element", "broadcast", "kind", "message"),
    [
        (lambda f, ctx: ctx.get_broadcast_state(RULES).put("a", 1), None, StateError, READ_ONLY),
        (lambda f, ctx: ctx.get_broadcast_state(RULES).put_all({}), None, StateError, READ_ONLY),
        (lambda f, ctx: ctx.get_broadcast_state(RULES).remove("a"), None, StateError, READ_ONLY),
        (lambda f, ctx: ctx.get_broadcast_state(RULES).clear(), None, StateError, READ_ONLY),
        (lambda f, ctx: ctx.get_broadcast_state(RULES).__setitem__("a", 1), None, StateError, READ_ONLY),
        (
            lambda f, ctx: ctx.get_broadcast_state(MapStateDescriptor("others")),
            None,
            StateError,
            r"'others', which is not there \(there is 'rules'\)",
        ),
        (
            lambda f, ctx: ctx.get_broadcast_state(MapStateDescriptor("rules", Types.INT(), Types.INT())),
            None,
            StateError,
            "one name has one type",
        ),
        (lambda f, ctx: ctx.get_broadcast_state("rules"), None, StateError, "takes a MapStateDescriptor"),
        (None, lambda f, ctx: f.count.value(), StateError, "a broadcast record has no key"),
        (None, lambda f, ctx: f.count.update(5), StateError, "a broadcast record has no key"),
        (None, lambda f, ctx: f.all.put(1, 2), StateError, "a broadcast record has no key"),
        (None, lambda f, ctx: ctx.get_current_key(), StateError, "a broadcast record has none"),
        (None, lambda f, ctx: ctx.timer_service(), TimerError, r"ctx.current_watermark\(\)"),
    ],
)
def test_misuse_is_explained(tmp_path: Path, element: Any, broadcast: Any, kind: Any, message: str) -> None:
    env = environment(1)
    env.set_restart_strategy(RestartStrategies.no_restart())
    rules = scheduled(env, "rules", [1], [2]).broadcast(RULES)
    stream = scheduled(env, "values", ["a"], ["b"]).key_by(lambda v: v).connect(rules)
    stream.process(Misused(element, broadcast)).print()
    with pytest.raises(FiresteelError, match=message) as caught:
        LocalRun(env, str(tmp_path)).run()
    assert isinstance(caught.value, kind)


def test_a_broadcast_stream_is_described_and_nothing_else() -> None:
    env = environment()
    rules, values = env.from_collection([1]).broadcast(RULES), env.from_collection([2])
    assert isinstance(rules, BroadcastStream)
    stream = values.connect(rules).process(Scale())
    node = env.graph[stream.get_id()]
    assert isinstance(node.operator, BroadcastProcess) and node.operator.descriptors == (RULES,)
    assert [(each.port, each.partitioning) for each in node.inputs] == [
        (0, Partitioning.FORWARD),
        (1, Partitioning.BROADCAST),
    ]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda v, r: v.connect(r).process(Tally()), r"takes a BroadcastProcessFunction, .*; call key_by\(...\)"),
        (
            lambda v, r: v.key_by(abs).connect(r).process(Scale()),
            "takes a KeyedBroadcastProcessFunction, .*; derive it from KeyedBroadcastProcessFunction",
        ),
        (lambda v, r: v.connect(r).process(len), "takes a BroadcastProcessFunction, not <built-in function len>$"),
        (lambda v, r: environment().from_collection([1]).connect(r), "two environments"),
    ],
)
def test_functions_that_do_not_fit_are_refused(build: Any, message: str) -> None:
    env = environment()
    with pytest.raises(GraphError, match=message):
        build(env.from_collection([1]), env.from_collection([2]).broadcast(RULES))


def test_broadcast_state_does_not_expire() -> None:
    descriptor = MapStateDescriptor("rules")
    descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.seconds(1)).build())
    with pytest.raises(GraphError, match="time-to-live, which is for keyed state only"):
        environment().from_collection([1]).broadcast(descriptor)
