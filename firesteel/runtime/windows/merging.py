"""Windows of one key that merge.

When windows become one, what is in them should not be moved more than it must be. So a window's contents stay under the
window they were begun in, its *state window*, and a map of each key says which that is. Merging moves the contents of all
windows but one; a session that only grows moves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from firesteel.datastream.window import MergingWindowAssigner
from firesteel.runtime.keyed_state import KeyedState

MERGING = "/merging-windows"
"""The table of window -> state window."""

OnMerge = Callable[[Any, list[Any], Any, list[Any]], None]
"""Told about a merge: the new window, those that it is made of, its state window, and those that have to be emptied into
that."""


class MergingWindowSet:
    """The windows of the current key."""

    def __init__(self, assigner: MergingWindowAssigner[Any, Any], keyed: KeyedState) -> None:
        self._assigner = assigner
        accessors = keyed.store.map_table(MERGING).bind(keyed)
        self.state_window, self._put, self._windows = accessors.get, accessors.put, accessors.keys
        self.retire = accessors.remove
        """Forget a window."""

    def add(self, window: Any, on_merge: OnMerge) -> Any:
        """Put a window among the others and give the one that it is part of now."""
        if self.state_window(window) is not None:
            return window
        merges = _Merges()
        self._assigner.merge_windows([*self._windows(), window], merges)
        actual, is_part = window, False
        for result, parts in merges.found:
            if window in parts:
                actual, is_part = result, True
                parts = [part for part in parts if part != window]
            self._unite(result, parts, on_merge)
        if not is_part:
            self._put(window, window)
        return actual

    def _unite(self, result: Any, parts: list[Any], on_merge: OnMerge) -> None:
        parts = [part for part in parts if self.state_window(part) is not None]
        if parts == [result]:  # the new window lies inside one that is there
            return
        state_windows = [self.state_window(part) for part in parts]
        for part in parts:
            self.retire(part)
        self._put(result, state_windows[0])
        on_merge(result, parts, state_windows[0], state_windows[1:])


class _Merges(MergingWindowAssigner.MergeCallback[Any]):
    """Notes what is to be merged."""

    def __init__(self) -> None:
        self.found: list[tuple[Any, list[Any]]] = []

    def merge(self, to_be_merged: Iterable[Any], merge_result: Any) -> None:
        self.found.append((merge_result, list(dict.fromkeys(to_be_merged))))
