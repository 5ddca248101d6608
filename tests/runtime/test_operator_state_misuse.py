"""What cannot be done with operator state, and how that is said."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import RestartStrategies, Types
from firesteel.datastream import (
    CheckpointedFunction,
    FunctionInitializationContext,
    FunctionSnapshotContext,
    ListStateDescriptor,
    MapFunction,
)
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.errors import FiresteelError, GraphError, RestoreError, SerializationError, StateError, UserCodeError
from firesteel.testing import GraphHarness
from tests.runtime.test_operator_state import Numbering, environment, numbers
from tests.support.local_engine import LocalRun
from tests.support.slicing import Sliced


class Asking(MapFunction, CheckpointedFunction):
    """Does something with its context in `initialize_state`, and perhaps later."""

    def __init__(self, ask: Any, later: Any = None, at_snapshot: Any = None) -> None:
        self.ask, self.later, self.at_snapshot = ask, later, at_snapshot

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        self.context = context
        self.got = self.ask(context)

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        self.snapshot = context
        if self.at_snapshot is not None:
            self.at_snapshot(self)

    def map(self, value: int) -> int:
        if self.later is not None and hasattr(self, "snapshot"):
            self.later(self)
        return value


def failure_of(tmp_path: Path, *arguments: Any) -> FiresteelError:
    env = environment()
    env.set_restart_strategy(RestartStrategies.no_restart())
    source = env.from_source(Sliced(NumberSequenceSource(1, 5000), 5), source_name="numbers")
    source.map(Asking(*arguments)).name("asking").add_sink(lambda value: None)
    with pytest.raises(FiresteelError) as caught:
        LocalRun(env, str(tmp_path)).run()
    assert "asking" in str(caught.value)
    return caught.value


def state_store(context: FunctionInitializationContext) -> Any:
    return context.get_operator_state_store()


LONGS, STRINGS = ListStateDescriptor("x", Types.LONG()), ListStateDescriptor("x", Types.STRING())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (lambda c: (state_store(c).get_list_state(LONGS), state_store(c).get_union_list_state(LONGS)),),
            "'x' .* is registered as operator list state and again as union list state",
        ),
        (
            (lambda c: (state_store(c).get_list_state(LONGS), state_store(c).get_list_state(STRINGS)),),
            "one name has one type",
        ),
        (
            (lambda c: state_store(c).get_broadcast_state(LONGS),),
            r"get_broadcast_state\(\) takes a MapStateDescriptor",
        ),
        ((lambda c: state_store(c).get_list_state(ListStateDescriptor("/x")),), "reserved"),
        ((lambda c: c.get_keyed_state_store(),), r"not keyed. Call key_by"),
        ((lambda c: None, lambda f: f.context.get_operator_state_store()), "after that call"),
        (
            (lambda c: None, lambda f: f.snapshot.get_raw_operator_state_output().write(b"x")),
            "outside of snapshot_state",
        ),
        (
            (lambda c: None, None, lambda f: f.snapshot.get_raw_operator_state_output().write("text")),
            "is bytes, not 'text'",
        ),
        ((lambda c: state_store(c).get_list_state(LONGS).add(None),), "None cannot be an element"),
    ],
)
def test_what_cannot_be_is_refused_by_name(tmp_path: Path, arguments: tuple[Any, ...], message: str) -> None:
    error = failure_of(tmp_path, *arguments)
    assert isinstance(error, StateError)
    assert re.search(message, str(error)), str(error)


def test_what_cannot_be_pickled_is_named_with_its_state_and_operator(tmp_path: Path) -> None:
    error = failure_of(
        tmp_path,
        lambda c: state_store(c).get_list_state(ListStateDescriptor("locks")),
        None,
        lambda f: f.got.update([threading.Lock()]),
    )
    assert isinstance(error, SerializationError)
    assert "operator-list state 'locks'" in str(error) and "lock" in str(error)


def test_an_exception_in_snapshot_state_is_the_users(tmp_path: Path) -> None:
    error = failure_of(tmp_path, lambda c: None, None, lambda f: 1 / 0)
    assert isinstance(error, UserCodeError)
    assert "ZeroDivisionError" in str(error) and "in snapshot_state()" in str(error)


def test_state_restored_as_another_kind_is_refused(tmp_path: Path) -> None:
    for ask, fits in (("get_list_state", True), ("get_union_list_state", False)):
        env = environment()
        function = Asking(lambda c, ask=ask: getattr(state_store(c), ask)(LONGS), lambda f: f.got.add(1))
        numbers(env, 30).map(function).uid("asking").print()
        with GraphHarness(env, epoch_records=10, directory=str(tmp_path)) as harness:
            if fits:
                harness.step(2)
            else:
                with pytest.raises(StateError, match="'x' is a operator-list state already"):
                    harness.step(1)


def test_an_operator_with_operator_state_cannot_vanish_from_a_program(tmp_path: Path) -> None:
    env = environment()
    numbers(env, 20).map(Numbering()).uid("counts").print()
    LocalRun(env, str(tmp_path)).run()
    env = environment()
    numbers(env, 20).print()
    with pytest.raises(RestoreError, match=r"would be lost: 'Map' \(uid counts\)"):
        LocalRun(env, str(tmp_path)).run()


def test_a_source_function_cannot_be_checkpointed() -> None:
    class Source(Numbering):
        def run(self, ctx: Any) -> None:
            """Pushes nothing."""

    with pytest.raises(GraphError, match="Derive from Source"):
        environment().add_source(Source())
