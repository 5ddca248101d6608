"""From a program to levels, edges and uids."""

from __future__ import annotations

import threading

import pytest

from firesteel.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from firesteel.datastream.functions import ProcessFunction
from firesteel.errors import GraphError, SerializationError
from firesteel.graph.plan import JobPlan, PlannedOperator
from firesteel.graph.shipping import pack_plan, unpack_plan


def environment(parallelism: int = 2) -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)


def by_name(plan: JobPlan) -> dict[str, PlannedOperator]:
    return {operator.name: operator for operator in plan.operators}


def test_forward_edges_stay_in_their_level_and_others_start_the_next() -> None:
    env = environment()
    numbers = env.from_sequence(1, 10).name("numbers")
    keyed = numbers.map(abs).name("abs").key_by(lambda n: n % 3).reduce(max).name("reduce")
    keyed.map(str).name("str").print().name("print")
    operators = by_name(env.plan())
    assert {name: operator.level for name, operator in operators.items()} == {
        "numbers": 0, "abs": 0, "reduce": 1, "str": 1, "print": 1,
    }  # fmt: skip
    assert operators["abs"].inputs[0].direct
    assert not operators["reduce"].inputs[0].direct


def test_an_operator_that_starts_a_chain_is_chained_to_what_follows_it() -> None:
    env = environment()
    numbers = env.from_sequence(1, 10).name("numbers")
    numbers.map(abs).name("abs").map(str).name("str").start_new_chain().print().name("print")
    operators = by_name(env.plan())
    assert [operators[name].level for name in ("numbers", "abs", "str", "print")] == [0, 0, 1, 1]
    assert operators["print"].inputs[0].direct


def test_an_operator_without_chaining_is_chained_neither_to_what_is_before_nor_to_what_is_after_it() -> None:
    env = environment()
    numbers = env.from_sequence(1, 10).name("numbers")
    texts = numbers.map(abs).name("abs").map(str).name("str").disable_chaining()
    texts.print().name("print")
    texts.map(len).name("len").print().name("lengths")
    operators = by_name(env.plan())
    assert [operators[name].level for name in ("numbers", "abs", "str", "print", "len", "lengths")] == [
        0,
        0,
        1,
        2,
        2,
        2,
    ]
    assert [operators[name].inputs[0].direct for name in ("str", "print", "len", "lengths")] == [
        False,
        False,
        False,
        True,
    ]
    assert "level 2 (after a shuffle)\n  print [" in env.explain() and "<- str of level 1, forward" in env.explain()


def test_a_source_without_chaining_is_alone_in_its_level_and_the_last_word_about_chaining_counts() -> None:
    env = environment()
    numbers = env.from_sequence(1, 10).disable_chaining()
    numbers.map(abs).name("abs").disable_chaining().start_new_chain().print().name("print")
    operators = by_name(env.plan())
    assert [operators[name].level for name in ("abs", "print")] == [1, 1]


def test_a_union_takes_the_highest_level_and_passes_lower_ones_through() -> None:
    env = environment()
    early = env.from_sequence(1, 10).name("early")
    late = env.from_sequence(1, 10).key_by(lambda n: n).reduce(max).name("late")
    early.union(late).map(str).name("united").print()
    united = by_name(env.plan())["united"]
    assert united.level == 1
    assert [edge.direct for edge in united.inputs] == [False, True]


def test_differing_parallelism_means_rebalancing_unless_forward_was_asked_for() -> None:
    env = environment()
    numbers = env.from_sequence(1, 10)
    numbers.map(str).name("one").set_parallelism(1).print()
    assert by_name(env.plan())["one"].inputs[0].partitioning.value == "rebalance"
    numbers.forward().map(str).name("two").set_parallelism(1).print()
    with pytest.raises(GraphError, match=r"forward.*equal parallelism"):
        env.plan()


def test_uids_depend_only_on_an_operator_and_its_inputs() -> None:
    def plan(extra: bool) -> dict[str, PlannedOperator]:
        env = environment()
        numbers = env.from_sequence(1, 10)
        if extra:
            numbers.map(abs).name("extra").print("extra")
        numbers.key_by(lambda n: n).reduce(max).name("kept").print()
        return by_name(env.plan())

    assert plan(extra=False)["kept"].uid == plan(extra=True)["kept"].uid


def test_equal_operators_have_different_uids() -> None:
    env = environment()
    numbers = env.from_sequence(1, 10)
    for _ in range(2):
        numbers.map(abs).print()
    uids = [operator.uid for operator in env.plan().operators]
    assert len(set(uids)) == len(uids)


def test_a_uid_given_twice_is_refused_with_both_places() -> None:
    env = environment()
    numbers = env.from_sequence(1, 10)
    numbers.map(abs).uid("same").print()
    numbers.map(str).uid("same").print()
    with pytest.raises(GraphError, match=r"'same' is used by 2 operators.*test_plan.py:\d+"):
        env.plan()


def test_parallelism_above_max_parallelism_is_refused() -> None:
    env = environment().set_max_parallelism(4)
    env.from_sequence(1, 10).map(abs).name("wide").set_parallelism(5).print()
    with pytest.raises(GraphError, match=r"'wide' .*parallelism 5, above its maximum parallelism 4"):
        env.plan()


@pytest.mark.parametrize("parallelism", [0, -1, 1.5, True, "2"])
def test_a_parallelism_that_is_no_positive_whole_number_is_refused(parallelism: object) -> None:
    with pytest.raises(GraphError, match="whole number of at least 1"):
        environment().set_parallelism(parallelism)  # type: ignore[arg-type]


def test_a_program_without_a_sink_is_refused() -> None:
    env = environment()
    env.from_sequence(1, 10).map(abs)
    with pytest.raises(GraphError, match="no sink"):
        env.plan()


class Keyed(KeyedProcessFunction):
    def process_element(self, value, ctx):  # type: ignore[no-untyped-def]
        yield value


class Plain(ProcessFunction):
    def process_element(self, value, ctx):  # type: ignore[no-untyped-def]
        yield value


def test_process_functions_of_the_wrong_kind_are_refused() -> None:
    numbers = environment().from_sequence(1, 10)
    with pytest.raises(GraphError, match="call key_by"):
        numbers.process(Keyed())  # type: ignore[arg-type]
    with pytest.raises(GraphError, match="takes a KeyedProcessFunction"):
        numbers.key_by(abs).process(Plain())  # type: ignore[arg-type]


def test_explain_shows_levels_operators_edges_and_parallelism() -> None:
    env = environment()
    lines = env.from_collection(["a b"]).name("lines").uid("lines")
    counts = lines.flat_map(str.split).name("split").uid("split").key_by(len).reduce(max).name("longest").uid("longest")
    counts.print().name("out").uid("out")
    assert (
        env.explain("words")
        == """\
words: 4 operators in 3 levels on 2 slots

level 0 (reads the sources)
  lines [Read, x1, uid lines]

level 1 (after a shuffle)
  split [FlatMap, x2, uid split]
    <- lines of level 0, rebalanced

level 2 (after a shuffle)
  longest [Reduce, keyed, x2, uid longest]
    <- split of level 1, by key
    out [Write, x2, uid out]

guarantee: no guarantee, because checkpointing is off: a failure ends the job, and what it had processed by then is not \
known. Turn it on with enable_checkpointing(interval)"""
    )


def test_a_plan_survives_the_way_to_a_slot() -> None:
    env = environment()
    offset = 5
    env.from_sequence(1, 10).map(lambda n: n + offset).name("add").print()
    operators = by_name(unpack_plan(pack_plan(env.plan())))
    assert operators["add"].operator.function(1) == 6  # type: ignore[union-attr]


class HoldsALock(KeyedProcessFunction):
    def __init__(self) -> None:
        self.guard = threading.Lock()

    def process_element(self, value, ctx):  # type: ignore[no-untyped-def]
        yield value


def test_a_function_that_cannot_be_pickled_is_named_with_its_culprit_and_place() -> None:
    env = environment()
    lock = threading.Lock()
    env.from_sequence(1, 10).map(lambda n: (n, lock.locked())).name("locked").print()
    with pytest.raises(SerializationError, match=r"'locked' .*test_plan.py:\d+.*closing over 'lock' is a _thread.lock"):
        pack_plan(env.plan())
    env = environment()
    env.from_sequence(1, 10).key_by(abs).process(HoldsALock()).name("holder").print()
    with pytest.raises(SerializationError, match=r"'holder' .*function.guard is a _thread.lock.*open\(\)"):
        pack_plan(env.plan())


def test_explain_shows_descriptions_in_one_line() -> None:
    env = environment()
    numbers = env.from_sequence(1, 10).map(abs).uid("abs").set_description("without\n  their signs")
    numbers.print().uid("out").name("out").set_description("out")
    assert "Map [Map, x2, uid abs]: without their signs\n" in env.explain()
    assert "out [Write, x2, uid out]\n" in env.explain(), "the name is not said twice"
