"""Notes in the database itself of what has been committed there, in the very transaction that it was committed in.

The table `firesteel_commits` is made in the database that is written to. Its rows are (owner, token): the owner is a job
and its sink; the token is what is committed.
"""

from __future__ import annotations

from collections.abc import Iterable

from firesteel.connectors.jdbc_dialect import Connection, Dialect, one_line
from firesteel.errors import ConfigurationError

TABLE = "firesteel_commits"


class Tokens:
    """The tokens of one sink."""

    def __init__(self, dialect: Dialect, owner: str, uid: str) -> None:
        self._dialect, self._owner, self._uid = dialect, owner, uid
        self._insert = dialect.insert_ignoring(TABLE, "owner, token, uid, checkpoint", "%s, %s, %s, %s")

    def make_table(self, connection: Connection) -> None:
        """If it is not there. Somebody else may be doing the same."""
        if self._dialect.has_table(connection, TABLE):
            connection.rollback()
            return
        create = self._dialect.create_token_table.format(table=TABLE)
        try:
            with connection.cursor() as cursor:
                cursor.execute(create)
            connection.commit()
        except self._dialect.error as error:
            connection.rollback()
            if not self._dialect.has_table(connection, TABLE):
                raise ConfigurationError(
                    f"sink {self._uid!r} keeps its notes of what is committed in the table {TABLE}, and cannot make it: "
                    f"{one_line(error)}. Have it made by somebody who may: {create}"
                ) from error
            connection.rollback()

    def add(self, connection: Connection, token: str, checkpoint: int | None = None) -> None:
        """If it is not there."""
        with connection.cursor() as cursor:
            cursor.execute(self._insert, (self._owner, token, self._uid, checkpoint))

    def has(self, connection: Connection, token: str) -> bool:
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT 1 FROM {TABLE} WHERE owner = %s AND token = %s", (self._owner, token))
            return cursor.fetchone() is not None

    def lock_checkpoint(self, connection: Connection, token: str) -> int:
        """The number noted with a token. Until the transaction ends, everybody else who asks has to wait."""
        with connection.cursor() as cursor:
            cursor.execute(
                f"SELECT checkpoint FROM {TABLE} WHERE owner = %s AND token = %s FOR UPDATE", (self._owner, token)
            )
            return int(cursor.fetchone()[0])

    def set_checkpoint(self, connection: Connection, token: str, checkpoint: int) -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                f"UPDATE {TABLE} SET checkpoint = %s, written_at = current_timestamp WHERE owner = %s AND token = %s",
                (checkpoint, self._owner, token),
            )

    def all(self, connection: Connection) -> list[str]:
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT token FROM {TABLE} WHERE owner = %s", (self._owner,))
            return [token for (token,) in cursor.fetchall()]

    def remove(self, connection: Connection, tokens: Iterable[str]) -> None:
        """One by one, which locks no others: some may be in transactions that are prepared."""
        with connection.cursor() as cursor:
            for token in tokens:
                cursor.execute(f"DELETE FROM {TABLE} WHERE owner = %s AND token = %s", (self._owner, token))
