"""PostgreSQL, spoken to by psycopg 3. The only home of psycopg."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from firesteel.connectors.jdbc_dialect import Connection, Dialect, TransactionName, Trouble, is_dml
from firesteel.connectors.jdbc_statement import Parameters, Statement
from firesteel.connectors.jdbc_url import Address
from firesteel.errors import ConfigurationError

_PROPERTIES = {  # of JDBC's driver -> of libpq
    "ApplicationName": "application_name",
    "connectTimeout": "connect_timeout",
    "sslmode": "sslmode",
    "sslrootcert": "sslrootcert",
    "sslcert": "sslcert",
    "sslkey": "sslkey",
}
_TRANSIENT = ("08", "40", "53", "55", "57", "58", "XX", "25006")  # 25006: a standby, of which a new primary may be made
_SETUP = ("0A", "28", "3D", "3F", "42")
_REFUSED = (
    "authentication failed",
    "does not exist",
    "no pg_hba.conf entry",
    "permission denied",
    "no password supplied",
)


class PostgreSql(Dialect):
    name = "PostgreSQL"
    create_token_table = (
        "CREATE TABLE IF NOT EXISTS {table} (owner varchar(64) NOT NULL, token varchar(64) NOT NULL, uid text NOT NULL, "
        "checkpoint bigint, written_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (owner, token))"
    )

    @property
    def _psycopg(self) -> Any:
        try:
            import psycopg
        except ImportError as error:
            raise ConfigurationError(
                f"writing to PostgreSQL takes psycopg 3, on the driver and on all workers: pip install "
                f"'firesteel[postgresql]' ({error})"
            ) from error
        return psycopg

    def connect(
        self, address: Address, user: str | None, password: str | None, application: str, lock_timeout_s: int
    ) -> Connection:
        settings = {"connect_timeout": "10", "application_name": application}
        options = f"-c lock_timeout={lock_timeout_s}s"
        for key, value in address.properties.items():
            if key == "currentSchema":
                options += f" -c search_path={value.replace(' ', '')}"
            elif key in ("user", "password"):
                user, password = (value, password) if key == "user" else (user, value)
            elif key in _PROPERTIES:
                settings[_PROPERTIES[key]] = value
            else:
                known = ", ".join(sorted([*_PROPERTIES, "currentSchema", "user", "password"]))
                raise ConfigurationError(f"the address {address} has a property {key!r}; known are {known}")
        return self._psycopg.connect(
            host=address.host, port=address.port, dbname=address.database, user=user, password=password,
            options=options, **settings,
        )  # fmt: skip

    @property
    def error(self) -> type[Exception]:
        return self._psycopg.Error  # type: ignore[no-any-return]

    def trouble(self, error: Exception) -> Trouble:
        state = getattr(error, "sqlstate", None)
        if state is None:  # no connection; why not is in the text alone
            if isinstance(error, self._psycopg.OperationalError):
                return Trouble.SETUP if any(text in str(error) for text in _REFUSED) else Trouble.TRANSIENT
            return Trouble.ROW  # a value that the driver has no type for
        if state.startswith(_TRANSIENT):
            return Trouble.TRANSIENT
        return Trouble.SETUP if state.startswith(_SETUP) else Trouble.ROW

    def execute_many(self, connection: Connection, statement: Statement, rows: Sequence[Parameters]) -> None:
        with connection.cursor() as cursor:
            cursor.executemany(statement.formatted(), rows)

    def check_statement(self, connection: Connection, statement: Statement) -> None:
        if is_dml(statement.sql):
            connection.execute(f"PREPARE firesteel_check AS {statement.numbered()}")
            connection.execute("DEALLOCATE firesteel_check")
            connection.rollback()

    def has_table(self, connection: Connection, table: str) -> bool:
        return bool(connection.execute("SELECT to_regclass(%s) IS NOT NULL", (table,)).fetchone()[0])

    def insert_ignoring(self, table: str, columns: str, values: str) -> str:
        return f"INSERT INTO {table} ({columns}) VALUES ({values}) ON CONFLICT DO NOTHING"

    def check_prepared(self, connection: Connection, parallelism: int) -> None:
        (text,) = connection.execute("SHOW max_prepared_transactions").fetchone()
        connection.rollback()
        if int(text) < parallelism:
            raise ConfigurationError(
                f"the sink has up to {parallelism} transactions prepared at a time (more, if checkpoints fail), and the server "
                f"keeps at most {text}. Set max_prepared_transactions = {max(10, 2 * parallelism)} in postgresql.conf and "
                f"restart the server; or leave out with_prepared_transactions(), which needs no setting"
            )

    def begin(self, connection: Connection, name: TransactionName) -> None:
        """Every connection is in a transaction already."""

    def prepare(self, connection: Connection, name: TransactionName) -> None:
        connection.execute(f"PREPARE TRANSACTION '{name}'")  # of letters, digits and dashes

    def commit_prepared(self, connection: Connection, name: TransactionName) -> bool:
        return self._resolve(connection, f"COMMIT PREPARED '{name}'")

    def roll_back_prepared(self, connection: Connection, name: TransactionName) -> bool:
        return self._resolve(connection, f"ROLLBACK PREPARED '{name}'")

    def _resolve(self, connection: Connection, command: str) -> bool:
        connection.rollback()  # these commands are outside of transactions
        connection.autocommit = True
        try:
            connection.execute(command)
        except self._psycopg.errors.UndefinedObject:
            return False
        finally:
            if not connection.closed:
                connection.autocommit = False
        return True

    def prepared(self, connection: Connection, owner: str) -> Iterator[TransactionName]:
        # of this database: only from there it can be resolved
        listed = connection.execute(
            "SELECT gid FROM pg_prepared_xacts WHERE database = current_database() AND starts_with(gid, %s) ORDER BY gid",
            (f"{owner}-",),
        ).fetchall()
        connection.rollback()
        for (gid,) in listed:
            yield TransactionName(owner, gid[len(owner) + 1 :])
