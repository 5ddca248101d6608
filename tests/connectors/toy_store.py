"""A store with transactions that outlive their connection, in SQLite; and sinks for it.

It notes every call that a careful store would not forgive.
"""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Iterable
from typing import Any

from firesteel.datastream import CheckpointCommitter, GenericWriteAheadSink, TwoPhaseCommitSinkFunction
from tests.connectors.killing import step

_TABLES = """
CREATE TABLE IF NOT EXISTS transactions (name TEXT PRIMARY KEY, state TEXT);
CREATE TABLE IF NOT EXISTS staged (name TEXT, value);
CREATE TABLE IF NOT EXISTS visible (value);
CREATE TABLE IF NOT EXISTS notes (job TEXT, operator TEXT, subtask INTEGER, checkpoint INTEGER);
CREATE TABLE IF NOT EXISTS violations (what TEXT);
CREATE TABLE IF NOT EXISTS calls (what TEXT);
"""


class Store:
    """Every call is one transaction of SQLite, and a connection of its own: nothing is lost with a process."""

    def __init__(self, path: str) -> None:
        self.path = path

    def run(self, *statements: tuple[str, tuple[Any, ...]]) -> list[Any]:
        connection = sqlite3.connect(self.path)
        try:
            connection.execute("PRAGMA synchronous = OFF")
            connection.executescript(_TABLES)
            rows: list[Any] = []
            with connection:
                for statement, values in statements:
                    rows = connection.execute(statement, values).fetchall()
            return rows
        finally:
            connection.close()

    def state(self, name: str) -> str | None:
        rows = self.run(("SELECT state FROM transactions WHERE name = ?", (name,)))
        return rows[0][0] if rows else None

    def violated(self, what: str) -> None:
        self.run(("INSERT INTO violations VALUES (?)", (what,)))

    def visible(self) -> list[Any]:
        return sorted(value for (value,) in self.run(("SELECT value FROM visible", ())))

    def violations(self) -> list[str]:
        return [what for (what,) in self.run(("SELECT what FROM violations", ()))]

    def unresolved(self) -> list[str]:
        return [name for (name,) in self.run(("SELECT name FROM transactions WHERE state IN ('open', 'prepared')", ()))]

    def calls(self) -> list[str]:
        return [what for (what,) in self.run(("SELECT what FROM calls", ()))]

    def called(self, what: str) -> int:
        """How often, with this time."""
        self.run(("INSERT INTO calls VALUES (?)", (what,)))
        return self.calls().count(what)


class StoreSink(TwoPhaseCommitSinkFunction):
    """Commits once, recovers as often as it takes."""

    def __init__(self, path: str) -> None:
        self.store = Store(path)

    def begin_transaction(self) -> Any:
        return {"name": uuid.uuid4().hex}

    def invoke(self, transaction: Any, value: Any, context: Any) -> None:
        name = transaction["name"]
        step("before invoke")
        if self.store.state(name) not in (None, "open"):
            self.store.violated(f"{name} written to when it was {self.store.state(name)}")
        self.store.run(
            ("INSERT OR IGNORE INTO transactions VALUES (?, 'open')", (name,)),
            ("INSERT INTO staged VALUES (?, ?)", (name, value)),
        )
        step("after invoke")

    def pre_commit(self, transaction: Any) -> None:
        step("before pre_commit")
        self.store.run(("UPDATE transactions SET state = 'prepared' WHERE name = ?", (transaction["name"],)))
        step("after pre_commit")

    def commit(self, transaction: Any) -> None:
        if self.store.state(transaction["name"]) != "prepared":
            self.store.violated(f"commit of what is {self.store.state(transaction['name'])}")
        self._commit(transaction)

    def recover_and_commit(self, transaction: Any) -> None:
        state = self.store.state(transaction["name"])
        if state == "prepared":
            self._commit(transaction)
        elif state != "committed":
            self.store.violated(f"recover_and_commit of what is {state}")

    def _commit(self, transaction: Any) -> None:
        name = transaction["name"]
        step("before commit")
        self.store.run(
            ("UPDATE transactions SET state = 'committed' WHERE name = ?", (name,)),
            ("INSERT INTO visible SELECT value FROM staged WHERE name = ?", (name,)),
            ("DELETE FROM staged WHERE name = ?", (name,)),
        )
        step("after commit")

    def abort(self, transaction: Any) -> None:
        name = transaction["name"]
        step("before abort")
        if self.store.state(name) == "committed":
            self.store.violated("abort of what is committed")
            return
        self.store.run(
            ("UPDATE transactions SET state = 'aborted' WHERE name = ?", (name,)),
            ("DELETE FROM staged WHERE name = ?", (name,)),
        )
        step("after abort")


class StoreNotes(CheckpointCommitter):
    """Notes in the same store as the values."""

    def __init__(self, path: str) -> None:
        self.store = Store(path)

    def commit_checkpoint(self, subtask_idx: int, checkpoint_id: int) -> None:
        step("before the note")
        note = (self.job_id, self.operator_id, subtask_idx, checkpoint_id)
        self.store.run(("INSERT INTO notes VALUES (?, ?, ?, ?)", note))
        step("after the note")

    def is_checkpoint_committed(self, subtask_idx: int, checkpoint_id: int) -> bool:
        where = "job = ? AND operator = ? AND subtask = ? AND checkpoint >= ?"
        note = (self.job_id, self.operator_id, subtask_idx, checkpoint_id)
        return bool(self.store.run((f"SELECT 1 FROM notes WHERE {where}", note)))


class LogSink(GenericWriteAheadSink):
    """Sends values to the store with nothing to tell them apart by."""

    def __init__(self, path: str, notes: bool = True) -> None:
        super().__init__(StoreNotes(path) if notes else None)
        self.store = Store(path)

    def send_values(self, values: Iterable[Any], checkpoint_id: int, timestamp: int) -> bool:
        step("before send_values")
        self.store.run(*(("INSERT INTO visible VALUES (?)", (value,)) for value in values))
        step("after send_values")
        return True


class UpsertingLogSink(LogSink):
    """Sends values that replace themselves."""

    def send_values(self, values: Iterable[Any], checkpoint_id: int, timestamp: int) -> bool:
        step("before send_values")
        for value in values:
            self.store.run(
                ("DELETE FROM visible WHERE value = ?", (value,)), ("INSERT INTO visible VALUES (?)", (value,))
            )
            step("a value sent")
        return True


class OneTransactionNotes(CheckpointCommitter):
    """Ends the transaction that `send_values` began."""

    def __init__(self, path: str) -> None:
        self.path = path

    def open(self) -> None:
        Store(self.path).run()
        self.connection = sqlite3.connect(self.path, isolation_level=None)
        step.connections.append(self.connection)

    def close(self) -> None:
        self.connection.close()

    def commit_checkpoint(self, subtask_idx: int, checkpoint_id: int) -> None:
        step("before the note")
        note = (self.job_id, self.operator_id, subtask_idx, checkpoint_id)
        self.connection.execute("INSERT INTO notes VALUES (?, ?, ?, ?)", note)
        step("before the end of the transaction")
        self.connection.execute("COMMIT")
        step("after the note")

    def is_checkpoint_committed(self, subtask_idx: int, checkpoint_id: int) -> bool:
        return StoreNotes.is_checkpoint_committed(self, subtask_idx, checkpoint_id)  # type: ignore[arg-type]

    @property
    def store(self) -> Store:
        return Store(self.path)


class OneTransactionLogSink(GenericWriteAheadSink):
    """Shares the connection of its notes."""

    def __init__(self, path: str) -> None:
        super().__init__(OneTransactionNotes(path))

    def send_values(self, values: Iterable[Any], checkpoint_id: int, timestamp: int) -> bool:
        connection = self.checkpoint_committer.connection  # type: ignore[union-attr]
        if connection.in_transaction:  # of an attempt that failed
            connection.execute("ROLLBACK")
        connection.execute("BEGIN")
        for value in values:
            step("before a value")
            connection.execute("INSERT INTO visible VALUES (?)", (value,))
        return True
