"""Completed checkpoints: how many are kept, and which files nobody needs any more."""

from __future__ import annotations

import contextlib
import os
import shutil

from firesteel.common.crashpoints import crash_point
from firesteel.coordinator.lineage import Completed, Incarnation


class CompletedCheckpoints:
    """The checkpoints a job can go back to, oldest first. Owned by one incarnation.

    A state file is shared by all checkpoints whose chains it is in; it is deleted when the last of them is dropped.
    """

    def __init__(self, incarnation: Incarnation, retained: int) -> None:
        self._incarnation = incarnation
        self._retained = retained
        self._kept: list[Completed] = []
        for number in reversed(incarnation.directory.incarnations()):
            if incarnation.start is not None and number <= _incarnation_of(incarnation.start):
                self._kept += incarnation.directory.completed(number)
        self._remove_leftovers()

    def latest(self) -> Completed | None:
        return self._kept[-1] if self._kept else None

    def add(self, completed: Completed) -> None:
        """A checkpoint was completed and its output committed; drop those beyond the retained number."""
        self._kept.append(completed)
        dropped, self._kept = self._kept[: -self._retained], self._kept[-self._retained :]
        needed = set().union(*(kept.metadata.files() for kept in self._kept))
        for old in dropped:
            shutil.rmtree(old.path, ignore_errors=True)
            crash_point("between-drops")
            for file in old.metadata.files() - needed:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(os.path.join(self._incarnation.directory.path, file))

    def _remove_leftovers(self) -> None:
        """What older incarnations wrote for checkpoints that never came to be. They are fenced, so none ever will."""
        directory = self._incarnation.directory
        needed = set().union(*(kept.metadata.files() for kept in self._kept))
        for number in directory.incarnations():
            path = directory.incarnation_path(number)
            if number >= self._incarnation.number or not os.path.isdir(os.path.join(path, "state")):
                continue
            for name in os.listdir(os.path.join(path, "state")):
                if os.path.join(f"inc-{number}", "state", name) not in needed:
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(os.path.join(path, "state", name))
            for name in os.listdir(path):
                if name.startswith("fenced-by-"):
                    shutil.rmtree(os.path.join(path, name), ignore_errors=True)


def _incarnation_of(completed: Completed) -> int:
    return completed.metadata.incarnation
