"""Real database servers for tests, from the machine's packages: on a free port, in a directory that goes with them."""

from __future__ import annotations

import contextlib
import glob
import itertools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import psutil
import psycopg
import pymysql
import pytest

from firesteel.datastream.connectors.jdbc import JdbcConnectionOptions

USER, PASSWORD = "firesteel", "a secret"


class DatabaseServer(ABC):
    """A server of its own, run by somebody without rights if the tests are run by root."""

    kind: str
    package: str
    accounts: tuple[str, ...]

    def __init__(self) -> None:
        self.user = (
            next((name for name in (*self.accounts, "nobody") if _exists(name)), None) if not os.getuid() else None
        )
        memory = "/dev/shm"  # where syncing costs nothing: servers are killed here, and no power is cut
        place = memory if os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 1 << 30 else None
        self.directory = tempfile.mkdtemp(prefix=f"firesteel-{self.kind}-", dir=place)
        self.port = free_port()
        self._databases = itertools.count(1)
        self._process: subprocess.Popen[bytes] | None = None
        if self.user is not None:
            account = pwd.getpwnam(self.user)
            os.chown(self.directory, account.pw_uid, account.pw_gid)
        try:
            self._initialize()
            self.start()
        except BaseException:
            self.close()
            raise

    @abstractmethod
    def _initialize(self) -> None: ...

    @abstractmethod
    def _command(self) -> list[str]: ...

    @abstractmethod
    def connect(self, database: str, user: str = USER, password: str = PASSWORD) -> Any: ...

    @abstractmethod
    def in_doubt(self) -> list[str]:
        """What is prepared and neither committed nor rolled back, whoever it is of; the ids begin with the owner's."""

    def _run(self, *command: str, **more: Any) -> None:
        done = subprocess.run(
            command, user=self.user, cwd=self.directory, capture_output=True, text=True, check=False, **more
        )
        assert done.returncode == 0, f"{command[0]} fails: {done.stderr} {done.stdout}"

    def start(self) -> None:
        with open(os.path.join(self.directory, "log"), "ab") as log:
            self._process = subprocess.Popen(
                self._command(), user=self.user, cwd=self.directory, stdout=log, stderr=log, start_new_session=True
            )
        give_up = time.monotonic() + 30
        while True:
            try:
                return self.connect(self._first).close()
            except (psycopg.OperationalError, pymysql.OperationalError):
                assert self._process.poll() is None and time.monotonic() < give_up, self.log()
                time.sleep(0.02)

    def stop(self, how: signal.Signals = signal.SIGKILL) -> None:
        assert self._process is not None
        self._process.send_signal(how)
        self._process.wait(60)

    def kill(self) -> None:
        """Everything that belongs to it at once, as the end of its machine would. What it started is in other sessions."""
        assert self._process is not None
        main = psutil.Process(self._process.pid)
        family = [*main.children(recursive=True), main]
        for each in [main, *family]:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()
        self._process.wait(60)
        psutil.wait_procs(family, 60)  # a server does not start while one of another life has its shared memory

    def restart(self) -> None:
        """As after a crash."""
        self.stop(self.crash)
        self.start()

    crash = signal.SIGKILL
    _first: str

    def log(self) -> str:
        with open(os.path.join(self.directory, "log"), errors="replace") as log:
            return f"{self.package} does not start: {log.read()[-3000:]}"

    def database(self) -> Database:
        """A new one."""
        name = f"db{next(self._databases)}"
        connection = self.connect(self._first)
        self._create(connection, name)
        connection.close()
        return Database(self, name)

    @abstractmethod
    def _create(self, connection: Any, name: str) -> None: ...

    def close(self) -> None:
        if self._process is not None:
            self.stop(self.crash)
        shutil.rmtree(self.directory, ignore_errors=True)


class PostgreSqlServer(DatabaseServer):
    kind, package, accounts, _first = "postgresql", "postgresql", ("postgres",), "postgres"
    crash = signal.SIGQUIT  # its immediate shutdown: no checkpoint, and no shared memory left over

    prepared_transactions = 30

    def _initialize(self) -> None:
        secret = os.path.join(self.directory, "secret")
        with open(secret, "w") as file:
            file.write(PASSWORD)
        os.chmod(secret, 0o644)
        self._run(
            _program("initdb", self.package, "/usr/lib/postgresql/*/bin"), "-D", f"{self.directory}/data", "--no-sync",
            "-U", USER, "-A", "scram-sha-256", f"--pwfile={secret}", "--locale=C.UTF-8",
        )  # fmt: skip

    def _command(self) -> list[str]:
        settings = {
            "port": self.port, "listen_addresses": "127.0.0.1", "unix_socket_directories": self.directory, "fsync": "off",
            "max_prepared_transactions": self.prepared_transactions, "shared_buffers": "16MB", "autovacuum": "off",
        }  # fmt: skip
        options = [f"-c{name}={value}" for name, value in settings.items()]
        return [
            _program("postgres", self.package, "/usr/lib/postgresql/*/bin"),
            "-D",
            f"{self.directory}/data",
            *options,
        ]

    def connect(self, database: str, user: str = USER, password: str = PASSWORD) -> Any:
        return psycopg.connect(
            host="127.0.0.1", port=self.port, dbname=database, user=user, password=password, autocommit=True
        )

    def _create(self, connection: Any, name: str) -> None:
        connection.execute(f"CREATE DATABASE {name} STRATEGY file_copy")

    def in_doubt(self) -> list[str]:
        with self.connect(self._first) as connection:
            return [gid for (gid,) in connection.execute("SELECT gid FROM pg_prepared_xacts").fetchall()]


class MariaDbServer(DatabaseServer):
    kind, package, accounts, _first = "mariadb", "mariadb-server", ("mysql",), "mysql"

    def _initialize(self) -> None:
        self._run(
            _program("mariadb-install-db", self.package), "--no-defaults", f"--datadir={self.directory}/data",
            "--auth-root-authentication-method=normal", "--skip-test-db",
        )  # fmt: skip
        with open(os.path.join(self.directory, "init.sql"), "w") as file:
            file.write(
                f"CREATE USER IF NOT EXISTS {USER} IDENTIFIED BY '{PASSWORD}';\nGRANT ALL ON *.* TO {USER} WITH GRANT OPTION;\n"
            )
        os.chmod(file.name, 0o644)

    def _command(self) -> list[str]:
        return [
            _program("mariadbd", self.package, "/usr/sbin"), "--no-defaults", f"--datadir={self.directory}/data",
            f"--port={self.port}", "--bind-address=127.0.0.1", f"--socket={self.directory}/socket", "--skip-name-resolve",
            f"--pid-file={self.directory}/pid", f"--init-file={self.directory}/init.sql", "--innodb-buffer-pool-size=32M",
            "--innodb-log-file-size=16M", "--innodb-flush-log-at-trx-commit=2", "--skip-log-bin",
        ]  # fmt: skip

    def connect(self, database: str, user: str = USER, password: str = PASSWORD) -> Any:
        return pymysql.connect(
            host="127.0.0.1",
            port=self.port,
            database=database,
            user=user,
            password=password,
            autocommit=True,
            ssl_disabled=True,
            charset="utf8mb4",
        )

    def _create(self, connection: Any, name: str) -> None:
        connection.query(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")

    def in_doubt(self) -> list[str]:
        connection = self.connect(self._first)
        with contextlib.closing(connection), connection.cursor() as cursor:
            cursor.execute("XA RECOVER")
            return [str(row[3]) for row in cursor.fetchall()]


class Database:
    """One database of a server, for one test."""

    def __init__(self, server: DatabaseServer, name: str) -> None:
        self.server, self.name = server, name

    @property
    def kind(self) -> str:
        return self.server.kind

    @property
    def url(self) -> str:
        mode = "sslmode" if self.kind == "postgresql" else "sslMode"
        return f"jdbc:{self.kind}://127.0.0.1:{self.server.port}/{self.name}?{mode}=disable"

    def options(self, patience_s: int = 30, password: str = PASSWORD) -> JdbcConnectionOptions:
        builder = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(self.url).with_user_name(USER)
        return builder.with_password(password).with_connection_check_timeout_seconds(patience_s).build()

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        connection = self.server.connect(self.name)
        with contextlib.closing(connection), connection.cursor() as cursor:
            cursor.execute(sql)
            return [tuple(row) for row in cursor.fetchall()] if cursor.description else []

    def numbers(self, table: str = "numbers") -> list[int]:
        return sorted(number for (number,) in self.run(f"SELECT n FROM {table}"))


def serving(kind: type[DatabaseServer]) -> Iterator[DatabaseServer]:
    server = kind()
    try:
        yield server
    finally:
        server.close()


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _program(name: str, package: str, places: str = "") -> str:
    """The newest there is."""
    found = shutil.which(name) or max(glob.glob(os.path.join(places, name)), default=None)
    if found is None:
        pytest.fail(
            f"{name} is not installed, which these tests run: apt-get install {package} (`make setup` does, as root)"
        )
    return found


def _exists(account: str) -> bool:
    try:
        pwd.getpwnam(account)
    except KeyError:
        return False
    return True
