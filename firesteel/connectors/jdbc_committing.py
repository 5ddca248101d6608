"""The drivers' halves of the sinks that are exactly once: which failed attempts to commit are tried again."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from firesteel.connectors.base import Json, NumberedCommitter
from firesteel.connectors.jdbc_session import Session
from firesteel.errors import SinkError

RETRIES = 3
"""At once, before anybody is told: a connection that is stale, a transaction whose slot's connection is just being closed."""


class JdbcCommitter(NumberedCommitter):
    """A committer with a session.

    What passes by itself, a server that is down, is waited for, without end unless there is a limit. What does not, a
    row that the server refuses, fails the job: somebody has to look, and nothing is lost, as recovery commits again.
    """

    kind: str
    """The field that all committables of this way of committing have."""

    def __init__(self, session: Session, max_attempts: int | None, uid: str) -> None:
        self._session, self._max_attempts, self._uid = session, max_attempts, uid
        self._failed = 0

    def _check(self, committables: Sequence[Json]) -> None:
        if not all(self.kind in committable for committable in committables):
            self.retried = False
            raise SinkError(
                f"the checkpoint holds output of sink {self._uid!r} that was written with other JdbcExactlyOnceOptions, and "
                f"is not committed yet. Run the job once more as it was, until it has made a checkpoint, and change it then"
            )

    def _attempt(self, work: Callable[[], None]) -> None:
        """One attempt to commit a checkpoint, and what its failure means."""
        try:
            work()
        except Exception as error:
            self._failed += 1
            transient = isinstance(error, SinkError) and error.transient
            self.retried = transient and (self._max_attempts is None or self._failed < self._max_attempts)
            raise
        self._failed, self.retried = 0, True

    def close(self) -> None:
        self._session.close()
