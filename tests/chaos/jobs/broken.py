"""The engine with one of its promises broken on purpose: the oracle has to notice each of them."""

from __future__ import annotations

from firesteel.coordinator import checkpointing, documents, lineage, rename_fencing
from firesteel.coordinator.committing import Committers


def install(what: str) -> None:
    if what:
        {
            "commit-before-metadata": _commit_before_metadata,
            "no-checksum": _no_checksum,
            "no-incarnation-check": _no_incarnation_check,
            "abort-on-timeout": _abort_on_timeout,
            "no-sweep": _no_sweep,
        }[what]()


def _commit_before_metadata():
    """Output is visible before the checkpoint that covers it exists."""
    original = checkpointing.Checkpointer._metadata

    def commit_and_describe(self, pending):
        self._committers.commit(pending.checkpoint, pending.committables, self._abandoned, lambda: None)
        return original(self, pending)

    checkpointing.Checkpointer._metadata = commit_and_describe


def _no_checksum():
    """Documents are believed, whatever became of them."""

    def anything(body):
        return _Anything()

    documents.xxh3_64_hexdigest = anything


class _Anything(str):
    __slots__ = ()

    def __ne__(self, other):
        return False

    __eq__ = str.__eq__
    __hash__ = str.__hash__


def _no_incarnation_check():
    """Older incarnations are not fenced, and none asks whether there is a newer one."""
    rename_fencing.RenameFencing.fence = lambda self, older, by: None
    lineage.Incarnation.check = lambda self: None


def _abort_on_timeout():
    """A checkpoint that is dropped takes its output with it, though the sources have moved on."""
    original = checkpointing.Checkpointer._drop

    def drop_and_abort(self, pending, why):
        original(self, pending, why)
        self._committers.abort(self._carried)
        self._carried = {}

    checkpointing.Checkpointer._drop = drop_and_abort


def _no_sweep():
    """What dead slots and drivers had open stays."""
    Committers.sweep = lambda self: None
