"""At least once: batches of rows, each in a transaction of its own.

What was sent since the last checkpoint is sent again after a failure. A statement that replaces what is there
(`ON CONFLICT ... DO UPDATE`, `ON DUPLICATE KEY UPDATE`) makes that as good as once.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from firesteel.common.crashpoints import crash_point
from firesteel.connectors.base import Json, SinkWriter
from firesteel.connectors.jdbc_dialect import Connection
from firesteel.connectors.jdbc_options import JdbcExecutionOptions
from firesteel.connectors.jdbc_session import Session
from firesteel.connectors.jdbc_statement import Parameters, Statement


class BatchWriter(SinkWriter):
    """Sends rows when there are enough, when they have waited long enough, and at the end of every epoch."""

    def __init__(self, session: Session, statement: Statement, options: JdbcExecutionOptions) -> None:
        self._session, self._statement, self._options = session, statement, options
        self._rows: list[Parameters] = []
        self._since = 0.0

    def write(self, values: Sequence[Any]) -> None:
        size = self._options.batch_size
        for value in values:
            if not self._rows:
                self._since = time.monotonic()
            self._rows.append(self._statement.parameters(value))
            if len(self._rows) >= size:
                self.flush()
        interval = self._options.batch_interval_ms
        if interval and self._rows and time.monotonic() - self._since >= interval / 1000:
            self.flush()

    def flush(self) -> None:
        if not self._rows:
            return
        doing = f"writing {len(self._rows)} rows"
        self._session.run(self._send, doing, retries=self._options.max_retries)
        self._rows = []

    def _send(self, connection: Connection) -> None:
        self._session.write(connection, self._statement, self._rows, self._options.batch_size)
        crash_point("jdbc-before-batch-commit")
        connection.commit()
        crash_point("jdbc-after-batch-commit")

    def prepare_commit(self) -> list[Json]:
        self.flush()
        return []

    def close(self) -> None:
        self._session.close()
