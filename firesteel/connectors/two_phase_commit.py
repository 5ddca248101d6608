"""Flink's `TwoPhaseCommitSinkFunction`: a sink over transactions that some other system keeps.

The life of a transaction, and where it can stop:

1. `begin_transaction` in a slot, with the first record after a barrier. Its handle is noted in a journal in the job's
   directory, durably, before the first `invoke`. The slot closes: `abort`. It is killed: the next incarnation finds
   the note, and calls `recover_and_abort`.
2. `pre_commit` at the barrier. The checkpoint fails: the next one carries the transaction. The job rolls back: `abort`
   on the driver, or `recover_and_abort` by the next incarnation.
3. The checkpoint is complete: `commit` on the driver. Anything goes wrong before that is recorded: `recover_and_commit`,
   in this incarnation or the next, until it succeeds.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, TypeVar

from firesteel.common.durations import DurationLike, parse_duration_ms
from firesteel.connectors.base import Committer, CommitterContext, Sink, SinkWriter, WriterContext
from firesteel.errors import ConfigurationError

Self = TypeVar("Self", bound="TwoPhaseCommitSinkFunction")


@dataclass(frozen=True)
class TransactionContext:
    """Whose transaction it is. `transaction_id` names it: no other transaction ever has this name."""

    transaction_id: str
    job_id: str
    uid: str
    incarnation: int
    subtask: int
    sequence: int


class TwoPhaseCommitSinkFunction(Sink):
    """Give it to `stream.add_sink(...)`.

    A transaction is known by its handle, which `begin_transaction` returns. Handles travel from slots to the driver and
    live in checkpoints: JSON values, or anything that can be pickled. What must stay in the slot (a connection, a
    buffer) is left out by the handle's `__getstate__`, or kept in `self`.

    `begin_transaction`, `invoke` and `pre_commit` are called in slots, `commit` and the `recover_` methods on the driver,
    `abort` in both. Each place has a copy of the function, and calls its `open` before anything else.
    """

    _timeout_ms: int | None = None
    _ignores_failures_after_timeout = False
    _warning_ratio: float | None = None

    # ---- what subclasses define

    def open(self, runtime_context: Any) -> None:
        """Called in each slot, and on the driver when there is something to commit or abort: connect."""

    def close(self) -> None:
        """Called wherever `open` was."""

    @abstractmethod
    def begin_transaction(self) -> Any:
        """Start a transaction, and return its handle.

        Defined with a parameter, it is given a `TransactionContext`, which has a name for the transaction. What exists
        elsewhere before this returns is nobody's if the slot is killed here: best only make the handle, and let the
        first `invoke` do the rest.
        """

    @abstractmethod
    def invoke(self, transaction: Any, value: Any, context: Any) -> None:
        """Write one record inside the transaction. The `context` parameter may be left out."""

    @abstractmethod
    def pre_commit(self, transaction: Any) -> None:
        """The barrier: make everything durable, so that neither `commit` nor `abort` can fail for good after this.

        Nothing may be visible yet, and nothing will be invoked for this transaction any more.
        """

    @abstractmethod
    def commit(self, transaction: Any) -> None:
        """Make it visible. Called once; if it raises, `recover_and_commit` is called from then on."""

    @abstractmethod
    def abort(self, transaction: Any) -> None:
        """Throw it away. Already gone counts as success; must never touch what was committed."""

    def recover_and_commit(self, transaction: Any) -> None:
        """Commit what may have been committed already: that counts as success. Called until it succeeds."""
        self.commit(transaction)

    def recover_and_abort(self, transaction: Any) -> None:
        """Throw away what a dead slot or driver left behind, with the handle as `begin_transaction` returned it."""
        self.abort(transaction)

    # ---- settings

    def set_transaction_timeout(self: Self, transaction_timeout: DurationLike) -> Self:
        """After how long the other system gives a transaction up; milliseconds, or any duration.

        It changes nothing there: it is what the two settings below count by.
        """
        self._timeout_ms = parse_duration_ms(transaction_timeout)
        return self

    def ignore_failures_after_transaction_timeout(self: Self) -> Self:
        """Give up on transactions that cannot be committed in recovery and are older than the timeout.

        Their records are lost, and an error is logged. Without this a transaction is tried until it succeeds.
        """
        self._ignores_failures_after_timeout = True
        return self

    def enable_transaction_timeout_warnings(self: Self, warning_ratio: float) -> Self:
        """Log a warning when a transaction is older than this part of the timeout (0 to 1) as it is committed."""
        if not 0 <= warning_ratio <= 1:
            raise ConfigurationError(f"warning_ratio must be between 0 and 1, but is {warning_ratio}")
        self._warning_ratio = warning_ratio
        return self

    # ---- as a sink

    def create_writer(self, context: WriterContext) -> SinkWriter:
        from firesteel.connectors.two_phase_commit_writer import TransactionWriter  # it knows this class

        self._check_timeout()
        return TransactionWriter(copy.copy(self), context)

    def create_committer(self, context: CommitterContext) -> Committer:
        from firesteel.connectors.two_phase_commit_committer import TransactionCommitter

        self._check_timeout()
        return TransactionCommitter(copy.copy(self), context)  # not this one, which is yet to be pickled

    def _check_timeout(self) -> None:
        if self._timeout_ms is None and (self._ignores_failures_after_timeout or self._warning_ratio is not None):
            raise ConfigurationError(f"{type(self).__name__} counts by a timeout: call set_transaction_timeout() too")
