"""PyFlink's `JdbcSink`: rows into a table of PostgreSQL, MariaDB or MySQL, by a statement of the user's."""

from __future__ import annotations

import logging
from typing import Any

from firesteel.common.typeinfo import RowTypeInfo
from firesteel.connectors.base import (
    CommitterContext,
    NumberedCommitter,
    PrepareContext,
    Sink,
    SinkWriter,
    WriterContext,
)
from firesteel.connectors.guarantee import DeliveryGuarantee
from firesteel.connectors.jdbc_batches import BatchWriter
from firesteel.connectors.jdbc_dialect import Connection, TransactionName
from firesteel.connectors.jdbc_local_transactions import LocalTransactionCommitter, RowLogWriter
from firesteel.connectors.jdbc_options import JdbcConnectionOptions, JdbcExactlyOnceOptions, JdbcExecutionOptions
from firesteel.connectors.jdbc_prepared import PreparedCommitter, PreparingWriter
from firesteel.connectors.jdbc_session import Session
from firesteel.connectors.jdbc_statement import Statement
from firesteel.connectors.jdbc_token import Tokens
from firesteel.errors import ConfigurationError, SinkError

__all__ = ["JdbcSink"]

log = logging.getLogger("firesteel")


class JdbcSink(Sink):
    """Give it to `stream.add_sink(...)` or `sink_to(...)`. Made by `JdbcSink.sink` and `JdbcSink.exactly_once_sink`."""

    def __init__(
        self,
        statement: Statement,
        connection: JdbcConnectionOptions,
        execution: JdbcExecutionOptions,
        exactly_once: JdbcExactlyOnceOptions | None,
    ) -> None:
        self._statement, self._connection, self._execution = statement, connection, execution
        self._exactly_once = exactly_once

    @staticmethod
    def sink(
        sql: str,
        type_info: RowTypeInfo,
        jdbc_connection_options: JdbcConnectionOptions,
        jdbc_execution_options: JdbcExecutionOptions | None = None,
    ) -> JdbcSink:
        """Rows are sent in batches, and sent again after a failure: at least once, and as good as exactly once if the
        statement replaces what is there.

        :param sql: INSERT, UPDATE, DELETE or an upsert, with a `?` for each field of a record.
        :param type_info: the fields, as `Types.ROW` or `Types.ROW_NAMED`.
        """
        return _sink(sql, type_info, jdbc_connection_options, jdbc_execution_options, None)

    @staticmethod
    def exactly_once_sink(
        sql: str,
        type_info: RowTypeInfo,
        jdbc_connection_options: JdbcConnectionOptions,
        jdbc_execution_options: JdbcExecutionOptions | None = None,
        jdbc_exactly_once_options: JdbcExactlyOnceOptions | None = None,
    ) -> JdbcSink:
        """Rows become visible when their checkpoint is complete, once, whatever fails.

        :param jdbc_exactly_once_options: None: in one local transaction of the driver for each checkpoint.
        """
        exactly_once = jdbc_exactly_once_options
        if exactly_once is None:
            exactly_once = JdbcExactlyOnceOptions.defaults()
        if not isinstance(exactly_once, JdbcExactlyOnceOptions):
            raise ConfigurationError(f"a JdbcSink takes JdbcExactlyOnceOptions, not {exactly_once!r:.200}")
        return _sink(sql, type_info, jdbc_connection_options, jdbc_execution_options, exactly_once)

    @property
    def guarantee(self) -> DeliveryGuarantee:
        return DeliveryGuarantee.AT_LEAST_ONCE if self._exactly_once is None else DeliveryGuarantee.EXACTLY_ONCE

    def prepare(self, context: PrepareContext) -> Sink:
        """Ask the server once whether all is well. If it cannot be reached, the job starts, and waits for it."""
        session, _ = self._session("", context.uid, parallelism=1)
        try:
            session.run(lambda connection: None, "before the job starts")
        except SinkError as error:
            if not error.transient:
                raise
            log.warning("the job starts without having seen its server: %s", error)
        finally:
            session.close()
        return self

    def create_writer(self, context: WriterContext) -> SinkWriter:
        patience_s = self._connection.connection_check_timeout_seconds
        session, tokens = self._session(context.job_id, context.uid, context.parallelism, patience_s)
        if self._exactly_once is None:
            return BatchWriter(session, self._statement, self._execution)
        if self._exactly_once.prepared_transactions:
            return PreparingWriter(session, tokens, self._statement, self._execution, context)
        return RowLogWriter(context, self._statement)

    def create_committer(self, context: CommitterContext) -> NumberedCommitter | None:
        exactly_once = self._exactly_once
        if exactly_once is None:
            return None
        session, tokens = self._session(context.job_id, context.uid, parallelism=1)
        attempts = exactly_once.max_commit_attempts
        if exactly_once.prepared_transactions:
            return PreparedCommitter(session, tokens, attempts, context)
        size = self._execution.batch_size
        return LocalTransactionCommitter(session, tokens, self._statement, size, attempts, context)

    def _session(self, job_id: str, uid: str, parallelism: int, patience_s: float = 0) -> tuple[Session, Tokens]:
        exactly_once, statement = self._exactly_once, self._statement

        def ready(connection: Connection) -> None:
            session.dialect.check_statement(connection, statement)
            if exactly_once is not None:
                tokens.make_table(connection)
                if exactly_once.prepared_transactions:
                    session.dialect.check_prepared(connection, parallelism)

        timeout_s = exactly_once.timeout_sec if exactly_once is not None else JdbcExactlyOnceOptions.timeout_sec
        session = Session(self._connection, uid, ready, patience_s=patience_s, lock_timeout_s=timeout_s)
        tokens = Tokens(session.dialect, TransactionName.owner_of(job_id, uid), uid)
        return session, tokens


def _sink(
    sql: str,
    type_info: RowTypeInfo,
    connection: Any,
    execution: Any,
    exactly_once: JdbcExactlyOnceOptions | None,
) -> JdbcSink:
    if not isinstance(connection, JdbcConnectionOptions):
        raise ConfigurationError(f"a JdbcSink takes JdbcConnectionOptions, not {connection!r:.200}")
    execution = JdbcExecutionOptions.defaults() if execution is None else execution
    if not isinstance(execution, JdbcExecutionOptions):
        raise ConfigurationError(f"a JdbcSink takes JdbcExecutionOptions, not {execution!r:.200}")
    return JdbcSink(Statement(sql, type_info), connection, execution, exactly_once)
