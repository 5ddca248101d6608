"""What changed since the last completed checkpoint, for tables whose changes are a dict of entry keys."""

from __future__ import annotations

from typing import Any


class Changes:
    """Notes of the periods between barriers, kept until a checkpoint after them completes."""

    __slots__ = ("_unconfirmed", "fresh")

    def __init__(self) -> None:
        self.fresh: dict[Any, Any] = {}
        """What was noted since the last barrier; always the same dict, so closures may hold on to it."""
        self._unconfirmed: dict[int, dict[Any, Any]] = {}  # barrier -> what was noted since the barrier before it

    def barrier(self, checkpoint: int) -> list[dict[Any, Any]]:
        """The notes of all periods since the last completed checkpoint, oldest first."""
        if self.fresh:
            self._unconfirmed[checkpoint] = dict(self.fresh)
            self.fresh.clear()
        return list(self._unconfirmed.values())

    def completed(self, checkpoint: int) -> None:
        self._unconfirmed = {barrier: noted for barrier, noted in self._unconfirmed.items() if barrier > checkpoint}

    def forget(self) -> None:
        self.fresh.clear()
        self._unconfirmed.clear()


def latest(periods: list[dict[Any, Any]]) -> dict[Any, Any]:
    """One dict of all periods, the later ones winning."""
    if len(periods) == 1:
        return periods[0]
    merged: dict[Any, Any] = {}
    for noted in periods:
        merged.update(noted)
    return merged
