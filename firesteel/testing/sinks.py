"""Sinks for tests of what a job does when things go wrong. Each wraps the sink that the job would have.

    stream.sink_to(FailingSink(FileSink..., at="commit", failures=2))

Slots are processes of their own and a restart makes new ones, so what a sink did before is remembered in a directory.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import Any

from firesteel.connectors.base import (
    CommitterContext,
    Json,
    NumberedCommitter,
    PrepareContext,
    Sink,
    SinkWriter,
    WriterContext,
)
from firesteel.connectors.guarantee import DeliveryGuarantee

STEPS = ("write", "flush", "prepare_commit", "persist", "commit", "abort", "sweep")


class WrappedSink(Sink):
    """Another sink, with a hook in front of each of its steps."""

    def __init__(self, sink: Sink) -> None:
        self.sink = sink

    def before(self, step: str, values: Sequence[Any]) -> None:
        """Called before each of `STEPS`, in the process that takes it, with its records or committables."""

    def prepare(self, context: PrepareContext) -> Sink:
        self.sink = self.sink.prepare(context)
        return self

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return _Writer(self.sink.create_writer(context), self.before)

    def create_committer(self, context: CommitterContext) -> NumberedCommitter | None:
        committer = self.sink.create_committer(context)
        return None if committer is None else _Committer(committer, self.before)

    @property
    def guarantee(self) -> DeliveryGuarantee:
        return self.sink.guarantee


class FailingSink(WrappedSink):
    """Raises the first times that it gets to a step, whichever slot or incarnation that is in.

    :param at: one of `STEPS`.
    :param notes: a directory, in which every failure leaves a file.
    """

    def __init__(self, sink: Sink, at: str, notes: str, failures: int = 1) -> None:
        super().__init__(sink)
        self._at, self._notes, self._failures = _step(at), notes, failures

    def before(self, step: str, values: Sequence[Any]) -> None:
        if step == self._at:
            number = _note(self._notes, f"failed-{step}", self._failures)
            if number is not None:
                raise RuntimeError(f"this sink fails at {step}, as it was told to ({number} of {self._failures})")


class BlockingSink(WrappedSink):
    """Waits at a step until a file appears, the first time that it gets there: a system that does not answer.

    :param notes: a directory; a file `blocked-<step>-1` appears in it when the sink waits, and `release` ends that.
    """

    def __init__(self, sink: Sink, at: str, notes: str) -> None:
        super().__init__(sink)
        self._at, self._notes = _step(at), notes

    def before(self, step: str, values: Sequence[Any]) -> None:
        if step == self._at and _note(self._notes, f"blocked-{step}", 1) is not None:
            pause = threading.Event()
            while not os.path.exists(os.path.join(self._notes, "release")):
                pause.wait(0.01)


class ValidatingSink(WrappedSink):
    """Fails the job when a record is wrong, or when the engine breaks its promises to the sink.

    :param check: called with each record; raises if it is wrong, or returns False.
    """

    def __init__(self, sink: Sink, check: Callable[[Any], Any] = lambda record: None) -> None:
        super().__init__(sink)
        self._check = check
        self._prepared = 0
        self._persisted = 0
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()

    def before(self, step: str, values: Sequence[Any]) -> None:
        if step == "write":
            for record in values:
                if self._check(record) is False:
                    raise AssertionError(f"the record {record!r:.500} is wrong")
        elif step == "prepare_commit":
            self._prepared += 1
        elif step == "persist":
            with self._lock:
                self._persisted += 1
                if self._persisted > self._prepared:
                    raise AssertionError("persist() was called without a prepare_commit() before it")


class _Writer(SinkWriter):
    def __init__(self, writer: SinkWriter, before: Callable[[str, Sequence[Any]], None]) -> None:
        self._writer, self._before = writer, before

    def initialize_state(self, context: Any) -> None:
        self._writer.initialize_state(context)

    def snapshot_state(self, context: Any) -> None:
        self._writer.snapshot_state(context)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self._writer.notify_checkpoint_complete(checkpoint_id)

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self._writer.notify_checkpoint_aborted(checkpoint_id)

    def write(self, values: Sequence[Any]) -> None:
        self._before("write", values)
        self._writer.write(values)

    def flush(self) -> None:
        self._before("flush", ())
        self._writer.flush()

    def prepare_commit(self) -> list[Json]:
        self._before("prepare_commit", ())
        return self._writer.prepare_commit()

    def persist(self, committables: Sequence[Json]) -> None:
        self._before("persist", committables)
        self._writer.persist(committables)

    def close(self) -> None:
        self._writer.close()


class _Committer(NumberedCommitter):
    def __init__(self, committer: NumberedCommitter, before: Callable[[str, Sequence[Any]], None]) -> None:
        self._committer, self._before = committer, before
        self.retried = committer.retried

    def check(self, committables: Sequence[Json]) -> None:
        self._committer.check(committables)

    def commit_checkpoint(self, checkpoint: int, committables: Sequence[Json]) -> None:
        self._before("commit", committables)
        self._committer.commit_checkpoint(checkpoint, committables)

    def abort(self, committables: Sequence[Json]) -> None:
        self._before("abort", committables)
        self._committer.abort(committables)

    def sweep(self, keep: Sequence[Json]) -> None:
        self._before("sweep", keep)
        self._committer.sweep(keep)

    def close(self) -> None:
        self._committer.close()


def _step(name: str) -> str:
    if name not in STEPS:
        raise ValueError(f"a sink has no step {name!r}, but: {', '.join(STEPS)}")
    return name


def _note(directory: str, name: str, most: int) -> int | None:
    """Take the next free number up to `most`, in one process of all. None when they are used up."""
    os.makedirs(directory, exist_ok=True)
    for number in range(1, most + 1):
        try:
            os.close(os.open(os.path.join(directory, f"{name}-{number}"), os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            continue
        return number
    return None
