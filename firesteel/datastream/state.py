"""State as functions see it: descriptors name it, handles read and write it. Keyed state is that of the current key,
operator state that of the subtask."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from firesteel.common.typeinfo import TypeInformation, Types
from firesteel.datastream.functions import AggregateFunction, ReduceFunction
from firesteel.datastream.state_ttl import StateTtlConfig

__all__ = [
    "AggregatingState",
    "AggregatingStateDescriptor",
    "AppendingState",
    "BroadcastState",
    "ListState",
    "ListStateDescriptor",
    "MapState",
    "MapStateDescriptor",
    "MergingState",
    "OperatorStateStore",
    "ReadOnlyBroadcastState",
    "ReducingState",
    "ReducingStateDescriptor",
    "State",
    "StateDescriptor",
    "StateTtlConfig",
    "ValueState",
    "ValueStateDescriptor",
]

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
IN = TypeVar("IN")
OUT = TypeVar("OUT")


class State(ABC):
    """State of the current key."""

    @abstractmethod
    def clear(self) -> None:
        """Remove the current key's value."""


class ValueState(State, Generic[T]):
    """One value for each key.

    Changing a value in place is not seen by checkpoints; always call `update`.
    """

    @abstractmethod
    def value(self) -> T | None:
        """The current key's value, None when there is none."""

    @abstractmethod
    def update(self, value: T | None) -> None:
        """Set the current key's value; None removes it."""


class AppendingState(State, Generic[IN, OUT]):
    """State that values are added to."""

    @abstractmethod
    def get(self) -> OUT | None:
        """What was added to the current key; None when nothing was, and for a list no elements."""

    @abstractmethod
    def add(self, value: IN) -> None:
        """Add a value to the current key."""


class MergingState(AppendingState[IN, OUT]):
    """State that two keys' worth of can be merged, as windows do when they grow together."""


class ReducingState(MergingState[T, T]):
    """The values added to a key, combined into one by a `ReduceFunction`."""


class AggregatingState(MergingState[IN, OUT]):
    """The values added to a key, folded into the accumulator of an `AggregateFunction`; `get` gives its result."""


class ListState(MergingState[T, Iterable[T]]):
    """A list for each key. Adding to it does not read it, however long it is."""

    @abstractmethod
    def get(self) -> Iterable[T]:
        """The current key's elements, in the order they were added; none when there are none."""

    @abstractmethod
    def update(self, values: Iterable[T]) -> None:
        """Replace the current key's elements."""

    @abstractmethod
    def add_all(self, values: Iterable[T]) -> None:
        """Add elements to the current key."""

    def __iter__(self) -> Iterator[T]:
        return iter(self.get())


class _ReadableMap(State, Generic[K, V]):
    @abstractmethod
    def get(self, key: K) -> V | None:
        """The value under this map key, None when there is none."""

    @abstractmethod
    def contains(self, key: K) -> bool:
        """Whether there is an entry under this map key."""

    @abstractmethod
    def items(self) -> Iterable[tuple[K, V]]:
        """All entries as pairs."""

    @abstractmethod
    def keys(self) -> Iterable[K]:
        """All map keys."""

    @abstractmethod
    def values(self) -> Iterable[V]:
        """All values."""

    @abstractmethod
    def is_empty(self) -> bool: ...

    def __getitem__(self, key: K) -> V | None:
        return self.get(key)

    def __contains__(self, key: K) -> bool:
        return self.contains(key)

    def __iter__(self) -> Iterator[K]:
        return iter(self.keys())


class _WritableMap(_ReadableMap[K, V]):
    @abstractmethod
    def put(self, key: K, value: V) -> None:
        """Set the value under this map key."""

    @abstractmethod
    def put_all(self, dict_value: Mapping[K, V]) -> None:
        """Set the values under all of these map keys."""

    @abstractmethod
    def remove(self, key: K) -> None:
        """Remove the entry; nothing happens when there is none."""

    def __setitem__(self, key: K, value: V) -> None:
        self.put(key, value)

    def __delitem__(self, key: K) -> None:
        self.remove(key)


class MapState(_WritableMap[K, V]):
    """A map for each key, of which each entry is read and written for itself."""


class ReadOnlyBroadcastState(_ReadableMap[K, V]):
    """A map that is the same on every subtask, as the side that is not broadcast sees it. It cannot be changed here; the
    values must not be changed in place."""


class BroadcastState(ReadOnlyBroadcastState[K, V], _WritableMap[K, V]):
    """A map that is the same on every subtask, as the broadcast side sees it.

    Every subtask has its own copy and gets every broadcast record. They stay the same as long as what is done with a
    record depends on the record and on the map only; nobody checks that.
    """


class OperatorStateStore(ABC):
    """Gives out operator state by its descriptor: that of a subtask, whichever keys it has. To be asked in
    `initialize_state` of a `CheckpointedFunction`.

    The kinds differ in who gets what when a checkpoint is restored.
    """

    @abstractmethod
    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        """A map that the function keeps the same on all subtasks. When the parallelism changes, everybody gets a copy."""

    @abstractmethod
    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """A list. When the parallelism changes, those of all subtasks are put together and split evenly."""

    @abstractmethod
    def get_union_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """A list of which every subtask is given the elements of all, whether the parallelism changes or not. So take
        out what is this subtask's before the next checkpoint, or the elements multiply."""


class StateDescriptor(ABC):
    """A state's name, unique within its operator, and the type of what it holds."""

    kind: str

    def __init__(self, name: str, type_info: TypeInformation | None = None) -> None:
        if not isinstance(name, str) or not name:
            raise TypeError(f"a state's name must be a non-empty string, not {name!r}")
        self.name = name
        self.type_info = None if type_info is None else _check_type(name, type_info)
        self._ttl_config: StateTtlConfig | None = None

    def get_name(self) -> str:
        return self.name

    def enable_time_to_live(self, ttl_config: StateTtlConfig) -> None:
        """Let values expire."""
        if not isinstance(ttl_config, StateTtlConfig):
            raise TypeError(f"the time to live of state {self.name!r} must be a StateTtlConfig, not {ttl_config!r}")
        self._ttl_config = ttl_config

    @property
    def ttl_config(self) -> StateTtlConfig | None:
        """The time to live, None when values do not expire."""
        config = self._ttl_config
        return config if config is not None and config.is_enabled() else None


class ValueStateDescriptor(StateDescriptor):
    """Describes a `ValueState`."""

    kind = "value"

    def __init__(self, name: str, value_type_info: TypeInformation | None = None) -> None:
        super().__init__(name, value_type_info)


class ListStateDescriptor(StateDescriptor):
    """Describes a `ListState`; `type_info` is that of the list."""

    kind = "list"

    def __init__(self, name: str, elem_type_info: TypeInformation | None = None) -> None:
        super().__init__(name, Types.LIST(_check_type(name, elem_type_info)))


class MapStateDescriptor(StateDescriptor):
    """Describes a `MapState`; `type_info` is that of the map."""

    kind = "map"

    def __init__(
        self,
        name: str,
        key_type_info: TypeInformation | None = None,
        value_type_info: TypeInformation | None = None,
    ) -> None:
        super().__init__(name, Types.MAP(_check_type(name, key_type_info), _check_type(name, value_type_info)))


class ReducingStateDescriptor(StateDescriptor):
    """Describes a `ReducingState`."""

    kind = "reducing"

    def __init__(
        self,
        name: str,
        reduce_function: ReduceFunction | Callable[[Any, Any], Any],
        type_info: TypeInformation | None = None,
    ) -> None:
        super().__init__(name, type_info)
        if not isinstance(reduce_function, ReduceFunction) and not callable(reduce_function):
            raise TypeError(
                f"reducing state {name!r} takes a ReduceFunction or a function of two values, not {reduce_function!r:.200}"
            )
        self._reduce_function = reduce_function

    @property
    def reduce_function(self) -> Callable[[Any, Any], Any]:
        """The function itself, whichever way it was given."""
        given = self._reduce_function
        return given.reduce if isinstance(given, ReduceFunction) else given

    def get_reduce_function(self) -> ReduceFunction:
        given = self._reduce_function
        return given if isinstance(given, ReduceFunction) else _Reduce(given)


class AggregatingStateDescriptor(StateDescriptor):
    """Describes an `AggregatingState`; the type is that of the accumulator."""

    kind = "aggregating"

    def __init__(
        self, name: str, agg_function: AggregateFunction, state_type_info: TypeInformation | None = None
    ) -> None:
        super().__init__(name, state_type_info)
        if not isinstance(agg_function, AggregateFunction):
            raise TypeError(f"aggregating state {name!r} takes an AggregateFunction, not {agg_function!r:.200}")
        self.agg_function = agg_function

    def get_agg_function(self) -> AggregateFunction:
        return self.agg_function


class _Reduce(ReduceFunction):
    """A plain function as a ReduceFunction."""

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        self._function = function

    def reduce(self, value1: Any, value2: Any) -> Any:
        return self._function(value1, value2)


def _check_type(state: str, type_info: TypeInformation | None) -> TypeInformation:
    if type_info is None:
        return Types.PICKLED_BYTE_ARRAY()
    if not isinstance(type_info, TypeInformation):
        raise TypeError(f"the type of state {state!r} must be a TypeInformation such as Types.INT(), not {type_info!r}")
    return type_info
