"""Partial results that wait over a barrier, as state.

They are where records come from (precombining.py), and belong to subtasks that may be elsewhere. So they are union list state
of the window operator: each of its subtasks gets everything when a checkpoint is restored, puts what its keys have into
its windows, and clears the list. Whatever the parallelism is then, and whether the program still combines records before it
sends them, they are in the windows before any record that came after them, as if they had been sent at the barrier.

An element is (kind of state, start and end of the window, keys, a value for each key, how many records they stand for). A
value may be None: nothing is left of its records.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from firesteel.errors import StateError
from firesteel.graph.keys import KeyGroups
from firesteel.state.files import UNION
from firesteel.state.operator import OperatorListTable
from firesteel.state.store import Store

WAITING = "/waiting"
"""The table of what has not been sent to a window operator's subtasks."""


class Element(NamedTuple):
    """What waits for one window in one slot. Saved as a plain tuple."""

    kind: str
    start: int
    end: int
    keys: Sequence[Any]
    values: Sequence[Any]
    records: int


class Sender(Protocol):
    """Who keeps partial results back."""

    def unsaved(self) -> bool:
        """Whether what waits has changed since it was saved."""

    def elements(self) -> Iterator[Element]:
        """All of it, to be saved."""


class Waiting:
    """What all senders of one slot keep back from one operator. A slot has this for operators it has a subtask of."""

    def __init__(self, store: Store) -> None:
        self._table: OperatorListTable = store.operator_list_table(WAITING, UNION)
        self._senders: list[Sender] = []

    def add(self, sender: Sender) -> None:
        self._senders.append(sender)

    def save(self) -> None:
        """At a barrier."""
        if any(sender.unsaved() for sender in self._senders):
            self._table.update(tuple(each) for sender in self._senders for each in sender.elements())


def take_waiting(store: Store, kind: str, mine: Container[int], put: Callable[[Element], None]) -> int:
    """Hand what waited to the one whose key groups these are, once. Gives how many records that were.

    :param kind: of the state that it goes into.
    """
    if WAITING not in store.operator_tables():
        return 0
    table = store.operator_list_table(WAITING, UNION)
    records = 0
    for found in table.get():
        element = Element(*found)
        if element.kind != kind:
            raise StateError(
                f"the windows in the checkpoint hold {element.kind} state, and those of the program do not. Give the operator "
                f"another uid to begin with empty windows"
            )
        part = _part(element, store.key_groups, mine)
        records += part.records
        put(part)
    table.clear()
    return records


def _part(element: Element, groups: KeyGroups, mine: Container[int]) -> Element:
    """What of it is in these key groups. Who has the first key counts all records."""
    own = [pair for pair in zip(element.keys, element.values, strict=True) if groups.of(pair[0]) in mine]
    counts = bool(own) and own[0][0] == element.keys[0]
    own = [(key, value) for key, value in own if value is not None]
    keys, values = [key for key, _ in own], [value for _, value in own]
    return element._replace(keys=keys, values=values, records=element.records if counts else 0)
