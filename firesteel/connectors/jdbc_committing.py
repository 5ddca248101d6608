"""The drivers' halves of the sinks that are exactly once: which failed attempts to commit are tried again."""

from __future__ import annotations

from collections.abc import Callable

from firesteel.connectors.base import Committer
from firesteel.connectors.jdbc_dialect import Connection
from firesteel.connectors.jdbc_session import Session
from firesteel.errors import SinkError

RETRIES = 3
"""At once, before anybody is told: a connection that is stale, a transaction whose slot's connection is just being closed."""


class JdbcCommitter(Committer):
    """A committer with a session.

    What passes by itself, a server that is down, is waited for, without end unless there is a limit. What does not, a
    row that the server refuses, fails the job: somebody has to look, and nothing is lost, as recovery commits again.
    """

    def __init__(self, session: Session, max_attempts: int | None) -> None:
        self._session, self._max_attempts = session, max_attempts
        self._failed = 0

    def _attempt(self, work: Callable[[Connection], None], doing: str) -> None:
        try:
            self._session.run(work, doing, retries=RETRIES)
        except Exception as error:
            self._failed += 1
            transient = isinstance(error, SinkError) and error.transient
            self.retried = transient and (self._max_attempts is None or self._failed < self._max_attempts)
            raise
        self._failed, self.retried = 0, True

    def close(self) -> None:
        self._session.close()
