"""The states of windows: what is in them, what their triggers and functions keep.

They are typed states like users', in scopes of their own whose current key is the pair of a key and one of its windows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from firesteel.datastream.functions import AggregateFunction, ReduceFunction
from firesteel.datastream.rolling import RollingField
from firesteel.datastream.window.time_windows import AlignedWindows
from firesteel.errors import StateError
from firesteel.graph import nodes
from firesteel.graph.keys import namespaced
from firesteel.runtime.callables import method_of
from firesteel.runtime.keyed_state import KeyedAggregatingState, KeyedListState, KeyedReducingState, KeyedState, merged
from firesteel.state.store import Store, ValueTable, WindowTable

CONTENTS, RECORDS = "/window-contents", "/window-records"
"""What is in windows; the second one where an evictor needs the records' timestamps too."""

TRIGGER, WINDOW = "/trigger/", "/window/"
"""Begin the names of triggers' states and of window functions' per-window states."""


class WindowScope:
    """States of one kind. Entering a window is all that switching to it takes."""

    __slots__ = ("states",)

    def __init__(self, keyed: KeyedState, prefix: str = "") -> None:
        self.states = keyed.scoped(prefix)

    def enter(self, key: Any, window: Any) -> None:
        self.states.key = namespaced(key, window)

    def unite(self, state: Any, key: Any, target: Any, sources: Iterable[Any]) -> None:
        """Put what a state holds for some windows of a key into that for another one, which is entered then."""
        for source in sources:
            self.enter(key, source)
            stored = state.take()
            self.enter(key, target)
            if stored is not None:
                state.absorb(stored)
        self.enter(key, target)


def contents_of(kind: nodes.Window, scope: WindowScope) -> KeyedListState | KeyedReducingState | KeyedAggregatingState:
    """What is in the window that the scope has entered."""
    states, store = scope.states, scope.states.store
    if kind.combine is None or kind.evictor is not None:
        name = CONTENTS if kind.evictor is None else RECORDS
        return KeyedListState(store.list_table(name).bind(states))
    shared = contents_table(kind, store)
    table: ValueTable = store.value_table(CONTENTS, combined_kind(kind)) if shared is None else shared
    if isinstance(kind.combine, AggregateFunction):
        return KeyedAggregatingState(table.bind(states), kind.combine)
    return KeyedReducingState(table.bind(states), method_of(kind.combine, ReduceFunction, "reduce"))


def contents_table(kind: nodes.Window, store: Store) -> WindowTable | None:
    """The table of what records were combined into, if it is kept by window: where many keys share one."""
    if kind.combine is None or kind.evictor is not None or not isinstance(kind.assigner, AlignedWindows):
        return None
    return store.window_table(CONTENTS, combined_kind(kind))


def combined_kind(kind: nodes.Window) -> str:
    """The kind of state that a window's records are combined into."""
    return "aggregating" if isinstance(kind.combine, AggregateFunction) else "reducing"


def merge_of(kind: nodes.Window, example: Any) -> Callable[[Any, Any], Any]:
    """What merges two values, like this one, that records of one window were combined into."""
    if isinstance(kind.combine, RollingField):
        return kind.combine.reducing(example)
    if not isinstance(kind.combine, AggregateFunction):
        reduce: Callable[[Any, Any], Any] = method_of(kind.combine, ReduceFunction, "reduce")
        return reduce
    return partial(merged, kind.combine)


def check_contents(kind: nodes.Window, store: Store) -> None:
    """
    :raises StateError: the windows restored were written with an evictor and are to be read without one, or vice versa.
    """
    other, was = (RECORDS, "with") if kind.evictor is None else (CONTENTS, "without")
    if any(name == other and len(table) for name, _, table in store.tables()):
        raise StateError(
            f"the windows in the checkpoint were filled {was} an evictor, which keeps other things than are needed now. Give "
            f"the operator another uid to begin with empty windows"
        )
