"""Flink's `GenericWriteAheadSink`: for systems that have no transactions, or none that can wait for a checkpoint.

The life of a record, and where it can stop:

1. `write` appends it to a log in the job's directory. The slot closes or dies: the log is deleted, or swept.
2. `prepare_commit` ends the log, `persist` makes it durable. The job rolls back: the log is deleted.
3. The checkpoint is complete; `send_values` is called on the driver, log by log, until it returns True; then the
   `CheckpointCommitter` is told. The driver dies before: recovery does the same. In between: the values are sent again,
   unless `send_values` and `commit_checkpoint` are one transaction.
4. The checkpoint is confirmed: the log is deleted.
"""

from __future__ import annotations

import contextlib
import copy
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from firesteel.common.crashpoints import crash_point
from firesteel.common.storage import Storage
from firesteel.connectors.base import CommitterContext, Json, NumberedCommitter, Sink, SinkWriter, WriterContext
from firesteel.connectors.guarantee import DeliveryGuarantee
from firesteel.connectors.sink_directory import sink_storage
from firesteel.connectors.user_code import user_error
from firesteel.connectors.write_ahead_log import LogFile, check_log, read_log
from firesteel.errors import CheckpointError, ConfigurationError

_LOG = re.compile(r"log-(\d+)-\d+-\d+\.wal")


class CheckpointCommitter(ABC):
    """Remembers, outside of the job, which checkpoints have been sent. Used on the driver."""

    job_id: str = ""
    operator_id: str = ""

    def set_job_id(self, job_id: str) -> None:
        """Called first of all. Jobs that keep their notes in one place tell them apart by this."""
        self.job_id = job_id

    def set_operator_id(self, operator_id: str) -> None:
        """Called next: the sink's uid."""
        self.operator_id = operator_id

    def create_resource(self) -> None:  # noqa: B027  an optional hook
        """Make the place the notes are kept in, if it is not there. Called before `open`."""

    def open(self) -> None:  # noqa: B027  an optional hook
        """Connect."""

    def close(self) -> None:  # noqa: B027  an optional hook
        """Disconnect."""

    @abstractmethod
    def commit_checkpoint(self, subtask_idx: int, checkpoint_id: int) -> None:
        """Note that the values of this subtask up to this checkpoint have been sent. Durable when it returns."""

    @abstractmethod
    def is_checkpoint_committed(self, subtask_idx: int, checkpoint_id: int) -> bool:
        """Whether that was noted. Checkpoints of a subtask are noted in rising order, so the last one is enough."""


class GenericWriteAheadSink(Sink):
    """Give it to `stream.add_sink(...)` or `sink_to(...)`.

    :param checkpoint_committer: None: after a failure the values of a checkpoint may be sent again.
    """

    checkpoint_committer: CheckpointCommitter | None = None

    def __init__(self, checkpoint_committer: CheckpointCommitter | None = None) -> None:
        if checkpoint_committer is not None and not isinstance(checkpoint_committer, CheckpointCommitter):
            raise ConfigurationError(
                f"a write-ahead sink takes a CheckpointCommitter, not {checkpoint_committer!r:.200}"
            )
        self.checkpoint_committer = checkpoint_committer

    def open(self) -> None:
        """Called on the driver, when there is something to send: connect."""

    def close(self) -> None:
        """Called if `open` was."""

    @abstractmethod
    def send_values(self, values: Iterable[Any], checkpoint_id: int, timestamp: int) -> bool:
        """Send what one subtask wrote between two checkpoints, and say whether all of it has arrived.

        Called on the driver, once for each subtask that wrote something. If it returns False or raises, it is called
        again, with the same values from the first one on. They are read from the log as they are asked for, so there may
        be more than fit into memory.

        :param timestamp: when the subtask met the barrier, in milliseconds since 1970.
        """

    @property
    def guarantee(self) -> DeliveryGuarantee:
        known = self.checkpoint_committer is not None
        return DeliveryGuarantee.EXACTLY_ONCE if known else DeliveryGuarantee.AT_LEAST_ONCE

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return LogWriter(context)

    def create_committer(self, context: CommitterContext) -> NumberedCommitter:
        driver = copy.copy(self)  # what it opens must not be pickled to slots
        driver.checkpoint_committer = copy.copy(self.checkpoint_committer)
        return LogCommitter(driver, context)


class LogWriter(SinkWriter):
    """One log from barrier to barrier, and none when there are no records."""

    def __init__(self, context: WriterContext) -> None:
        self._context = context
        self._storage = sink_storage(context)
        self._log: LogFile | None = None
        self._ended: dict[str, LogFile] = {}  # until they are persisted
        self._sequence = 0

    def write(self, values: Sequence[Any]) -> None:
        if values:
            (self._log or self._open()).append(values)

    def _open(self) -> LogFile:
        while True:
            name = f"log-{self._context.incarnation}-{self._context.subtask}-{self._sequence}.wal"
            self._sequence += 1
            try:
                self._log = log = LogFile(self._storage, name)
            except FileExistsError:  # of this incarnation's first writer, if it was made twice
                continue
            return log

    def prepare_commit(self) -> list[Json]:
        log, self._log = self._log, None
        if log is None:
            return []
        self._ended[log.name] = log
        return [
            {
                "log": log.name,
                "size": log.size,
                "records": log.records,
                "subtask": self._context.subtask,
                "time_ms": time.time_ns() // 1_000_000,
            }
        ]

    def persist(self, committables: Sequence[Json]) -> None:
        for committable in committables:
            self._ended.pop(committable["log"]).close()
            self._storage.persist(committable["log"])
        if committables:
            self._storage.sync()

    def close(self) -> None:
        if self._log is not None:
            with contextlib.suppress(OSError):  # there may be no room for what is still in its buffer
                self._log.close()
            self._storage.delete(self._log.name)
            self._log = None
        for log in list(self._ended.values()):  # nobody persists them any more; they are the committer's to delete
            log.close()


class LogKeeper:
    """The driver's view of the logs: deletes those that nobody needs any more."""

    def __init__(self, storage: Storage, incarnation: int) -> None:
        self._storage, self._incarnation = storage, incarnation
        self._sent: set[str] = set()

    def was_sent(self, name: str) -> bool:
        return name in self._sent

    def sent(self, names: Iterable[str]) -> None:
        """They can go when their checkpoint is confirmed. (Sooner, recovery would miss them.)"""
        self._sent.update(names)

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            self._storage.delete(name)

    def sweep(self, keep: Iterable[str]) -> None:
        """The checkpoint is confirmed: nobody will ask for what was sent again."""
        kept = set(keep)
        for name in self._storage.names():
            log = _LOG.fullmatch(name)
            if log and name not in kept and (name in self._sent or int(log[1]) < self._incarnation):
                self._storage.delete(name)
        self._sent.clear()


class LogCommitter(NumberedCommitter):
    """Sends logs, and deletes those that nobody needs any more."""

    def __init__(self, sink: GenericWriteAheadSink, context: CommitterContext) -> None:
        self._sink, self._context = sink, context
        self._storage = sink_storage(context)
        self._logs = LogKeeper(self._storage, context.incarnation)
        self._opened = False

    def commit_checkpoint(self, checkpoint: int, committables: Sequence[Json]) -> None:
        self._open()
        # what a dropped checkpoint could not send is sent with the one that carries it, in one call
        by_subtask: dict[int, list[Json]] = {}
        for committable in committables:
            if not self._logs.was_sent(committable["log"]):
                by_subtask.setdefault(committable["subtask"], []).append(committable)
        for subtask, logs in sorted(by_subtask.items()):
            self._commit(subtask, checkpoint, logs)
            crash_point("wal-after-one-subtask")

    def _commit(self, subtask: int, checkpoint: int, logs: Sequence[Json]) -> None:
        notes = self._sink.checkpoint_committer
        where = f"sending checkpoint {checkpoint} of subtask {subtask} of sink {self._context.uid!r}, on the driver"
        try:
            if notes is None or not notes.is_checkpoint_committed(subtask, checkpoint):
                for log in logs:
                    check_log(self._storage, log["log"], log["size"])
                sent = self._sink.send_values(self._values(logs), checkpoint, logs[-1]["time_ms"])
                if not isinstance(sent, bool):
                    raise CheckpointError(f"send_values() must return True or False, but returned {sent!r:.200}")
                if not sent:
                    raise CheckpointError("send_values() returned False")
                crash_point("wal-after-send")
                if notes is not None:
                    notes.commit_checkpoint(subtask, checkpoint)
        except CheckpointError as error:
            raise CheckpointError(f"{error}. It happened {where}") from error
        except Exception as error:
            raise user_error(error, where) from error
        self._logs.sent(log["log"] for log in logs)

    def _values(self, logs: Sequence[Json]) -> Iterator[Any]:
        for log in logs:
            yield from read_log(self._storage, log["log"], log["size"])

    def abort(self, committables: Sequence[Json]) -> None:
        self._logs.delete(committable["log"] for committable in committables)

    def sweep(self, keep: Sequence[Json]) -> None:
        self._logs.sweep(committable["log"] for committable in keep)

    def _open(self) -> None:
        if self._opened:
            return
        notes = self._sink.checkpoint_committer
        try:
            if notes is not None:
                notes.set_job_id(self._context.job_id)
                notes.set_operator_id(self._context.uid)
                notes.create_resource()
                notes.open()
            self._sink.open()
        except Exception as error:
            raise user_error(error, f"in open() of sink {self._context.uid!r}, on the driver") from error
        self._opened = True

    def close(self) -> None:
        if self._opened:
            self._opened = False
            self._sink.close()
            if self._sink.checkpoint_committer is not None:
                self._sink.checkpoint_committer.close()
