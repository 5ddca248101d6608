"""Changes in place are found, and nothing else is taken for one."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Any

import pytest

from firesteel.common import Time
from firesteel.datastream import (
    AggregateFunction,
    AggregatingStateDescriptor,
    KeyedProcessFunction,
    ListStateDescriptor,
    MapStateDescriptor,
    OutputTag,
    ReducingStateDescriptor,
    RuntimeContext,
    StateTtlConfig,
    StreamExecutionEnvironment,
    ValueStateDescriptor,
)
from firesteel.errors import StateError
from firesteel.testing import FunctionHarness, GraphHarness, MutationError
from tests.testing.functions import ANYTHING


class Collected(AggregateFunction):
    """Changes its accumulator, which it may, and in `get_result` too, which it may not when `spoils`."""

    def __init__(self, spoils: bool = False) -> None:
        self.spoils = spoils

    def create_accumulator(self) -> Any:
        return []

    def add(self, value: Any, accumulator: Any) -> Any:
        accumulator.append(value)
        return accumulator

    def get_result(self, accumulator: Any) -> Any:
        if self.spoils:
            accumulator.sort()
        return len(accumulator)

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return acc_a + acc_b


class Scripted(KeyedProcessFunction):
    """Every record is a piece of code over its states."""

    def __init__(self, ttl: bool = False, spoils: bool = False) -> None:
        self.ttl, self.spoils = ttl, spoils

    def open(self, runtime_context: RuntimeContext) -> None:
        descriptors = [
            ValueStateDescriptor("value", ANYTHING),
            ListStateDescriptor("list", ANYTHING),
            MapStateDescriptor("map", ANYTHING, ANYTHING),
            ReducingStateDescriptor("reducing", lambda a, b: a + b, ANYTHING),
            AggregatingStateDescriptor("aggregating", Collected(self.spoils), ANYTHING),
        ]
        if self.ttl:
            for descriptor in descriptors:
                descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.seconds(1)).build())
        self.value = runtime_context.get_state(descriptors[0])
        self.list = runtime_context.get_list_state(descriptors[1])
        self.map = runtime_context.get_map_state(descriptors[2])
        self.reducing = runtime_context.get_reducing_state(descriptors[3])
        self.aggregating = runtime_context.get_aggregating_state(descriptors[4])
        self.kept: Any = None

    def process_element(self, value, ctx):  # type: ignore[no-untyped-def]
        names = {"self": self, "Cached": Cached, "out": []}
        exec(value, names)
        yield from names["out"]


@dataclass
class Cached:
    number: int
    cache: dict[str, int] = field(default_factory=dict, compare=False)

    @functools.cached_property
    def square(self) -> int:
        return self.number**2


FILL = (
    "self.value.update([1]); self.list.add_all([[1], [2]]); self.map.put('k', [1]); self.reducing.add([1]); "
    "self.aggregating.add(2); self.aggregating.add(1)"
)


def drive(*script: str, **options: Any) -> FunctionHarness:
    with FunctionHarness(Scripted(**options), key_selector=lambda code: "the key") as h:
        for code in script:
            h.process(code)
    return h


@pytest.mark.parametrize("ttl", [False, True])
@pytest.mark.parametrize(
    ("code", "named"),
    [
        (
            "self.value.value().append(9)",
            r"the value state 'value'.*it knows \[1\] and the object is now \[1, 9\].*update",
        ),
        ("v = [2]; self.value.update(v); v.append(9)", r"it knows \[2\] and the object is now \[2, 9\]"),
        ("self.value.value().clear()", "'value'"),
        ("list(self.list.get())[1].append(9)", r"element 1 of the list state 'list'.*update\(\[\.\.\.\]\)"),
        ("v = [3]; self.list.add(v); v.append(9)", "element 2 of the list state"),
        ("self.map.get('k').append(9)", r"the value under 'k' of the map state 'map'.*put\(key, value\)"),
        ("[v.append(9) for v in self.map.values()]", "'map'"),
        ("[v.append(9) for _, v in self.map.items()]", "'map'"),
        ("self.map['k'].append(9)", "'map'"),
        ("v = [3]; self.map.put_all({'l': v}); v.append(9)", "under 'l'"),
        ("self.reducing.get().append(9)", "the reducing state 'reducing'.*must not be changed"),
    ],
)
def test_a_change_in_place_names_operator_state_key_and_what_to_call(code: str, named: str, ttl: bool) -> None:
    with FunctionHarness(Scripted(ttl=ttl), key_selector=lambda code: "the key") as h:
        h.process(FILL)
        with pytest.raises(MutationError, match=named) as caught:
            h.process(code)
        assert "of key 'the key'" in str(caught.value) and "operator 'Scripted'" in str(caught.value)


def test_an_aggregate_function_must_leave_its_accumulator_alone_when_asked_for_a_result() -> None:
    with pytest.raises(MutationError, match="get_result"):
        drive(FILL, "self.aggregating.get()", spoils=True)


@pytest.mark.parametrize("ttl", [False, True])
@pytest.mark.parametrize(
    "code",
    [
        "v = self.value.value(); v.append(9); self.value.update(v)",
        "v = self.value.value(); v.append(9); self.value.value(); self.value.update(v)",
        "v = self.value.value(); self.value.clear(); v.append(9)",
        "v = self.value.value(); self.value.update([5]); v.append(9)",
        "e = list(self.list.get()); e[0].append(9); self.list.update(e)",
        "e = list(self.list.get()); self.list.clear(); e[0].append(9); self.list.add([7])",
        "v = self.map.get('k'); v.append(9); self.map.put('k', v)",
        "v = self.map.get('k'); self.map.remove('k'); v.append(9)",
        "v = self.map.get('k'); self.map.clear(); v.append(9)",
        "self.reducing.add([9]); self.aggregating.add(9); self.aggregating.get()",
        "self.value.update(Cached(3)); self.value.value().square; self.value.value().cache['a'] = 1",
        "out.append(list(self.list.get())); out.append(dict(self.map.items()))",
    ],
)
def test_what_is_told_to_the_state_is_no_change_in_place(code: str, ttl: bool) -> None:
    drive(FILL, code, "out.append(self.value.value()); self.list.get(); list(self.map.values())", ttl=ttl)


def test_what_a_function_keeps_and_changes_later_is_found_when_the_epoch_ends() -> None:
    with FunctionHarness(Scripted(), key_selector=len) as h:
        h.process(f"{FILL}; self.kept = self.value.value()").process("pass").process("self.kept.append(9)")
        with pytest.raises(MutationError, match=r"state 'value' of key \d+ was changed in place"):
            h.cut()


def test_one_object_under_two_keys_is_found_when_it_changes() -> None:
    with FunctionHarness(Scripted(), key_selector=len) as h:
        h.process("self.kept = [1]; self.value.update(self.kept)").process("self.value.update(self.kept)")
        h.process("self.kept.append(2); self.value.update(self.kept)")
        with pytest.raises(MutationError):
            h.close()


def test_a_record_changed_after_it_was_emitted_is_found() -> None:
    with FunctionHarness(Scripted(), key_selector=lambda code: 0) as h:
        h.process("self.kept = [1]; out.append(self.kept)")
        with pytest.raises(MutationError, match=r"the record \[1\] was changed to \[1, 2\] after it was emitted"):
            h.process("self.kept.append(2)")


def test_reducing_in_place_is_no_mistake_and_earlier_results_do_not_change_with_it() -> None:
    def merge(total: dict[str, int], new: dict[str, int]) -> dict[str, int]:
        total.update(new)
        return total

    with FunctionHarness(merge, kind="reduce", key_selector=lambda v: 0) as h:
        h.process({"a": 1}).process({"b": 2})
        assert h.output() == [{"a": 1}, {"a": 1, "b": 2}]


def test_after_the_epoch_emitted_records_are_on_their_way_and_may_change() -> None:
    with FunctionHarness(Scripted(), key_selector=lambda code: 0) as h:
        h.process("self.kept = [1]; out.append(self.kept)").cut().process("self.kept.append(2)")
        assert h.output() == [[1]]


def test_side_outputs_are_watched_too() -> None:
    code = "from firesteel.datastream import OutputTag; self.kept = [1]; out.append((OutputTag('t'), self.kept))"
    with FunctionHarness(Scripted(), key_selector=lambda code: 0) as h:
        h.process(code)
        assert h.side_output(OutputTag("t")) == [[1]]
        with pytest.raises(MutationError, match="after it was emitted"):
            h.process("self.kept.append(2)")


def test_a_value_that_no_checkpoint_could_hold_is_refused_at_once() -> None:
    with pytest.raises(StateError, match="cannot be pickled, so the value state 'value'"):
        drive("self.value.update(lambda: 1)")


def test_checking_can_be_switched_off() -> None:
    with FunctionHarness(Scripted(), key_selector=lambda code: 0, check_mutation=False) as h:
        h.process(FILL).process("self.value.value().append(9)")


class Appending(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen", ANYTHING))

    def process_element(self, value, ctx):  # type: ignore[no-untyped-def]
        seen = self.seen.value()
        if seen is None:
            self.seen.update([value])
        else:
            seen.append(value)
        yield value


def test_a_whole_program_is_watched_too() -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    stream = env.from_collection([1, 2, 3, 4]).key_by(lambda n: n % 2).process(Appending()).name("appending")
    with (
        GraphHarness(env, collect=stream) as h,
        pytest.raises(MutationError, match=r"'seen' of key [01] .* operator 'appending'"),
    ):
        h.run()
    with GraphHarness(env, collect=stream, check_mutation=False) as h:
        assert sorted(h.run().results()) == [1, 2, 3, 4]


class Keeping(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen", ANYTHING))
        self.kept: list[int] = []

    def process_element(self, value, ctx):  # type: ignore[no-untyped-def]
        if value == 0:
            self.seen.update(self.kept)
        else:
            self.kept.append(value)
        yield value


def test_what_a_program_keeps_and_changes_later_is_found_at_its_end() -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    stream = env.from_collection([0, 1]).key_by(lambda n: n).process(Keeping())
    with GraphHarness(env, collect=stream, epoch_records=1) as h, pytest.raises(MutationError, match="of key 0"):
        h.run()
