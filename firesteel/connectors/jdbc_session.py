"""A connection that is opened when it is needed, thrown away after any error, and whose errors say what and where."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

from firesteel.connectors.jdbc_dialect import Connection, Trouble, dialect_of, one_line
from firesteel.connectors.jdbc_options import JdbcConnectionOptions
from firesteel.connectors.jdbc_statement import Parameters, Statement
from firesteel.errors import ConfigurationError, FiresteelError, SinkError

log = logging.getLogger("firesteel")

T = TypeVar("T")

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 2.0


class Session:
    """One sink's way to its server, used by one thread.

    :param ready: called with the first connection, before anything else, until it succeeds.
    :param patience_s: how long to wait for a server that cannot be reached.
    """

    def __init__(
        self,
        options: JdbcConnectionOptions,
        uid: str,
        ready: Callable[[Connection], None] = lambda connection: None,
        *,
        patience_s: float = 0,
        lock_timeout_s: int = 30,
    ) -> None:
        self._options, self._uid, self._ready, self._patience_s = options, uid, ready, patience_s
        self._lock_timeout_s = lock_timeout_s
        self._address = options.address()
        self.dialect = dialect_of(self._address)
        self._connection: Connection | None = None
        self._is_ready = False

    def run(self, work: Callable[[Connection], T], doing: str, *, retries: int = 0) -> T:
        """Do something with a connection, and again if it fails for a reason that may pass.

        :raises SinkError: the server does not take it, or cannot be reached.
        :raises ConfigurationError: it never will, unless somebody changes something.
        """
        pause = _FIRST_PAUSE_S
        for left in range(retries, -1, -1):
            try:
                return self._run(work, doing)
            except SinkError as error:
                if not error.transient or not left:
                    raise
                log.warning("sink %s tries again (%d more times): %s", self._uid, left, error)
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_S)
        raise AssertionError("not reached")

    def _run(self, work: Callable[[Connection], T], doing: str) -> T:
        connection = self._connection
        try:
            if connection is None:
                connection = self._connection = self._open()
            if not self._is_ready:
                self._ready(connection)
                self._is_ready = True
            return work(connection)
        except self.dialect.error as error:
            self.close()
            raise self._explained(error, doing) from error
        except BaseException:
            self.close()  # nobody knows what state it is in
            raise

    def _open(self) -> Connection:
        give_up, pause = time.monotonic() + self._patience_s, _FIRST_PAUSE_S
        while True:
            try:
                return self._connect()
            except self.dialect.error as error:
                if self.dialect.trouble(error) is not Trouble.TRANSIENT or time.monotonic() + pause > give_up:
                    raise
                log.warning("sink %s waits for %s: %s", self._uid, self._address, one_line(error))
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_S)

    def _connect(self) -> Connection:
        options = self._options
        return self.dialect.connect(
            self._address, options.user_name, options.password, f"firesteel {self._uid}"[:63], self._lock_timeout_s
        )

    def write(self, connection: Connection, statement: Statement, rows: Iterable[Parameters], size: int) -> int:
        """Execute the statement for each row, so many at once; how many there were. Nothing is committed.

        :raises SinkError: the server refuses a row: this one.
        """
        written = 0
        for batch in _batches(rows, size):
            try:
                self.dialect.execute_many(connection, statement, batch)
            except self.dialect.error as error:
                if self.dialect.trouble(error) is not Trouble.ROW:
                    raise
                self.close()  # and give its locks back
                refused = self._refused(statement, batch)
                what = f"the row {refused!r:.500}" if refused is not None else f"one of {len(batch)} rows"
                raise SinkError(
                    f"{self._where()} refuses {what}: {one_line(error)}. The statement is: {statement.sql}"
                ) from error
            written += len(batch)
        return written

    def _refused(self, statement: Statement, batch: Sequence[Parameters]) -> Parameters | None:
        """Which row of a batch it was, found by executing one after the other in a transaction that is rolled back."""
        with contextlib.suppress(self.dialect.error), contextlib.closing(self._connect()) as connection:
            for row in batch:
                try:
                    self.dialect.execute_many(connection, statement, [row])
                except self.dialect.error as error:
                    return row if self.dialect.trouble(error) is Trouble.ROW else None
        return None

    def _explained(self, error: Exception, doing: str) -> FiresteelError:
        trouble = self.dialect.trouble(error)
        text = f"{self._where()} fails {doing}: {one_line(error)}"
        if trouble is Trouble.SETUP:
            user = self._options.user_name
            return ConfigurationError(f"{text}. The user is {user!r}" if user else text)
        return SinkError(text, transient=trouble is Trouble.TRANSIENT)

    def _where(self) -> str:
        return f"sink {self._uid!r}: {self.dialect.name} at {self._address}"

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(Exception):  # it may be closed, or broken
                connection.close()


def _batches(rows: Iterable[Parameters], size: int) -> Iterator[list[Parameters]]:
    iterator = iter(rows)
    while batch := list(islice(iterator, size)):
        yield batch
