"""Finds state that is changed in place: a value handed out by a state, or given to it, and changed without telling.

Such a change works until a checkpoint is restored, or until the value has been written out and is read again; then it
was never made. Here every value that passes through a state is pickled as it passes, and compared when it must be what
the state believes it to be. The tables are the real ones; only their accessors are wrapped, and only under a harness.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from firesteel.errors import FiresteelError, StateError
from firesteel.graph.keys import KeyGroups
from firesteel.state.hashmap import HashMapListTable, HashMapMapTable, HashMapStore, HashMapValueTable
from firesteel.state.store import (
    TTL,
    WINDOWS,
    Accessors,
    CurrentKey,
    ListAccessors,
    ListTable,
    MapAccessors,
    MapTable,
    ValueTable,
)

_ATOMS = frozenset((type(None), bool, int, float, complex, str, bytes))
_WHOLE = object()  # in the place of a list index or map key, for a state that has one value


class MutationError(FiresteelError):
    """A value was changed in place after it was given away, so that the change is lost or appears where it should not."""


class Held:
    """An object as it was when it passed."""

    __slots__ = ("_data", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self._data = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)

    @property
    def before(self) -> Any:
        return pickle.loads(self._data)

    def changed(self) -> bool:
        """Whether it is another by now. Objects may cache things in themselves, so their own idea of equality counts."""
        try:
            if pickle.dumps(self.value, protocol=pickle.HIGHEST_PROTOCOL) == self._data:
                return False
            return not bool(self.before == self.value)
        except Exception:  # noqa: BLE001  it cannot be pickled or compared any more: certainly not as it was
            return True


def is_atomic(value: Any) -> bool:
    """Whether nobody can change it in place."""
    return type(value) in _ATOMS or (type(value) is tuple and all(map(is_atomic, value)))


class Watch:
    """Everything one table handed out or was given."""

    def __init__(self, owner: str, name: str, kind: str) -> None:
        self._owner, self._name, self._kind = owner, name, kind
        self._held: dict[Any, dict[Any, Held]] = {}
        self._recent: dict[tuple[Any, Any], None] = {}

    def read(self, key: Any, part: Any, value: Any) -> None:
        """Handed out. If it is known already, it still has to be what it was when it was first seen."""
        if not is_atomic(value):
            known = self._held.get(key, {}).get(part)
            if known is None or known.value is not value:
                self.written(key, part, value)
            self._recent[key, part] = None

    def written(self, key: Any, part: Any, value: Any) -> None:
        """Given to the state: this is what it has to be from now on."""
        if is_atomic(value):
            self._held.get(key, {}).pop(part, None)
            return
        try:
            held = Held(value)
        except Exception as error:
            raise StateError(
                f"the value {value!r:.200} of type {type(value).__qualname__} cannot be pickled, so the {self._kind} state "
                f"{self._name!r} could not be part of a checkpoint: {error}"
            ) from error
        self._held.setdefault(key, {})[part] = held
        self._recent[key, part] = None

    def removed(self, key: Any, part: Any = _WHOLE) -> None:
        """Cleared: what is done with the object now is the user's business."""
        if part is _WHOLE:
            self._held.pop(key, None)
        else:
            self._held.get(key, {}).pop(part, None)

    def check(self, *, everything: bool) -> None:
        """Raise MutationError for what was changed, of what was touched since the last check or of all there is."""
        places = list(self._all() if everything else self._recent)
        self._recent.clear()
        for key, part in places:
            held = self._held.get(key, {}).get(part)
            if held is not None and held.changed():
                self._held[key][part] = Held(held.value)
                raise MutationError(self._complaint(key, part, held))

    def _all(self) -> Iterator[tuple[Any, Any]]:
        return ((key, part) for key, parts in self._held.items() for part in parts)

    def _complaint(self, key: Any, part: Any, held: Held) -> str:
        layout = self._kind.removesuffix(TTL).removesuffix(WINDOWS)
        where = {"list": f"element {part!r} of the", "map": f"the value under {part!r} of the"}.get(layout, "the")
        return (
            f"{where} {layout} state {self._name!r} of key {key!r:.200} was changed in place, and the state was not told: "
            f"it knows {self._shown(held.before)} and the object is now {self._shown(held.value)}. The change would be "
            f"missing after a restore. {_ADVICE[layout]}. It happened in {self._owner}"
        )

    def _shown(self, value: Any) -> str:
        return f"{(value[0] if self._kind.endswith(TTL) else value)!r:.200}"


_ADVICE = {
    "value": "Call update(value) after changing a value, or change a copy",
    "list": "Call update([...]) with the changed elements, or change copies",
    "map": "Call put(key, value) after changing a value, or change a copy",
    "reducing": "What get() returns must not be changed: add(value) is the way in, and change a copy for anything else",
    "aggregating": "get_result() must leave the accumulator as it is, and add() must return the one it changed",
}


class WatchedStore(HashMapStore):
    """The store in memory, with a watch for each table."""

    def __init__(self, key_groups: KeyGroups, owner: str) -> None:
        super().__init__(key_groups)
        self._owner = owner
        self.watches: list[Watch] = []

    def check(self, *, everything: bool) -> None:
        for watch in self.watches:
            watch.check(everything=everything)

    def _watch(self, name: str, kind: str) -> Watch:
        self.watches.append(Watch(self._owner, name, kind))
        return self.watches[-1]

    def _create_values(self, name: str, kind: str) -> ValueTable:
        return _WatchedValues(self.key_groups, self._watch(name, kind))

    def _create_lists(self, name: str, kind: str) -> ListTable:
        return _WatchedLists(self.key_groups, self._watch(name, kind))

    def _create_maps(self, name: str, kind: str) -> MapTable:
        return _WatchedMaps(self.key_groups, self._watch(name, kind))


class _WatchedValues(HashMapValueTable):
    combine = ValueTable.combine  # by accessors, which are watched

    def __init__(self, key_groups: KeyGroups, watch: Watch) -> None:
        super().__init__(key_groups)
        self._watch = watch

    def delete(self, key: Any) -> None:
        super().delete(key)
        self._watch.removed(key)

    def fold(
        self, current: CurrentKey, key_of: Callable[[Any], Any], reduce: Callable[[Any, Any], Any]
    ) -> Callable[[Any], Any]:
        read, write, _ = self.bind(current)

        def step(record: Any) -> Any:
            current.key = key_of(record)
            before = read()
            result = record if before is None else reduce(before, record)
            write(result)
            return result

        return step

    def bind(self, current: CurrentKey) -> Accessors:
        read, write, remove = super().bind(current)
        watch = self._watch

        def value() -> Any:
            found = read()
            watch.read(current.key, None, found)
            return found

        def update(value: Any) -> None:
            watch.written(current.key, None, value)
            write(value)

        def clear() -> None:
            remove()
            watch.removed(current.key)

        return value, update, clear


class _WatchedLists(HashMapListTable):
    def __init__(self, key_groups: KeyGroups, watch: Watch) -> None:
        super().__init__(key_groups)
        self._watch = watch

    def bind(self, current: CurrentKey) -> ListAccessors:
        inner = super().bind(current)
        watch, data = self._watch, self._data

        def get() -> tuple[Any, ...]:
            elements = inner.get()
            for index, element in enumerate(elements):
                watch.read(current.key, index, element)
            return elements

        def noting(start: int) -> None:
            for index, element in enumerate(data.get(current.key, ())[start:], start):
                watch.written(current.key, index, element)

        def add(value: Any) -> None:
            add_all([value])

        def add_all(values: Iterable[Any]) -> None:
            start = len(data.get(current.key, ()))
            inner.add_all(values)
            noting(start)

        def update(values: Iterable[Any]) -> None:
            inner.update(values)
            watch.removed(current.key)
            noting(0)

        def clear() -> None:
            inner.clear()
            watch.removed(current.key)

        return ListAccessors(get, add, add_all, update, clear)


class _WatchedMaps(HashMapMapTable):
    def __init__(self, key_groups: KeyGroups, watch: Watch) -> None:
        super().__init__(key_groups)
        self._watch = watch

    def bind(self, current: CurrentKey) -> MapAccessors:
        inner = super().bind(current)
        watch = self._watch

        def get(map_key: Any) -> Any:
            found = inner.get(map_key)
            watch.read(current.key, map_key, found)
            return found

        def put(map_key: Any, value: Any) -> None:
            inner.put(map_key, value)
            watch.written(current.key, map_key, value)

        def put_all(entries: Mapping[Any, Any] | Iterable[tuple[Any, Any]]) -> None:
            new = dict(entries)
            inner.put_all(new)
            for map_key, value in new.items():
                watch.written(current.key, map_key, value)

        def remove(map_key: Any) -> None:
            inner.remove(map_key)
            watch.removed(current.key, map_key)

        def clear() -> None:
            inner.clear()
            watch.removed(current.key)

        def seen(view: Callable[[], Collection[Any]]) -> Callable[[], Collection[Any]]:
            def look() -> Collection[Any]:
                for map_key, value in inner.items():
                    watch.read(current.key, map_key, value)
                return view()

            return look

        return inner._replace(
            get=get,
            put=put,
            put_all=put_all,
            remove=remove,
            clear=clear,
            values=seen(inner.values),
            items=seen(inner.items),
        )
