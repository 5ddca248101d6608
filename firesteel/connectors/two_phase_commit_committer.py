"""The driver's half of `TwoPhaseCommitSinkFunction`."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from firesteel.common.crashpoints import crash_point
from firesteel.connectors.base import Committer, CommitterContext, EnumeratorContext, Json
from firesteel.connectors.two_phase_commit import TwoPhaseCommitSinkFunction
from firesteel.connectors.two_phase_commit_journal import Journal, decode_handle
from firesteel.connectors.user_code import FunctionContext, user_error
from firesteel.errors import CheckpointError

log = logging.getLogger("firesteel")


class TransactionCommitter(Committer):
    """Resolves transactions, and takes them out of the journal once they are."""

    def __init__(self, function: TwoPhaseCommitSinkFunction, context: CommitterContext) -> None:
        self._unopened, self._context = function, context
        self._opened: TwoPhaseCommitSinkFunction | None = None
        self._journal = Journal(context)
        self._tried: set[str] = set()  # what was given to commit() since the last sweep,
        self._committed: set[str] = set()  # and what of it succeeded, while others of its checkpoint did not

    def commit(self, committables: Sequence[Json]) -> None:
        # One that cannot be committed must not keep the others invisible: try all, then complain.
        function = self._function()
        problems: list[tuple[str, Exception]] = []
        resolved = []
        for committable in committables:
            if committable["transaction"] in self._committed:
                continue
            try:
                self._commit(function, committable)
            except Exception as error:  # noqa: BLE001  raised below
                problems.append((committable["transaction"], error))
            else:
                resolved.append(committable["transaction"])
                crash_point("txn-after-one-commit")
        self._journal.remove(*resolved)
        self._committed.update(resolved)
        self._complain("commit", problems)

    def _commit(self, function: TwoPhaseCommitSinkFunction, committable: Json) -> None:
        name, handle = committable["transaction"], decode_handle(committable["handle"])
        age_ms = time.time_ns() // 1_000_000 - committable["begun_ms"]
        timeout, ratio = function._timeout_ms, function._warning_ratio
        if timeout is not None and ratio is not None and age_ms > timeout * ratio:
            log.warning(
                "the transaction %s of sink %s is committed %d ms after it began, and its timeout is %d ms",
                name, self._context.uid, age_ms, timeout,
            )  # fmt: skip
        if committable["incarnation"] == self._context.incarnation and name not in self._tried:
            self._tried.add(name)  # what becomes of an attempt that fails nobody knows
            function.commit(handle)
            return
        try:
            function.recover_and_commit(handle)
        except Exception as error:
            if not function._ignores_failures_after_timeout or timeout is None or age_ms <= timeout:
                raise
            log.error(
                "the transaction %s of sink %s cannot be committed %d ms after it began, with a timeout of %d ms. It is given "
                "up, as ignore_failures_after_transaction_timeout() asks for, and its records are lost: %s",
                name, self._context.uid, age_ms, timeout, error,
            )  # fmt: skip

    def abort(self, committables: Sequence[Json]) -> None:
        function = self._function()
        problems: list[tuple[str, Exception]] = []
        resolved = []
        for committable in committables:
            try:
                function.abort(decode_handle(committable["handle"]))
            except Exception as error:  # noqa: BLE001  raised below
                problems.append((committable["transaction"], error))
            else:
                resolved.append(committable["transaction"])
        self._journal.remove(*resolved)
        self._complain("abort", problems)

    def sweep(self, keep: Sequence[Json]) -> None:
        kept = {committable["transaction"] for committable in keep}
        resolved = []
        for begun in self._journal.begun():
            if begun.incarnation >= self._context.incarnation or begun.name in kept:
                continue
            try:
                if begun.handle is not None:
                    self._function().recover_and_abort(decode_handle(begun.handle))
            except Exception as error:  # noqa: BLE001  it stays in the journal, and the next sweep tries again
                log.warning("sink %s could not abort the transaction %s: %s", self._context.uid, begun.name, error)
            else:
                resolved.append(begun.name)
        self._journal.remove(*resolved)
        self._tried.clear()  # a sweep follows a checkpoint that is confirmed: nobody will commit it again
        self._committed.clear()

    def close(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.close()

    def _function(self) -> TwoPhaseCommitSinkFunction:
        if self._opened is None:
            try:
                self._unopened.open(FunctionContext(EnumeratorContext(self._context.uid, 1), "sink function"))
            except Exception as error:
                raise user_error(error, f"in open() of sink {self._context.uid!r}, on the driver") from error
            self._opened = self._unopened
        return self._opened

    def _complain(self, what: str, problems: Sequence[tuple[str, Exception]]) -> None:
        if problems:
            said = "; ".join(f"{name}: {type(error).__name__}: {error}" for name, error in problems)
            raise CheckpointError(f"sink {self._context.uid!r} cannot {what} {said}") from problems[0][1]
