"""Exactly once without any setting of the server: a checkpoint's rows in one local transaction, with a token.

The life of a row, and where it can stop:

1. `write` appends it to a log in the job's directory, `persist` makes that durable. The job rolls back: the log is deleted.
2. The checkpoint is complete. On the driver, one transaction locks the sink's token, and does nothing if the token
   says that this checkpoint is in. Otherwise all rows of all subtasks are written, and the token is set to it. The driver
   dies anywhere: the server rolls back, and recovery does the same again. The answer to COMMIT is lost: so it does, and
   finds the token. Somebody who was superseded is late: he waits for the lock, and finds it, too.
3. The checkpoint is confirmed: the log is deleted.

No lock is held between checkpoints, and others see a checkpoint's rows all at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from firesteel.common.crashpoints import crash_point
from firesteel.connectors.base import CommitterContext, Json, WriterContext
from firesteel.connectors.jdbc_committing import RETRIES, JdbcCommitter
from firesteel.connectors.jdbc_dialect import Connection
from firesteel.connectors.jdbc_session import Session
from firesteel.connectors.jdbc_statement import Parameters, Statement
from firesteel.connectors.jdbc_token import Tokens
from firesteel.connectors.sink_directory import sink_storage
from firesteel.connectors.write_ahead import LogKeeper, LogWriter
from firesteel.connectors.write_ahead_log import check_log, read_log

_LAST = "last checkpoint"
_NONE = -1


class RowLogWriter(LogWriter):
    """Logs the values of rows, so that a record that does not fit fails in the slot, where it is."""

    def __init__(self, context: WriterContext, statement: Statement) -> None:
        super().__init__(context)
        self._statement = statement

    def write(self, values: Sequence[Any]) -> None:
        super().write([self._statement.parameters(value) for value in values])


class LocalTransactionCommitter(JdbcCommitter):
    """Writes a checkpoint's rows, once."""

    kind = "log"

    def __init__(
        self,
        session: Session,
        tokens: Tokens,
        statement: Statement,
        batch_size: int,
        max_attempts: int | None,
        context: CommitterContext,
    ) -> None:
        super().__init__(session, max_attempts, context.uid)
        self._tokens, self._statement, self._batch_size = tokens, statement, batch_size
        self._storage = sink_storage(context)
        self._logs = LogKeeper(self._storage, context.incarnation)

    def commit_checkpoint(self, checkpoint: int, committables: Sequence[Json]) -> None:
        self._check(committables)
        doing = f"committing checkpoint {checkpoint}"
        self._attempt(
            lambda: self._session.run(
                lambda connection: self._commit(connection, checkpoint, committables), doing, retries=RETRIES
            )
        )
        self._logs.sent(log["log"] for log in committables)

    def _commit(self, connection: Connection, checkpoint: int, logs: Sequence[Json]) -> None:
        self._tokens.add(connection, _LAST, _NONE)
        if self._tokens.lock_checkpoint(connection, _LAST) >= checkpoint:
            connection.rollback()
            return
        crash_point("jdbc-token-locked")
        for log in logs:
            check_log(self._storage, log["log"], log["size"])
        self._session.write(connection, self._statement, self._rows(logs), self._batch_size)
        crash_point("jdbc-rows-written")
        self._tokens.set_checkpoint(connection, _LAST, checkpoint)
        crash_point("jdbc-before-commit")
        connection.commit()
        crash_point("jdbc-after-commit")

    def _rows(self, logs: Sequence[Json]) -> Iterator[Parameters]:
        for log in logs:
            yield from read_log(self._storage, log["log"], log["size"])

    def abort(self, committables: Sequence[Json]) -> None:
        self._logs.delete(log["log"] for log in committables)

    def sweep(self, keep: Sequence[Json]) -> None:
        self._logs.sweep(log["log"] for log in keep)
