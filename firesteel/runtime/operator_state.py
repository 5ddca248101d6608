"""Typed operator state: what functions see of the tables that belong to their subtask."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NoReturn

from firesteel.datastream.state import (
    BroadcastState,
    ListState,
    ListStateDescriptor,
    MapStateDescriptor,
    OperatorStateStore,
    ReadOnlyBroadcastState,
    State,
    StateDescriptor,
)
from firesteel.errors import StateError
from firesteel.graph.plan import PlannedOperator
from firesteel.runtime.keyed_state import RESERVED
from firesteel.state.files import BROADCAST, LIST, UNION
from firesteel.state.operator import BroadcastTable, OperatorListTable
from firesteel.state.store import Store

_NAMES = {LIST: "operator list state", UNION: "union list state", BROADCAST: "broadcast state"}


class OperatorState(OperatorStateStore):
    """One operator's operator state in one subtask. A name has one state, and one kind and type."""

    def __init__(self, operator: PlannedOperator, store: Store) -> None:
        self._operator, self._store = operator, store
        self._known: dict[str, tuple[str, StateDescriptor, State]] = {}

    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        return self._state("get_list_state", LIST, state_descriptor, ListStateDescriptor)  # type: ignore[return-value]

    def get_union_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        return self._state(  # type: ignore[return-value]
            "get_union_list_state", UNION, state_descriptor, ListStateDescriptor
        )

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> SlotBroadcastState:
        return self._state(  # type: ignore[return-value]
            "get_broadcast_state", BROADCAST, state_descriptor, MapStateDescriptor
        )

    def _state(self, method: str, kind: str, descriptor: Any, wanted: type[StateDescriptor]) -> State:
        if not isinstance(descriptor, wanted):
            raise StateError(f"{method}() takes a {wanted.__name__}, not {descriptor!r:.200}, in {self._operator}")
        name = descriptor.name
        known = self._known.get(name)
        if known is not None:
            self._check_same(known[0], known[1], kind, descriptor)
            return known[2]
        if name.startswith(RESERVED):
            raise StateError(f"state {name!r} cannot have that name: those beginning with {RESERVED!r} are reserved")
        if descriptor.ttl_config is not None:
            raise StateError(
                f"{_NAMES[kind]} {name!r} of {self._operator} has time-to-live, which is for keyed state only"
            )
        handle: State
        try:
            if kind == BROADCAST:
                handle = SlotBroadcastState(self._store.broadcast_table(name))
            else:
                handle = OperatorListState(self._store.operator_list_table(name, kind))
        except StateError as error:  # another kind, in the checkpoint or among its keyed states
            raise StateError(f"{error}. It is used by {self._operator}") from None
        self._known[name] = kind, descriptor, handle
        return handle

    def _check_same(self, kind: str, known: StateDescriptor, again: str, descriptor: StateDescriptor) -> None:
        for how, before, now in (
            ("as", _NAMES[kind], _NAMES[again]),
            ("with type", known.type_info, descriptor.type_info),
        ):
            if before != now:
                raise StateError(
                    f"state {known.name!r} of {self._operator} is registered {how} {before} and again {how} {now}; one name "
                    f"has one type"
                )


class OperatorListState(ListState[Any]):
    """`get` gives a tuple: what is not added through the state would be lost, so nothing can be added to it."""

    __slots__ = ("add", "add_all", "clear", "get", "update")
    get: Callable[[], tuple[Any, ...]]
    add: Callable[[Any], None]  # type: ignore[assignment]
    add_all: Callable[[Iterable[Any]], None]  # type: ignore[assignment]
    update: Callable[[Iterable[Any]], None]  # type: ignore[assignment]
    clear: Callable[[], None]

    def __init__(self, table: OperatorListTable) -> None:
        self.get, self.add, self.add_all, self.update, self.clear = (
            table.get,
            table.add,
            table.add_all,
            table.update,
            table.clear,
        )


class _BroadcastReading:
    """`keys`, `values` and `items` are views, like those of a dict: adding or removing entries ends an iteration of them
    with RuntimeError, so iterate over a list of them for that."""

    __slots__ = ("_data", "contains", "get", "items", "keys", "values")
    get: Callable[[Any], Any]
    contains: Callable[[Any], bool]
    keys: Callable[[], Collection[Any]]
    values: Callable[[], Collection[Any]]
    items: Callable[[], Collection[tuple[Any, Any]]]

    def __init__(self, table: BroadcastTable) -> None:
        self._data = data = table.data
        self.get, self.contains = data.get, data.__contains__
        self.keys, self.values, self.items = data.keys, data.values, data.items

    def is_empty(self) -> bool:
        return not self._data


class SlotBroadcastState(_BroadcastReading, BroadcastState[Any, Any]):
    """Broadcast state for those who may change it."""

    __slots__ = ("clear", "put", "put_all", "remove", "table")
    put: Callable[[Any, Any], None]  # type: ignore[assignment]
    put_all: Callable[[Mapping[Any, Any]], None]  # type: ignore[assignment]
    remove: Callable[[Any], None]  # type: ignore[assignment]
    clear: Callable[[], None]

    def __init__(self, table: BroadcastTable) -> None:
        super().__init__(table)
        self.table = table
        self.put, self.put_all, self.remove, self.clear = table.put, table.put_all, table.remove, table.clear


class ReadOnlySlotBroadcastState(_BroadcastReading, ReadOnlyBroadcastState[Any, Any]):
    """Broadcast state for those who may not."""

    def __init__(self, name: str, table: BroadcastTable) -> None:
        super().__init__(table)
        self._name = name

    def _refuse(self, *_: Any) -> NoReturn:
        raise StateError(
            f"broadcast state {self._name!r} can be changed in process_broadcast_element() only: it has to be the same on "
            f"every subtask, and only broadcast records reach them all"
        )

    put = put_all = remove = clear = __setitem__ = __delitem__ = _refuse
