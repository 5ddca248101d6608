"""What every table promises, and the layouts there are.

A table holds the entries of one state of one operator in one subtask. It remembers what changed since the last
*completed* checkpoint, so that a checkpoint which was dropped on the way leaves no hole: its changes are part of the
next one. A delta may also meet a later base than it was made for (the completion is told while the delta is on its way
to the disk), so applied to any checkpoint between its base and its barrier it must give the state at the barrier.

States are bound to whoever knows the current key, once; what runs for every record are the closures that `bind` gives.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

from firesteel.errors import StateError

Entry = tuple[Any, Any]


class CurrentKey(Protocol):
    """Whoever knows which key is being processed."""

    key: Any


class Table(ABC):
    """One state of one operator in one subtask."""

    composite: ClassVar[bool] = False
    """A key may have several entries: a scan's entry keys are pairs (key, something)."""

    grouped: ClassVar[bool] = True
    """Keys have key groups. If not, everything belongs to NO_GROUP."""

    windowed: ClassVar[bool] = False
    """All keys are namespaced: a key comes first in them."""

    @abstractmethod
    def scan(self, groups: Container[int] | None = None) -> Iterator[Entry]:
        """Every entry, or those of these key groups, each as it is when its turn comes.

        The table may change while a scan is under way; whether it gives what was added meanwhile is left open.
        """

    @abstractmethod
    def __len__(self) -> int:
        """How many entries there are."""

    @abstractmethod
    def load(self, keys: list[Any], values: list[Any], deleted: list[Any]) -> None:
        """Take part of a restored checkpoint, changes as layouts.py describes them; it does not count as a change."""

    @abstractmethod
    def barrier(self, checkpoint: int) -> tuple[list[Entry], list[Any]]:
        """What changed since the last completed checkpoint, up to now, which is barrier `checkpoint`: pairs of a key and its
        change (layouts.py), and the keys of which nothing is left."""

    @abstractmethod
    def touch(self) -> None:
        """Count everything as changed: the next delta is put on nothing."""

    @abstractmethod
    def completed(self, checkpoint: int) -> None:
        """That checkpoint is the base of the deltas to come."""

    @abstractmethod
    def forget_changes(self) -> None:
        """Nobody will ask for a delta: drop what was noted for it."""


Accessors = tuple[Callable[[], Any], Callable[[Any], None], Callable[[], None]]
"""Read, write and delete the current key's value; writing None deletes it."""


Begin = Callable[[Any], Any]
GoOn = Callable[[Any, Any], Any]


class ValueTable(Table):
    """A value under each key. No value is ever None: None means absent."""

    @abstractmethod
    def get(self, key: Any) -> Any: ...

    @abstractmethod
    def put(self, key: Any, value: Any) -> None: ...

    @abstractmethod
    def delete(self, key: Any) -> None: ...

    @abstractmethod
    def bind(self, current: CurrentKey) -> Accessors:
        """Accessors of the current key's value, as cheap as the store can make them: they run for every record."""

    def fold(
        self, current: CurrentKey, key_of: Callable[[Any], Any], reduce: Callable[[Any, Any], Any]
    ) -> Callable[[Any], Any]:
        """What reduces the value of a record's key with the record, and gives the new value: `bind` in one call."""
        get, put = self.get, self.put

        def step(record: Any) -> Any:
            current.key = key = key_of(record)
            before = get(key)
            result = record if before is None else reduce(before, record)
            put(key, result)
            return result

        return step

    def insides(self) -> tuple[dict[Any, Any], dict[Any, Any], object] | None:
        """What was written since the last barrier, what was there before it, and what marks a deleted value: for loops that do
        what `fold` does for one function only. The dicts stay the same objects. None if the store has no such dicts."""
        return None

    def combine(self, keys: Sequence[Any], values: Iterator[Any], begin: Begin | None, go_on: GoOn) -> int:
        """Combine records into the values of their keys. Says how many: it stops before a record of None.

        :param begin: makes a value of a key's first record. None: the record is the value.
        :param go_on: makes another value of a value and a record; None deletes it.
        """
        current = _Current()
        read, write, _ = self.bind(current)
        for count, (key, record) in enumerate(zip(keys, values, strict=True)):
            if record is None:
                return count
            current.key = key
            before = read()
            if before is not None:
                write(go_on(before, record))
            else:
                write(record if begin is None else begin(record))
        return len(keys)


class _Current:
    """The key that is being combined."""

    key: Any = None


class MapAccessors(NamedTuple):
    """The current key's map. None is a value like others, which `get` cannot tell from absence; `contains` can."""

    get: Callable[[Any], Any]
    put: Callable[[Any, Any], None]
    put_all: Callable[[Mapping[Any, Any] | Iterable[tuple[Any, Any]]], None]
    remove: Callable[[Any], None]
    contains: Callable[[Any], bool]
    keys: Callable[[], Collection[Any]]
    values: Callable[[], Collection[Any]]
    items: Callable[[], Collection[tuple[Any, Any]]]
    is_empty: Callable[[], bool]
    clear: Callable[[], None]


class MapTable(Table):
    """A map under each key. Entry keys are (key, map key)."""

    composite = True

    @abstractmethod
    def bind(self, current: CurrentKey) -> MapAccessors: ...


class ListAccessors(NamedTuple):
    """The current key's list. No element is None. `get` gives what nobody can change."""

    get: Callable[[], tuple[Any, ...]]
    add: Callable[[Any], None]
    add_all: Callable[[Iterable[Any]], None]
    update: Callable[[Iterable[Any]], None]
    clear: Callable[[], None]


class ListTable(Table):
    """A list under each key. Entry keys are (key, index)."""

    composite = True

    @abstractmethod
    def bind(self, current: CurrentKey) -> ListAccessors: ...


def elements_of(values: Iterable[Any]) -> list[Any]:
    """A list of its own, so that the giver's changes to theirs do not go unnoticed."""
    new = list(values)
    for value in new:
        if value is None:
            raise no_none()
    return new


def no_none() -> StateError:
    return StateError("None cannot be an element of a list state")
