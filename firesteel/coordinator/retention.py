"""Completed checkpoints: how many are kept, and which files nobody needs any more."""

from __future__ import annotations

import logging
from collections import Counter

from firesteel.common.crashpoints import crash_point
from firesteel.common.storage import MemoryStorage, Storage
from firesteel.coordinator.claiming import delete_claimed
from firesteel.coordinator.completed import Completed
from firesteel.coordinator.lineage import Incarnation
from firesteel.errors import SupersededError

log = logging.getLogger("firesteel")


class CompletedCheckpoints:
    """The checkpoints a job can go back to, oldest first. Owned by one incarnation.

    A state file is shared by all checkpoints whose chains it is in; it is deleted when the last of them is dropped.
    """

    def __init__(self, incarnation: Incarnation, retained: int) -> None:
        self._incarnation = incarnation
        self._retained = retained
        self._kept = _completed_before(incarnation)
        self._pinned: Counter[int] = Counter()
        self._remove_leftovers()

    def pin(self, checkpoint: int) -> None:
        """It stays, because something is being made of it, until it is unpinned and others are added."""
        self._pinned[checkpoint] += 1

    def unpin(self, checkpoint: int) -> None:
        """Any thread may call this."""
        self._pinned[checkpoint] -= 1

    def add(self, completed: Completed) -> None:
        """A checkpoint was completed and its output committed; drop those beyond the retained number."""
        self._kept.append(completed)
        beyond, retained = self._kept[: -self._retained], self._kept[-self._retained :]
        pinned = [old for old in beyond if self._pinned[old.metadata.checkpoint] > 0]
        dropped, self._kept = [old for old in beyond if old not in pinned], pinned + retained
        needed = set().union(*(kept.metadata.files() for kept in self._kept))
        directory = self._incarnation.directory
        for old in dropped:
            delete_claimed(old.metadata)  # first, since only this checkpoint knows of it
            directory.fencing.remove(old.folder)
            crash_point("between-drops")
            for file in old.metadata.files() - needed:
                directory.storage.delete(file)
        self.dropped_pending()

    def dropped_pending(self) -> None:
        """Nothing is on its way, so whatever no checkpoint refers to is of one that was dropped. Files wait for the next
        incarnation, since a slot may still be writing them; in the driver's memory nothing may pile up."""
        storage, folder = self._incarnation.directory.storage, f"{self._incarnation.folder}/state"
        if isinstance(storage, MemoryStorage):
            needed = set().union(*(kept.metadata.files() for kept in self._kept))
            for name in storage.names(folder):
                if f"{folder}/{name}" not in needed:
                    storage.delete(f"{folder}/{name}")

    def _remove_leftovers(self) -> None:
        """What older incarnations wrote for checkpoints that never came to be. They are fenced, so none ever will.

        First look, then make sure that no successor has fenced this incarnation too, and only then delete: what nobody
        refers to while this is the newest incarnation, nobody will ever refer to.
        State files stay while a checkpoint is damaged: nobody knows which ones it refers to, and it may be mended.
        """
        directory = self._incarnation.directory
        fencing, storage = directory.fencing, directory.storage
        needed = set().union(*(kept.metadata.files() for kept in self._kept))
        damaged = sum(len(fencing.checkpoints(n)) for n in directory.incarnations()) > len(self._kept)
        older = [number for number in directory.incarnations() if number < self._incarnation.number]
        unused = []
        for number in [] if damaged else older:
            files = [f"inc-{number}/state/{name}" for name in storage.names(f"inc-{number}/state")]
            unused += [file for file in files if file not in needed]
        self._incarnation.check()
        for number in older:
            fencing.remove_leftovers(number)
        for file in unused:
            storage.delete(file)
        fencing.remove_drafts()


def discard(incarnation: Incarnation) -> None:
    """The job was cancelled and its checkpoints are not to outlive it: remove all of them.

    Unless some of the job's output is in doubt: what would resolve it has to stay until the job is started again.
    """
    try:
        incarnation.check()
    except SupersededError:
        return  # they are the successor's now
    directory = incarnation.directory
    completed = [found for number in directory.incarnations() for found in directory.completed(number)]
    kept = [found.path for found in completed if found.owes_output()] or _unresolved(directory.sinks_storage)
    if kept:
        log.warning(
            "the checkpoints in %s are kept although the job was cancelled: %s belongs to output that is neither committed nor "
            "thrown away yet. Start the job again to resolve it", directory.path, kept[0],
        )  # fmt: skip
        return
    for found in completed:
        delete_claimed(found.metadata)
        directory.fencing.remove(found.folder)
    directory.storage.delete_folder()


def _unresolved(storage: Storage) -> list[str]:
    """What sinks noted about transactions that are still open."""
    sinks = [f"sinks/{sink}" for sink in storage.folders("sinks")]
    return [storage.at(f"{sink}/{name}") for sink in sinks for name in storage.names(sink)]


def drop_abandoned(incarnation: Incarnation) -> None:
    """Checkpoints whose output nobody will commit, because the job went back to another one: they cannot be restored."""
    start = incarnation.start
    for found in _completed_before(incarnation):
        if found.owes_output() and (start is None or found.folder != start.folder):
            log.warning(
                "checkpoint %s is dropped: its output was not committed yet when the job went back to another one",
                found.path,
            )
            incarnation.check()
            incarnation.directory.fencing.remove(found.folder)


def _completed_before(incarnation: Incarnation) -> list[Completed]:
    """All checkpoints there are when an incarnation starts, oldest first. The one that it starts from is the newest of
    them: it was so before, or it was imported."""
    directory = incarnation.directory
    older = [number for number in reversed(directory.incarnations()) if number <= incarnation.number]
    return [found for number in older for found in directory.completed(number)]
