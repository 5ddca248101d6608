"""Settings of relational sinks, under the names of Flink's JDBC connector."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from firesteel.connectors.jdbc_url import Address, parse_url
from firesteel.errors import ConfigurationError

__all__ = ["JdbcConnectionOptions", "JdbcExactlyOnceOptions", "JdbcExecutionOptions"]


@dataclass(frozen=True)
class JdbcConnectionOptions:
    """Which database, and as whom."""

    url: str = field(repr=False)  # it may have a password in it
    driver_name: str | None = None
    user_name: str | None = None
    password: str | None = field(default=None, repr=False)
    connection_check_timeout_seconds: int = 60

    def get_db_url(self) -> str:
        return self.url

    def get_driver_name(self) -> str | None:
        return self.driver_name

    def get_user_name(self) -> str | None:
        return self.user_name

    def get_password(self) -> str | None:
        return self.password

    def get_connection_check_timeout_seconds(self) -> int:
        return self.connection_check_timeout_seconds

    def address(self) -> Address:
        """Where the server is, taken from the URL."""
        return parse_url(self.url)

    class JdbcConnectionOptionsBuilder:
        """Collects the settings of JdbcConnectionOptions."""

        def __init__(self) -> None:
            self._options = JdbcConnectionOptions("")

        def with_url(self, url: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """`jdbc:postgresql://host:port/database`, `jdbc:mariadb://...` or `jdbc:mysql://...`."""
            parse_url(url)
            return self._with(url=url)

        def with_driver_name(self, driver_name: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """Java's driver class. The address says enough here: psycopg and PyMySQL are used."""
            return self._with(driver_name=driver_name)

        def with_user_name(self, user_name: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            return self._with(user_name=user_name)

        def with_password(self, password: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            return self._with(password=password)

        def with_connection_check_timeout_seconds(
            self, connection_check_timeout_seconds: int
        ) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """How long a slot waits for a server that cannot be reached, before it fails and the job restarts."""
            _check("connection_check_timeout_seconds", connection_check_timeout_seconds, 0)
            return self._with(connection_check_timeout_seconds=connection_check_timeout_seconds)

        def build(self) -> JdbcConnectionOptions:
            if not self._options.url:
                raise ConfigurationError("JdbcConnectionOptions need an address: with_url('jdbc:postgresql://...')")
            return self._options

        def _with(self, **changes: object) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            self._options = replace(self._options, **changes)  # type: ignore[arg-type]
            return self


@dataclass(frozen=True)
class JdbcExecutionOptions:
    """How many rows go to the server at once, how soon, and how often a failed attempt is repeated."""

    batch_interval_ms: int = 0
    batch_size: int = 5000
    max_retries: int = 3

    def get_batch_interval_ms(self) -> int:
        return self.batch_interval_ms

    def get_batch_size(self) -> int:
        return self.batch_size

    def get_max_retries(self) -> int:
        return self.max_retries

    @staticmethod
    def defaults() -> JdbcExecutionOptions:
        """What holds where nothing is said."""
        return JdbcExecutionOptions()

    @staticmethod
    def builder() -> JdbcExecutionOptions.Builder:
        """Begins with the defaults."""
        return JdbcExecutionOptions.Builder()

    class Builder:
        """Collects the settings of JdbcExecutionOptions."""

        def __init__(self) -> None:
            self._options = JdbcExecutionOptions()

        def with_batch_size(self, size: int) -> JdbcExecutionOptions.Builder:
            """Rows are sent when there are so many; sooner at the end of an epoch."""
            _check("size", size, 1)
            self._options = replace(self._options, batch_size=size)
            return self

        def with_batch_interval_ms(self, interval_ms: int) -> JdbcExecutionOptions.Builder:
            """Rows are sent when the oldest one has waited so long; 0: at the end of the epoch, or when there are enough."""
            _check("interval_ms", interval_ms, 0)
            self._options = replace(self._options, batch_interval_ms=interval_ms)
            return self

        def with_max_retries(self, max_retries: int) -> JdbcExecutionOptions.Builder:
            """How often a batch is tried again that failed for a reason that passes: a lost connection, a deadlock."""
            _check("max_retries", max_retries, 0)
            self._options = replace(self._options, max_retries=max_retries)
            return self

        def build(self) -> JdbcExecutionOptions:
            return self._options


@dataclass(frozen=True)
class JdbcExactlyOnceOptions:
    """How a checkpoint's rows become visible exactly once."""

    prepared_transactions: bool = False
    max_commit_attempts: int | None = None
    timeout_sec: int = 30

    @staticmethod
    def defaults() -> JdbcExactlyOnceOptions:
        """What holds where nothing is said."""
        return JdbcExactlyOnceOptions()

    @staticmethod
    def builder() -> JdbcExactlyOnceOptions.JDBCExactlyOnceOptionsBuilder:
        """Begins with the defaults."""
        return JdbcExactlyOnceOptions.JDBCExactlyOnceOptionsBuilder()

    class JDBCExactlyOnceOptionsBuilder:
        """Collects the settings of JdbcExactlyOnceOptions."""

        def __init__(self) -> None:
            self._options = JdbcExactlyOnceOptions()

        def with_prepared_transactions(
            self, enabled: bool = True
        ) -> JdbcExactlyOnceOptions.JDBCExactlyOnceOptionsBuilder:
            """Slots write rows into transactions that the server keeps prepared until the checkpoint is complete:
            PREPARE TRANSACTION, XA. Without this they are written in one local transaction of the driver then."""
            self._options = replace(self._options, prepared_transactions=enabled)
            return self

        def with_max_commit_attempts(
            self, max_commit_attempts: int
        ) -> JdbcExactlyOnceOptions.JDBCExactlyOnceOptionsBuilder:
            """After how many failed attempts to commit the job restarts, and goes on trying. Not set: it tries without."""
            _check("max_commit_attempts", max_commit_attempts, 1)
            self._options = replace(self._options, max_commit_attempts=max_commit_attempts)
            return self

        def with_timeout_sec(self, timeout_sec: int) -> JdbcExactlyOnceOptions.JDBCExactlyOnceOptionsBuilder:
            """How long a statement waits for a lock that another transaction holds, before it fails."""
            _check("timeout_sec", timeout_sec, 1)
            self._options = replace(self._options, timeout_sec=timeout_sec)
            return self

        def with_transaction_per_connection(
            self, transaction_per_connection: bool
        ) -> JdbcExactlyOnceOptions.JDBCExactlyOnceOptionsBuilder:
            """For programs that say so. A prepared transaction never keeps a connection busy here."""
            return self

        def with_recovered_and_rollback(
            self, recovered_and_rollback: bool
        ) -> JdbcExactlyOnceOptions.JDBCExactlyOnceOptionsBuilder:
            """For programs that say so. Transactions of this job and sink that no checkpoint knows are always rolled back."""
            if not recovered_and_rollback:
                raise ConfigurationError(
                    "with_recovered_and_rollback(False) would leave transactions of failed attempts prepared for ever, with "
                    "their locks"
                )
            return self

        def build(self) -> JdbcExactlyOnceOptions:
            return self._options


def _check(name: str, value: int, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ConfigurationError(f"{name} must be a whole number of at least {least}, but is {value!r}")
