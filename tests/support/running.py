"""A job in a thread of this process, to be asked for savepoints while it runs."""

from __future__ import annotations

import threading

from firesteel.common.completable_future import CompletableFuture
from firesteel.common.storage import Storage
from firesteel.coordinator.savepoint_requests import Ending
from firesteel.datastream import StreamExecutionEnvironment
from tests.support.local_engine import LocalRun
from tests.support.waiting import PATIENCE_S, wait_until


class Running:
    """As a context: cancelled at its end, if it still runs."""

    def __init__(self, env: StreamExecutionEnvironment, directory: str | Storage, name: str = "job") -> None:
        self.run = LocalRun(env, directory, name).unread()
        self.job = self.run.job
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.run.run()
        except BaseException as error:  # noqa: BLE001  looked at by the test
            self.failure = error

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        self.job.cancel()
        self._thread.join(PATIENCE_S)

    def ended(self) -> None:
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()

    def epochs(self, more: int = 3) -> None:
        """Wait until it has run some more."""
        seen = self.run.progress.epochs
        wait_until(lambda: self.run.progress.epochs >= seen + more or not self._thread.is_alive(), "epochs")
        assert self._thread.is_alive(), self.failure

    def ask(self, directory: object, ending: Ending = Ending.NONE) -> CompletableFuture[str]:
        return self.job.savepoints.ask(str(directory), ending)

    def savepoint(self, directory: object, ending: Ending = Ending.NONE) -> str:
        """Its path. One that ends the job is waited for until it has."""
        path = self.ask(directory, ending).result(PATIENCE_S)
        if ending is not Ending.NONE:
            self.ended()
        return path
