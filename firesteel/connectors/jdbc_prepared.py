"""Exactly once with transactions that the server keeps: PREPARE TRANSACTION, XA.

The life of a row, and where it can stop:

1. `write` puts it aside in the slot. The slot dies: it is gone, and is computed again.
2. `prepare_commit` writes all of them into one transaction, with a token, and prepares it. So no lock is held while
   records come in, and by then the transaction of the checkpoint before is committed and holds none any more. The
   slot dies before it is prepared: the server rolls back. After: the next incarnation finds it in the server's list.
3. The checkpoint is complete: the driver commits it. There is no such transaction: if its token is there, it is committed,
   and if not, somebody else rolled it back, which is an error. The driver dies anywhere: recovery commits again.
4. The checkpoint is confirmed: the token is removed.
"""

from __future__ import annotations

import logging
import pickle
import secrets
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from firesteel.common.crashpoints import crash_point
from firesteel.connectors.base import Committer, CommitterContext, Json, SinkWriter, WriterContext
from firesteel.connectors.jdbc_committing import RETRIES, JdbcCommitter
from firesteel.connectors.jdbc_dialect import Connection, TransactionName
from firesteel.connectors.jdbc_options import JdbcExecutionOptions
from firesteel.connectors.jdbc_session import Session
from firesteel.connectors.jdbc_statement import Parameters, Statement
from firesteel.connectors.jdbc_token import Tokens
from firesteel.errors import FiresteelError, SinkError

log = logging.getLogger("firesteel")

_IN_MEMORY = 16 << 20


class PreparingWriter(SinkWriter):
    """One transaction for each barrier, and none when there are no records."""

    def __init__(
        self,
        session: Session,
        tokens: Tokens,
        statement: Statement,
        options: JdbcExecutionOptions,
        context: WriterContext,
    ) -> None:
        self._session, self._tokens, self._statement, self._options = session, tokens, statement, options
        self._owner = TransactionName.owner_of(context.job_id, context.uid)
        self._prefix = f"{context.incarnation}-{context.subtask}"
        self._aside = _Aside()
        session.run(lambda connection: None, "starting")  # what the server cannot do is known before the first record

    def write(self, values: Sequence[Any]) -> None:
        if values:
            self._aside.add([self._statement.parameters(value) for value in values])

    def prepare_commit(self) -> list[Json]:
        rows = self._aside.count
        if not rows:
            return []
        name = TransactionName(self._owner, f"{self._prefix}-{secrets.token_hex(4)}")
        doing = f"preparing a transaction of {rows} rows"
        self._session.run(lambda connection: self._write(connection, name), doing, retries=self._options.max_retries)
        # Never again after this: an attempt whose answer is lost may have been prepared, and has its locks.
        self._session.run(lambda connection: self._prepare(connection, name), doing)
        self._session.close()  # a server may let nobody else commit it while this connection is there
        self._aside.clear()
        return [{"transaction": name.branch, "rows": rows}]

    def _write(self, connection: Connection, name: TransactionName) -> None:
        self._session.dialect.begin(connection, name)
        self._tokens.add(connection, name.branch)
        self._session.write(connection, self._statement, self._aside.rows(), self._options.batch_size)
        crash_point("jdbc-before-prepare")

    def _prepare(self, connection: Connection, name: TransactionName) -> None:
        self._session.dialect.prepare(connection, name)
        crash_point("jdbc-after-prepare")

    def close(self) -> None:
        self._aside.close()
        self._session.close()


class _Aside:
    """Rows that wait for the barrier: in memory, and beyond some megabytes in a file that has no name."""

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115  closed with the writer
        self.count = 0

    def add(self, rows: Sequence[Parameters]) -> None:
        pickle.dump(rows, self._file, protocol=pickle.HIGHEST_PROTOCOL)
        self.count += len(rows)

    def rows(self) -> Iterator[Parameters]:
        """From the first one on; more can be added after the last."""
        self._file.seek(0)
        given = 0
        while given < self.count:
            rows = pickle.load(self._file)
            given += len(rows)
            yield from rows

    def clear(self) -> None:
        self._file.seek(0)
        self._file.truncate()
        self.count = 0

    def close(self) -> None:
        self._file.close()


class PreparedCommitter(JdbcCommitter, Committer):
    """Commits and rolls back what slots prepared."""

    kind = "transaction"

    def __init__(self, session: Session, tokens: Tokens, max_attempts: int | None, context: CommitterContext) -> None:
        super().__init__(session, max_attempts, context.uid)
        self._tokens, self._incarnation = tokens, context.incarnation
        self._owner = TransactionName.owner_of(context.job_id, context.uid)

    def commit(self, committables: Sequence[Json]) -> None:
        self._check(committables)
        self._attempt(lambda: self._commit_all(committables))

    def _commit_all(self, committables: Sequence[Json]) -> None:
        # One that cannot be committed must not keep the locks of the others: try all, then complain.
        problems: list[FiresteelError] = []
        for committable in committables:
            name = TransactionName(self._owner, committable["transaction"])
            crash_point("jdbc-before-commit")
            try:
                self._session.run(partial(self._commit, name=name), f"committing {name}", retries=RETRIES)
            except FiresteelError as problem:
                problems.append(problem)
            crash_point("jdbc-after-commit")
        if problems:
            raise next((problem for problem in problems if not getattr(problem, "transient", False)), problems[0])

    def _commit(self, connection: Connection, name: TransactionName) -> None:
        if self._session.dialect.commit_prepared(connection, name):
            return
        committed = self._tokens.has(connection, name.branch)
        connection.rollback()
        if not committed:
            raise SinkError(
                f"sink {self._uid!r}: {self._session.dialect.name} has no prepared transaction {name}, and it was never "
                f"committed: somebody rolled it back, or the server lost it. Its rows are missing. Start the job from an older "
                f"checkpoint, which computes them again, and what came after them"
            )

    def abort(self, committables: Sequence[Json]) -> None:
        for committable in committables:
            name = TransactionName(self._owner, committable["transaction"])
            self._session.run(partial(self._roll_back, name=name), f"rolling back {name}", retries=RETRIES)

    def _roll_back(self, connection: Connection, name: TransactionName) -> None:
        self._session.dialect.roll_back_prepared(connection, name)

    def sweep(self, keep: Sequence[Json]) -> None:
        kept = {committable["transaction"] for committable in keep}
        try:
            self._session.run(lambda connection: self._sweep(connection, kept), "sweeping", retries=RETRIES)
        except (FiresteelError, OSError) as error:  # the next sweep tries again
            log.warning("sink %s could not roll back what is left over of older transactions: %s", self._uid, error)

    def _sweep(self, connection: Connection, kept: set[str]) -> None:
        for name in list(self._session.dialect.prepared(connection, self._owner)):
            if name.incarnation < self._incarnation and name.branch not in kept:
                self._roll_back(connection, name)
                log.info("sink %s rolled back %s, which no checkpoint knows", self._uid, name)
        # whatever has a token that can be seen is committed, and its checkpoint confirmed
        tokens = [token for token in self._tokens.all(connection) if token not in kept]
        self._tokens.remove(connection, tokens)
        connection.commit()
