"""Panes: pieces of time whose records all belong to the same windows."""

from __future__ import annotations

from collections.abc import Iterator

from firesteel.runtime.flow import Values

Part = tuple[int, Values, list[int]]
"""The start of a pane, and records of it with their timestamps."""


def by_pane(values: Values, times: list[int], offset: int, grain: int, tumbling: bool) -> Iterator[Part]:
    """Records by pane.

    :param grain: how long panes are.
    :param tumbling: nothing connects two panes, so their records need no order among each other. If not, what is given are
        runs of records of one pane.
    """
    low, high = min(times), max(times)
    first = low - (low - offset) % grain
    if high < first + grain:
        yield first, values, times
        return
    panes = [time - (time - offset) % grain for time in times]
    if tumbling:
        parts: dict[int, tuple[Values, list[int]]] = {pane: ([], []) for pane in panes}
        for pane, value, time in zip(panes, values, times, strict=True):
            some, stamps = parts[pane]
            some.append(value)
            stamps.append(time)
        yield from ((pane, *part) for pane, part in parts.items())
        return
    begin = 0
    for end in range(1, len(panes) + 1):
        if end == len(panes) or panes[end] != panes[begin]:
            yield panes[begin], values[begin:end], times[begin:end]
            begin = end
