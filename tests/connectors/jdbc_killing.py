"""Sinks of tables, for jobs that are killed: every connection ends with its process."""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Sequence
from typing import Any

import pytest

from firesteel.common import Types
from firesteel.connectors import jdbc_batches, jdbc_local_transactions, jdbc_prepared, jdbc_session
from firesteel.connectors.base import Committer, CommitterContext, Json, Sink, SinkWriter, WriterContext
from firesteel.connectors.guarantee import DeliveryGuarantee
from firesteel.datastream.connectors.jdbc import JdbcExactlyOnceOptions, JdbcSink
from tests.connectors.killing import Steps, watch
from tests.support.databases import Database

MODES = ["local transactions", "prepared transactions"]
TABLE = "CREATE TABLE numbers (n INT)"  # with no key: nothing hides what is written twice


class Numbers(Sink):
    """Numbers as rows of one column."""

    def __init__(self, sink: JdbcSink) -> None:
        self.sink = sink

    @property
    def guarantee(self) -> DeliveryGuarantee:
        return self.sink.guarantee

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return _Writer(self.sink.create_writer(context))

    def create_committer(self, context: CommitterContext) -> Committer | None:
        return self.sink.create_committer(context)


class _Writer(SinkWriter):
    def __init__(self, writer: SinkWriter) -> None:
        self.writer = writer
        self.flush, self.prepare_commit = writer.flush, writer.prepare_commit  # type: ignore[method-assign]
        self.persist, self.close = writer.persist, writer.close  # type: ignore[method-assign]

    def write(self, values: Sequence[Any]) -> None:
        self.writer.write([(value,) for value in values])

    def prepare_commit(self) -> list[Json]:  # pragma: no cover  replaced above
        raise NotImplementedError


def exactly_once(mode: str, **more: Any) -> JdbcExactlyOnceOptions:
    return JdbcExactlyOnceOptions(prepared_transactions=mode == "prepared transactions", **more)


def numbers_sink(database: Database, mode: str, table: str = "numbers", **more: Any) -> Sink:
    made = JdbcSink.exactly_once_sink(
        f"INSERT INTO {table} (n) VALUES (?)",
        Types.ROW([Types.INT()]),
        database.options(),
        jdbc_exactly_once_options=exactly_once(mode, **more),
    )
    return pickle.loads(pickle.dumps(Numbers(made)))  # type: ignore[no-any-return]


def in_doubt(database: Database) -> list[str]:
    return [name for name in database.server.in_doubt() if name.startswith("firesteel")]


def watch_connections(monkeypatch: pytest.MonkeyPatch) -> Steps:
    step = watch(monkeypatch)
    for module in (jdbc_batches, jdbc_local_transactions, jdbc_prepared):
        monkeypatch.setattr(module, "crash_point", step)
    connect = jdbc_session.Session._connect

    def connect_and_note(self: jdbc_session.Session) -> Any:
        connection = connect(self)
        step.connections.append(_Quietly(connection))
        return connection

    monkeypatch.setattr(jdbc_session.Session, "_connect", connect_and_note)
    step.connections.clear()
    step.kill_at()
    return step


class _Quietly:
    """Most are closed already."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self.connection.close()
