"""Values of windows: one under each pair of a key and a window.

They are kept by window, a table of plain keys for each. Many keys share a window, so finding a value takes the lookup of
a key and not that of a pair, which costs half as much again; and what belongs to a window goes with it.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from typing import Any

from firesteel.graph.keys import namespaced
from firesteel.state.tables import Accessors, CurrentKey, Entry, ValueTable


class WindowTable(ValueTable):
    """A value under each namespaced key.

    :param create: makes the table of a window.
    """

    windowed = True

    def __init__(self, create: Callable[[], ValueTable]) -> None:
        self._create = create
        self._panes: dict[Any, ValueTable] = {}  # by window

    def pane(self, window: Any) -> ValueTable:
        """The values of all keys in one window, by plain key. Good until the next barrier: empty ones are not kept."""
        found = self._panes.get(window)
        if found is None:
            found = self._panes[window] = self._create()
        return found

    def windows(self) -> list[Any]:
        """Those that there are values of, and maybe empty ones."""
        return list(self._panes)

    def get(self, key: Any) -> Any:
        pane = self._panes.get(key[1])
        return None if pane is None else pane.get(key[0])

    def put(self, key: Any, value: Any) -> None:
        self.pane(key[1]).put(key[0], value)

    def delete(self, key: Any) -> None:
        pane = self._panes.get(key[1])
        if pane is not None:
            pane.delete(key[0])

    def bind(self, current: CurrentKey) -> Accessors:
        plain = _Plain()
        bound: dict[Any, tuple[ValueTable, Accessors]] = {}

        def enter() -> Accessors:
            plain.key, window, _ = current.key
            pane = self.pane(window)
            known = bound.get(window)
            if known is None or known[0] is not pane:
                if len(bound) > 2 * len(self._panes):
                    bound.clear()
                known = bound[window] = pane, pane.bind(plain)
            return known[1]

        def value() -> Any:
            return enter()[0]()

        def update(value: Any) -> None:
            enter()[1](value)

        def clear() -> None:
            enter()[2]()

        return value, update, clear

    def scan(self, groups: Container[int] | None = None) -> Iterator[Entry]:
        for window, pane in list(self._panes.items()):
            for key, value in pane.scan(groups):
                yield namespaced(key, window), value

    def __len__(self) -> int:
        return sum(map(len, self._panes.values()))

    def load(self, keys: list[Any], values: list[Any], deleted: list[Any]) -> None:
        parts: dict[Any, tuple[list[Any], list[Any], list[Any]]] = {}
        for (key, window, _), value in zip(keys, values, strict=True):
            part = parts.setdefault(window, ([], [], []))
            part[0].append(key)
            part[1].append(value)
        for key, window, _ in deleted:
            parts.setdefault(window, ([], [], []))[2].append(key)
        for window, part in parts.items():
            self.pane(window).load(*part)

    def barrier(self, checkpoint: int) -> tuple[list[Entry], list[Any]]:
        puts: list[Entry] = []
        deleted: list[Any] = []
        for window, pane in list(self._panes.items()):
            changed, gone = pane.barrier(checkpoint)
            puts += [(namespaced(key, window), value) for key, value in changed]
            deleted += [namespaced(key, window) for key in gone]
            if not changed and not gone:
                self._drop_if_empty(window)
        return puts, deleted

    def touch(self) -> None:
        for pane in self._panes.values():
            pane.touch()

    def completed(self, checkpoint: int) -> None:
        for pane in self._panes.values():
            pane.completed(checkpoint)

    def forget_changes(self) -> None:
        for window, pane in list(self._panes.items()):
            pane.forget_changes()
            self._drop_if_empty(window)

    def _drop_if_empty(self, window: Any) -> None:
        """Only where there is nothing to tell about it either."""
        if next(self._panes[window].scan(), None) is None:
            del self._panes[window]


class _Plain:
    """The current key without its window."""

    key: Any = None
