"""Typed keyed state, written once over the store interface."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firesteel.datastream.state import StateDescriptor, ValueState, ValueStateDescriptor
from firesteel.errors import StateError
from firesteel.state.store import Store, Table


class KeyedState:
    """One operator's keyed state in one subtask. Setting `key` is all that switching to another key takes."""

    __slots__ = ("_handles", "key", "store")

    def __init__(self, store: Store) -> None:
        self.key: Any = None
        self.store = store
        self._handles: dict[str, tuple[StateDescriptor, Any]] = {}

    def value_state(self, descriptor: ValueStateDescriptor) -> ValueState[Any]:
        if not isinstance(descriptor, ValueStateDescriptor):
            raise StateError(f"get_state() takes a ValueStateDescriptor, not {descriptor!r:.200}")
        known = self._handles.get(descriptor.name)
        if known is not None:
            if known[0].type_info != descriptor.type_info:
                raise StateError(
                    f"state {descriptor.name!r} is registered with type {known[0].type_info} and again with "
                    f"{descriptor.type_info}; one name has one type"
                )
            return known[1]  # type: ignore[no-any-return]
        handle = KeyedValueState(self, self.store.table(descriptor.name, descriptor.kind))
        self._handles[descriptor.name] = descriptor, handle
        return handle


class KeyedValueState(ValueState[Any]):
    """A table's accessors under the names users know; slots, so that a call is one attribute and one function."""

    __slots__ = ("clear", "update", "value")
    value: Callable[[], Any]
    update: Callable[[Any], None]  # type: ignore[assignment]
    clear: Callable[[], None]

    def __init__(self, keyed: KeyedState, table: Table) -> None:
        self.value, self.update, self.clear = table.bind(keyed)
