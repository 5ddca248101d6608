"""State as Python objects in dicts: nothing is serialised on access.

Values: two dicts, `fresh` with what was written since the last barrier and `base` with everything before it. So noting a
change costs nothing beside making it, keys that change often are found in the smaller dict, and a barrier's delta is
there already.

Maps and lists: the data as a dict of dicts or of lists, and beside it notes of what changed: the map keys, or from which
index on. Reading the whole map or list takes no merging that way; a noted change costs one more dict entry.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from itertools import filterfalse
from typing import Any

from firesteel.graph.keys import KeyGroups
from firesteel.state.changes import Changes, latest
from firesteel.state.layouts import merge
from firesteel.state.store import Store
from firesteel.state.tables import (
    Accessors,
    Begin,
    CurrentKey,
    Entry,
    GoOn,
    ListAccessors,
    ListTable,
    MapAccessors,
    MapTable,
    ValueTable,
    elements_of,
    no_none,
)

_GONE = object()
"""In the place of a value that was deleted."""


class HashMapValueTable(ValueTable):
    def __init__(self, key_groups: KeyGroups) -> None:
        self._key_groups = key_groups
        self._base: dict[Any, Any] = {}
        self._changes = Changes()
        self._fresh = self._changes.fresh

    def get(self, key: Any) -> Any:
        found = self._fresh.get(key)
        if found is None:
            return self._base.get(key)
        return None if found is _GONE else found

    def put(self, key: Any, value: Any) -> None:
        self._fresh[key] = value

    def delete(self, key: Any) -> None:
        self._fresh[key] = _GONE

    def bind(self, current: CurrentKey) -> Accessors:
        fresh, fresh_get, base_get = self._fresh, self._fresh.get, self._base.get

        def value() -> Any:
            found = fresh_get(current.key)
            if found is None:
                return base_get(current.key)
            return None if found is _GONE else found

        def update(value: Any) -> None:
            fresh[current.key] = _GONE if value is None else value

        def clear() -> None:
            fresh[current.key] = _GONE

        return value, update, clear

    def fold(
        self, current: CurrentKey, key_of: Callable[[Any], Any], reduce: Callable[[Any, Any], Any]
    ) -> Callable[[Any], Any]:
        fresh, fresh_get, base_get = self._fresh, self._fresh.get, self._base.get

        def step(record: Any) -> Any:
            current.key = key = key_of(record)
            before = fresh_get(key)
            if before is None:
                before = base_get(key)
            fresh[key] = result = record if before is None or before is _GONE else reduce(before, record)
            return result

        return step

    def insides(self) -> tuple[dict[Any, Any], dict[Any, Any], object]:
        return self._fresh, self._base, _GONE

    def combine(self, keys: Sequence[Any], values: Iterator[Any], begin: Begin | None, go_on: GoOn) -> int:
        fresh, fresh_get, base_get = self._fresh, self._fresh.get, self._base.get
        rest: Any = iter(keys)
        for key, record in zip(rest, values, strict=True):
            if record is None:
                return len(keys) - int(rest.__length_hint__()) - 1
            before = fresh_get(key)
            if before is None:
                before = base_get(key)
            if before is not None and before is not _GONE:
                record = go_on(before, record)
            elif begin is not None:
                record = begin(record)
            fresh[key] = _GONE if record is None else record
        return len(keys)

    def scan(self, groups: Container[int] | None = None) -> Iterator[Entry]:
        of, base = self._key_groups.of, self._base
        for key in [*base, *filterfalse(base.__contains__, self._fresh)]:
            if groups is None or of(key) in groups:
                value = self.get(key)
                if value is not None:
                    yield key, value

    def __len__(self) -> int:
        return sum(1 for _ in self.scan())

    def load(self, keys: list[Any], values: list[Any], deleted: list[Any]) -> None:
        self._base.update(zip(keys, values, strict=True))
        for key in deleted:
            self._base.pop(key, None)

    def barrier(self, checkpoint: int) -> tuple[list[Entry], list[Any]]:
        self._merge_fresh()
        changes = latest(self._changes.barrier(checkpoint))
        puts = [entry for entry in changes.items() if entry[1] is not _GONE]
        return puts, [] if len(puts) == len(changes) else [key for key, value in changes.items() if value is _GONE]

    def touch(self) -> None:
        self._fresh.update({**self._base, **self._fresh})

    def completed(self, checkpoint: int) -> None:
        self._changes.completed(checkpoint)

    def forget_changes(self) -> None:
        self._merge_fresh()
        self._changes.forget()

    def _merge_fresh(self) -> None:
        """Put what is fresh into the base, which only those may do who then clear it: it is what changed.

        Both dicts stay the same objects, because accessors hold on to them.
        """
        self._base.update(self._fresh)
        for key in [key for key, value in self._fresh.items() if value is _GONE]:
            del self._base[key]


class HashMapMapTable(MapTable):
    def __init__(self, key_groups: KeyGroups) -> None:
        self._key_groups = key_groups
        self._data: defaultdict[Any, dict[Any, Any]] = defaultdict(dict)  # no map in it is empty
        self._changed: defaultdict[Any, dict[Any, None]] = defaultdict(dict)  # key -> map keys, since the last barrier
        self._changes = Changes()

    def bind(self, current: CurrentKey) -> MapAccessors:
        data, find, changed = self._data, self._data.get, self._changed
        nothing: dict[Any, Any] = {}

        def get(map_key: Any) -> Any:
            return find(current.key, nothing).get(map_key)

        def put(map_key: Any, value: Any) -> None:
            key = current.key
            changed[key][map_key] = None  # first, for it also refuses what cannot be a key
            data[key][map_key] = value

        def put_all(entries: Mapping[Any, Any] | Iterable[tuple[Any, Any]]) -> None:
            new = dict(entries)
            if new:
                changed[current.key].update(dict.fromkeys(new))
                data[current.key].update(new)

        def remove(map_key: Any) -> None:
            key = current.key
            found = find(key)
            if found is not None and map_key in found:
                del found[map_key]
                changed[key][map_key] = None
                if not found:
                    del data[key]

        def contains(map_key: Any) -> bool:
            return map_key in find(current.key, nothing)

        def keys() -> Collection[Any]:
            return find(current.key, nothing).keys()

        def values() -> Collection[Any]:
            return find(current.key, nothing).values()

        def items() -> Collection[tuple[Any, Any]]:
            return find(current.key, nothing).items()

        def is_empty() -> bool:
            return current.key not in data

        def clear() -> None:
            found = data.pop(current.key, None)
            if found is not None:
                changed[current.key].update(dict.fromkeys(found))

        return MapAccessors(get, put, put_all, remove, contains, keys, values, items, is_empty, clear)

    def scan(self, groups: Container[int] | None = None) -> Iterator[Entry]:
        of, find = self._key_groups.of, self._data.get
        for key in list(self._data):
            if groups is None or of(key) in groups:
                for map_key in list(find(key, ())):
                    found = find(key)
                    if found is not None and map_key in found:
                        yield (key, map_key), found[map_key]

    def __len__(self) -> int:
        return sum(map(len, self._data.values()))

    def load(self, keys: list[Any], values: list[Any], deleted: list[Any]) -> None:
        merge("map", self._data, keys, values, deleted)

    def barrier(self, checkpoint: int) -> tuple[list[Entry], list[Any]]:
        self._changes.fresh.update(self._changed)
        self._changed.clear()
        puts: list[Entry] = []
        deleted: list[Any] = []
        for key, map_keys in self._all_changed(checkpoint).items():
            found = self._data.get(key)
            if found is None:
                deleted.append(key)
            elif found.keys() >= map_keys.keys():
                puts.append((key, (tuple(map_keys), tuple(map(found.__getitem__, map_keys)), ())))
            else:
                there = [map_key for map_key in map_keys if map_key in found]
                removed = tuple(filterfalse(found.__contains__, map_keys))
                puts.append((key, (tuple(there), tuple(map(found.__getitem__, there)), removed)))
        return puts, deleted

    def _all_changed(self, checkpoint: int) -> dict[Any, dict[Any, None]]:
        periods = self._changes.barrier(checkpoint)
        if len(periods) == 1:
            return periods[0]
        merged: defaultdict[Any, dict[Any, None]] = defaultdict(dict)
        for noted in periods:
            for key, map_keys in noted.items():
                merged[key].update(map_keys)
        return merged

    def touch(self) -> None:
        for key, found in self._data.items():
            self._changed[key].update(dict.fromkeys(found))

    def completed(self, checkpoint: int) -> None:
        self._changes.completed(checkpoint)

    def forget_changes(self) -> None:
        self._changed.clear()
        self._changes.forget()


class HashMapListTable(ListTable):
    def __init__(self, key_groups: KeyGroups) -> None:
        self._key_groups = key_groups
        self._data: dict[Any, list[Any]] = {}  # no list in it is empty
        self._changes = Changes()
        self._fresh = self._changes.fresh
        """key -> index from which on it changed"""

    def bind(self, current: CurrentKey) -> ListAccessors:
        data, find, fresh = self._data, self._data.get, self._fresh

        def get() -> tuple[Any, ...]:
            return tuple(find(current.key, ()))

        def add(value: Any) -> None:
            if value is None:
                raise no_none()
            key = current.key
            found = find(key)
            if found is None:
                data[key] = [value]
                fresh[key] = 0
            else:
                if key not in fresh:
                    fresh[key] = len(found)
                found.append(value)

        def add_all(values: Iterable[Any]) -> None:
            new = elements_of(values)
            if new:
                key = current.key
                found = data.setdefault(key, [])
                if key not in fresh:
                    fresh[key] = len(found)
                found += new

        def update(values: Iterable[Any]) -> None:
            new = elements_of(values)
            clear()
            if new:
                fresh[current.key] = 0
                data[current.key] = new

        def clear() -> None:
            if data.pop(current.key, None) is not None:
                fresh[current.key] = 0

        return ListAccessors(get, add, add_all, update, clear)

    def scan(self, groups: Container[int] | None = None) -> Iterator[Entry]:
        of = self._key_groups.of
        for key in list(self._data):
            if groups is None or of(key) in groups:
                index = 0
                while index < len(found := self._data.get(key, ())):
                    yield (key, index), found[index]
                    index += 1

    def __len__(self) -> int:
        return sum(map(len, self._data.values()))

    def load(self, keys: list[Any], values: list[Any], deleted: list[Any]) -> None:
        merge("list", self._data, keys, values, deleted)

    def barrier(self, checkpoint: int) -> tuple[list[Entry], list[Any]]:
        puts: list[Entry] = []
        deleted: list[Any] = []
        for key, start in self._all_changed(checkpoint).items():
            found = self._data.get(key)
            if found is None:
                deleted.append(key)
            else:
                puts.append((key, (start, tuple(found[start:]))))
        return puts, deleted

    def _all_changed(self, checkpoint: int) -> dict[Any, int]:
        """The lowest index that changed in any of the periods."""
        periods = self._changes.barrier(checkpoint)
        if len(periods) == 1:
            return periods[0]
        merged: dict[Any, int] = {}
        for noted in periods:
            for key, start in noted.items():
                merged[key] = min(start, merged.get(key, start))
        return merged

    def touch(self) -> None:
        self._fresh.update(dict.fromkeys(self._data, 0))

    def completed(self, checkpoint: int) -> None:
        self._changes.completed(checkpoint)

    def forget_changes(self) -> None:
        self._changes.forget()


class HashMapStore(Store):
    def _create_values(self, name: str, kind: str) -> ValueTable:
        return HashMapValueTable(self.key_groups)

    def _create_lists(self, name: str, kind: str) -> ListTable:
        return HashMapListTable(self.key_groups)

    def _create_maps(self, name: str, kind: str) -> MapTable:
        return HashMapMapTable(self.key_groups)
