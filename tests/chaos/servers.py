"""The servers of a chaos run: one broker and one of each database for all its jobs, killed and started again under them."""

from __future__ import annotations

import contextlib
import random
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from tests.chaos.plan import DATABASE
from tests.support.databases import Database, DatabaseServer, MariaDbServer, PostgreSqlServer
from tests.support.kafka_broker import KafkaBroker

T = TypeVar("T")


def server_of(kind: str) -> type[DatabaseServer] | None:
    """The kind of database server that a kind of job writes to."""
    if kind not in DATABASE:
        return None
    return MariaDbServer if kind.startswith("mariadb") else PostgreSqlServer


class Servers:
    """Each is started when the first job needs it.

    Whoever takes one away does it in a `storm`: alone, while nobody is in the `calm`. So a fault of one job is not mixed up
    with an outage that was meant for another, though the other job, which runs on, has to get over it all the same.
    """

    def __init__(self) -> None:
        # A broker dies with the thread that started it, so that none outlives the run: not with one of a job's.
        self._thread = ThreadPoolExecutor(1, "servers")
        self._lock = threading.Condition()
        self._calm, self._storm, self._storms_waiting = 0, False, 0
        self._home = Path(tempfile.mkdtemp(prefix="fschaos-kafka-", dir="/tmp"))
        self._broker: KafkaBroker | None = None
        self._databases: dict[type[DatabaseServer], DatabaseServer] = {}

    @property
    def broker(self) -> KafkaBroker:
        return self._do(self._start_broker)

    def _start_broker(self) -> KafkaBroker:
        if self._broker is None:
            self._broker = KafkaBroker(self._home)
            self._broker.start()
        return self._broker

    def database(self, kind: str) -> Database | None:
        """A new one, on the server that this kind of job writes to."""
        wanted = server_of(kind)
        return None if wanted is None else self._do(lambda: self._start_database(wanted)).database()

    def _start_database(self, wanted: type[DatabaseServer]) -> DatabaseServer:
        if wanted not in self._databases:
            self._databases[wanted] = wanted()
        return self._databases[wanted]

    def _do(self, work: Callable[[], T]) -> T:
        return self._thread.submit(work).result()

    # ---- one at a time

    @contextlib.contextmanager
    def calm(self) -> Iterator[None]:
        """No server is taken away meanwhile."""
        with self._lock:
            self._lock.wait_for(lambda: not self._storm and not self._storms_waiting)
            self._calm += 1
        try:
            yield
        finally:
            with self._lock:
                self._calm -= 1
                self._lock.notify_all()

    @contextlib.contextmanager
    def storm(self) -> Iterator[None]:
        with self._lock:
            self._storms_waiting += 1
            self._lock.wait_for(lambda: not self._storm and not self._calm)
            self._storms_waiting -= 1
            self._storm = True
        try:
            yield
        finally:
            with self._lock:
                self._storm = False
                self._lock.notify_all()

    # ---- outages

    def take_away(self, what: str, kind: str, chance: random.Random) -> None:
        """Carry out an outage of the plan, for this kind of job: the server is gone for a while, and back."""
        if what == "database-kill":
            wanted = server_of(kind)
            assert wanted is not None
            server = self._databases[wanted]
            server.kill()
            start: Callable[[], object] = server.start
        else:
            broker = self.broker
            self._do(broker.kill if what == "broker-kill" else broker.stop)
            start = broker.start
        threading.Event().wait(chance.choice([0, 0.5, 2]))
        self._do(start)

    def close(self) -> None:
        with contextlib.ExitStack() as stack:
            stack.callback(self._thread.shutdown)
            stack.callback(shutil.rmtree, self._home, ignore_errors=True)
            for server in self._databases.values():
                stack.callback(server.close)
            if self._broker is not None:
                stack.callback(self._broker.close)
