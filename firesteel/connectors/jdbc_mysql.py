"""MariaDB and MySQL, spoken to by PyMySQL. The only home of pymysql."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from firesteel.connectors.jdbc_dialect import Connection, Dialect, TransactionName, Trouble, is_dml
from firesteel.connectors.jdbc_statement import Parameters, Statement
from firesteel.connectors.jdbc_url import Address
from firesteel.errors import ConfigurationError, SinkError

# https://mariadb.com/kb/en/mariadb-error-codes/
_TRANSIENT = {
    0,
    1020,
    1021,
    1040,
    1053,
    1077,
    1079,
    1114,
    1158,
    1159,
    1160,
    1161,
    1203,
    1205,
    1213,
    1290,
    1792,
    1836,
    1927,
}
_SETUP = {1044, 1045, 1046, 1049, 1054, 1064, 1136, 1142, 1143, 1146, 1227, 1370, 1401, 1698}
_NO_SUCH_XA = 1397
_ROLLED_BACK_XA = 1402


class MySql(Dialect):
    create_token_table = (
        "CREATE TABLE IF NOT EXISTS {table} (owner varchar(64) NOT NULL, token varchar(64) NOT NULL, uid text NOT NULL, "
        "checkpoint bigint, written_at timestamp NOT NULL DEFAULT current_timestamp, PRIMARY KEY (owner, token)) "
        "ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
    )

    def __init__(self, kind: str) -> None:
        self.name = "MariaDB" if kind == "mariadb" else "MySQL"

    @property
    def _pymysql(self) -> Any:
        try:
            import pymysql
        except ImportError as error:
            raise ConfigurationError(
                f"writing to {self.name} takes PyMySQL, on the driver and on all workers: pip install 'firesteel[mysql]' "
                f"({error})"
            ) from error
        return pymysql

    def connect(
        self, address: Address, user: str | None, password: str | None, application: str, lock_timeout_s: int
    ) -> Connection:
        timeout: int = 10
        tls: dict[str, Any] = {}  # as the server likes, without looking at its certificate
        for key, value in address.properties.items():
            if key in ("user", "password"):
                user, password = (value, password) if key == "user" else (user, value)
            elif key == "connectTimeout":
                timeout = max(1, int(value) // 1000)
            elif key in ("sslCa", "serverSslCert"):
                tls = {"ssl_ca": value, "ssl_verify_cert": True, "ssl_verify_identity": True}
            elif key == "sslMode" and value.lower() in ("disable", "disabled"):
                tls = {"ssl_disabled": True}
            else:
                known = "connectTimeout, password, serverSslCert, sslCa, sslMode=disable, user"
                raise ConfigurationError(f"the address {address} has a property {key!r}; known are {known}")
        return self._pymysql.connect(
            host=address.host, port=address.port, database=address.database, user=user, password=password or "",
            charset="utf8mb4", autocommit=False, connect_timeout=timeout, program_name=application,
            # values that do not fit are errors, and are never cut
            init_command=f"SET SESSION sql_mode = CONCAT(@@sql_mode, ',STRICT_ALL_TABLES'), "
            f"innodb_lock_wait_timeout = {lock_timeout_s}",
            **tls,
        )  # fmt: skip

    @property
    def error(self) -> type[Exception]:
        return self._pymysql.MySQLError  # type: ignore[no-any-return]

    def trouble(self, error: Exception) -> Trouble:
        code = _code(error)
        if code in _TRANSIENT or 2000 <= code < 3000:  # these are the client's, about connections
            return Trouble.TRANSIENT
        return Trouble.SETUP if code in _SETUP else Trouble.ROW

    def execute_many(self, connection: Connection, statement: Statement, rows: Sequence[Parameters]) -> None:
        sql = statement.formatted()
        # the driver makes one INSERT of many rows, but would not fill in what comes after them
        tail = re.split(r"\bON\s+DUPLICATE\b", sql, maxsplit=1, flags=re.IGNORECASE)
        with connection.cursor() as cursor:
            if len(tail) == 1 or "%" not in tail[1]:
                cursor.executemany(sql, rows)
            else:
                for row in rows:
                    cursor.execute(sql, row)

    def check_statement(self, connection: Connection, statement: Statement) -> None:
        if is_dml(statement.sql):
            with connection.cursor() as cursor:
                cursor.execute("PREPARE firesteel_check FROM %s", (statement.native(),))
                cursor.execute("DEALLOCATE PREPARE firesteel_check")
            connection.rollback()

    def has_table(self, connection: Connection, table: str) -> bool:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = %s",
                (table,),
            )
            return bool(cursor.fetchone()[0])

    def insert_ignoring(self, table: str, columns: str, values: str) -> str:
        return f"INSERT IGNORE INTO {table} ({columns}) VALUES ({values})"

    def check_prepared(self, connection: Connection, parallelism: int) -> None:
        try:
            list(self._recover(connection))
        except self.error as error:
            raise ConfigurationError(
                f"the sink has to find its prepared transactions with XA RECOVER, and the server does not let it: {error}. On "
                f"MySQL: GRANT XA_RECOVER_ADMIN ON *.* TO the user of the sink"
            ) from error
        if "-MariaDB" in connection.get_server_info() and _version(connection) < (10, 5):
            raise ConfigurationError(
                f"{connection.get_server_info()} rolls prepared transactions back when their connection ends; MariaDB 10.5 and "
                f"newer keep them. Leave out with_prepared_transactions(), which works with any version"
            )

    def begin(self, connection: Connection, name: TransactionName) -> None:
        connection.rollback()
        connection.query(f"XA START {_xid(name)}")

    def prepare(self, connection: Connection, name: TransactionName) -> None:
        connection.query(f"XA END {_xid(name)}")
        connection.query(f"XA PREPARE {_xid(name)}")

    def commit_prepared(self, connection: Connection, name: TransactionName) -> bool:
        return self._resolve(connection, "COMMIT", name)

    def roll_back_prepared(self, connection: Connection, name: TransactionName) -> bool:
        return self._resolve(connection, "ROLLBACK", name)

    def _resolve(self, connection: Connection, verb: str, name: TransactionName) -> bool:
        connection.rollback()
        connection.autocommit(True)  # without, everything is inside of a transaction, and this must not be
        try:
            connection.query(f"XA {verb} {_xid(name)}")
        except self.error as error:
            if _code(error) == _ROLLED_BACK_XA and verb == "ROLLBACK":
                return True
            if _code(error) != _NO_SUCH_XA:
                raise
            if name in self.prepared(connection, name.owner):
                # the same answer as for one that is gone: the server has not noticed yet that its connection is closed
                raise SinkError(
                    f"{self.name} has the transaction {name} prepared, but still with the connection that prepared it",
                    transient=True,
                ) from error
            return False
        finally:
            if connection.open:
                connection.autocommit(False)
        return True

    def prepared(self, connection: Connection, owner: str) -> Iterator[TransactionName]:
        for gtrid, bqual in self._recover(connection):
            if gtrid == owner.encode():
                yield TransactionName(owner, bqual.decode())

    def _recover(self, connection: Connection) -> Iterator[tuple[bytes, bytes]]:
        connection.rollback()
        with connection.cursor() as cursor:
            cursor.execute("XA RECOVER")
            rows = cursor.fetchall()
        connection.rollback()
        for _, length, _, data in rows:
            raw = data if isinstance(data, bytes) else str(data).encode()
            yield raw[:length], raw[length:]


def _xid(name: TransactionName) -> str:
    return f"'{name.owner}','{name.branch}'"  # letters, digits and dashes


def _code(error: Exception) -> int:
    code = error.args[0] if error.args else 0
    return code if isinstance(code, int) else -1


def _version(connection: Connection) -> tuple[int, ...]:
    found = re.search(r"(\d+)\.(\d+)\.\d+-MariaDB", connection.get_server_info())
    return tuple(map(int, found.groups())) if found else (0,)
