"""What is different between the servers: connecting, errors, prepared transactions."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from firesteel.connectors.jdbc_statement import Parameters, Statement
from firesteel.connectors.jdbc_url import Address
from firesteel.connectors.part_names import short_hash

Connection = Any
"""An open connection of a driver, as Python's DB-API has it, with `%s` for values and no autocommit."""


class Trouble(enum.Enum):
    """What an error of a server calls for."""

    TRANSIENT = "try again"  # no connection, a deadlock, a full disk
    SETUP = "ask the user"  # credentials, a missing table, a statement that does not fit
    ROW = "look at the rows"  # a violated constraint, a value out of range


@dataclass(frozen=True)
class TransactionName:
    """Whose prepared transaction it is: `firesteel-<job>-<sink>` and `<incarnation>-<subtask>-<nonce>`.

    Job and sink are hashes of 16 digits, so that both parts fit into an XA id and nobody else's are ever taken for these.
    The nonce makes it unique, even if a slot is made twice.
    """

    owner: str
    branch: str

    @staticmethod
    def owner_of(job_id: str, uid: str) -> str:
        return f"firesteel-{short_hash(job_id)}-{short_hash(uid)}"

    @property
    def incarnation(self) -> int:
        return int(self.branch.partition("-")[0])

    def __str__(self) -> str:
        return f"{self.owner}-{self.branch}"


class Dialect(ABC):
    """One kind of server. Holds no connection."""

    name: str
    create_token_table: str

    @abstractmethod
    def connect(
        self, address: Address, user: str | None, password: str | None, application: str, lock_timeout_s: int
    ) -> Connection:
        """Open a connection whose statements give up on locks after so many seconds."""

    @property
    @abstractmethod
    def error(self) -> type[Exception]:
        """What the driver raises."""

    @abstractmethod
    def trouble(self, error: Exception) -> Trouble: ...

    @abstractmethod
    def execute_many(self, connection: Connection, statement: Statement, rows: Sequence[Parameters]) -> None: ...

    @abstractmethod
    def check_statement(self, connection: Connection, statement: Statement) -> None:
        """Let the server look at it without running it: tables, columns, rights to be seen by it, grammar."""

    @abstractmethod
    def has_table(self, connection: Connection, table: str) -> bool: ...

    @abstractmethod
    def insert_ignoring(self, table: str, columns: str, values: str) -> str:
        """An INSERT that does nothing if the row is there."""

    # ---- prepared transactions

    @abstractmethod
    def check_prepared(self, connection: Connection, parallelism: int) -> None:
        """
        :raises ConfigurationError: the server cannot keep that many transactions prepared, and how it could.
        """

    @abstractmethod
    def begin(self, connection: Connection, name: TransactionName) -> None: ...

    @abstractmethod
    def prepare(self, connection: Connection, name: TransactionName) -> None:
        """The connection has to be closed after this, before anybody can commit."""

    @abstractmethod
    def commit_prepared(self, connection: Connection, name: TransactionName) -> bool:
        """False: there is no such transaction."""

    @abstractmethod
    def roll_back_prepared(self, connection: Connection, name: TransactionName) -> bool:
        """False: there is no such transaction."""

    @abstractmethod
    def prepared(self, connection: Connection, owner: str) -> Iterator[TransactionName]:
        """What the server keeps prepared of this job and sink."""


def dialect_of(address: Address) -> Dialect:
    from firesteel.connectors.jdbc_mysql import MySql
    from firesteel.connectors.jdbc_postgresql import PostgreSql

    return PostgreSql() if address.kind == "postgresql" else MySql(address.kind)


def is_dml(sql: str) -> bool:
    """Whether a server can prepare it: CALL and others are found out when they run."""
    return sql.lstrip(" \t\n(").partition(" ")[0].upper() in ("INSERT", "UPDATE", "DELETE", "REPLACE", "WITH", "MERGE")


def one_line(error: Exception) -> str:
    """What it says: servers add details and positions on lines of their own."""
    if len(error.args) == 2 and isinstance(error.args[0], int):  # PyMySQL's
        return f"{error.args[1]} (error {error.args[0]})"
    return " ".join(str(error).split())
