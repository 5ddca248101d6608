"""A job that reads numbers from Kafka and writes to Kafka, to a database, or to both."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from firesteel.connectors.jdbc_dialect import TransactionName
from tests.chaos import oracle
from tests.chaos.life import PATIENCE_S, Life
from tests.chaos.oracle import ViolationError
from tests.chaos.plan import DATABASE, KAFKA
from tests.chaos.servers import Servers
from tests.support.databases import PASSWORD, USER

PARTITIONS, RATE, INTERVAL_MS = 3, 200, 250
SUMS = "CREATE TABLE sums (place INT, amount BIGINT, total BIGINT)"  # with no key: nothing hides what is written twice
WINDOWS = "CREATE TABLE windows (place INT, start BIGINT, amount BIGINT, total BIGINT)"


class Feeder:
    """Puts 0, 1, 2, ... into a topic, in turn over its partitions, and loses and repeats none, whatever the broker does."""

    def __init__(self, brokers: str, topic: str) -> None:
        self._topic = topic
        settings = {"enable.idempotence": True, "message.timeout.ms": 0, "linger.ms": 5, "log_level": 0}
        self._producer = Producer({"bootstrap.servers": brokers, "on_delivery": self._delivered, **settings})
        self._failed = ""
        self.next = 0
        self._stopped = threading.Event()
        self.add(2 * RATE)
        self._thread = threading.Thread(target=self._feed, name=f"feeder of {topic}", daemon=True)
        self._thread.start()

    def _feed(self) -> None:
        began, first = time.monotonic(), self.next
        while not self._stopped.wait(0.05):
            self.add(first + int((time.monotonic() - began) * RATE) - self.next)

    def _delivered(self, error: Any, _: Any) -> None:
        if error is not None:
            self._failed = str(error)

    def add(self, count: int) -> None:
        for number in range(self.next, self.next + count):
            self.next = number + 1  # first, for it may be read as soon as it is there
            self._producer.produce(self._topic, str(number).encode(), partition=number % PARTITIONS)
        self._producer.poll(0)

    def stop(self) -> int:
        """How many there are, all of them in the topic."""
        self._stopped.set()
        self._thread.join()
        self.flush()
        return self.next

    def flush(self) -> None:
        if self._producer.flush(PATIENCE_S) or self._failed:
            raise ViolationError(f"the input could not be written: {self._failed or 'it takes too long'}")

    def close(self) -> None:
        self._stopped.set()


class ServedLife(Life):
    """One job with topics and a database of its own."""

    def __init__(self, home: Path, kind: str, servers: Servers, name: str, **options: Any) -> None:
        super().__init__(home, kind, interval=INTERVAL_MS, **options)
        self._servers, self._name = servers, name
        broker = servers.broker
        self._input = broker.create_topic(f"{name}-in", PARTITIONS)
        self._output = broker.create_topic(f"{name}-out", 2) if kind in KAFKA else None
        self._database = servers.database(kind)
        self._in_event_time = self._windows = kind in DATABASE and kind not in KAFKA
        self.options |= {"brokers": broker.bootstrap, "input": self._input, "output": self._output}
        if self._database is not None:
            self._database.run(WINDOWS if self._windows else SUMS)
            self.options |= {"url": self._database.url, "user": USER, "password": PASSWORD}
        self._feeder = Feeder(broker.bootstrap, self._input)

    def close(self) -> None:
        self._feeder.close()
        super().close()

    def outage(self, what: str, chance: Any) -> None:
        self._servers.take_away(what, self.kind, chance)

    # ---- its input

    def _decide_end(self) -> int:
        return self._feeder.stop()

    def copy_to(self, home: Path) -> list[str]:
        self._feeder.add(self.more)
        self._feeder.flush()
        return super().copy_to(home)

    # ---- what must be true

    def _check_output(self, *, complete: bool, home: Path | None = None, first: int = 0) -> None:
        """All of it, whoever wrote it: a copy goes on in the same topic and table."""
        if self._output is not None:
            found = self._servers.broker.messages(self._output)
            lines = [(f"partition {each.partition()}", (each.value() or b"").decode()) for each in found]
            oracle.check_sums(lines, 0, self._end(), self.keys, complete=complete)
        if self._database is None:
            return
        if self._windows:
            rows = self._database.run("SELECT place, start, amount, total FROM windows")
            oracle.check_windows(rows, self._end(), self.keys, complete=complete)
        else:
            rows = self._database.run("SELECT place, amount, total FROM sums")
            # a table has no order
            lines = [(f"row {place}", ",".join(map(str, row))) for place, row in enumerate(rows)]
            oracle.check_sums(lines, 0, self._end(), self.keys, complete=complete)

    def _end(self) -> int:
        """That of the input; while there is more and more of it, call this after reading what came out."""
        return self._feeder.next if self.last is None else self.last

    def _check_checkpoint(self, job: Path, checkpoint: Path) -> None:
        if not self._windows:
            super()._check_checkpoint(job, checkpoint)

    def check_end(self) -> None:
        super().check_end()
        ends = oracle.positions(self.newest() or self.home)
        group = self._servers.broker.group_offsets(self._name, self._input)
        if [group.get(partition) for partition in range(PARTITIONS)] != ends:
            raise ViolationError(f"the consumer group is at {group}, and the job ended at {ends}")

    def _in_doubt(self) -> list[Any]:
        return [*super()._in_doubt(), *self._in_doubt_in_kafka(), *self._in_doubt_in_database()]

    def _in_doubt_in_kafka(self) -> list[Any]:
        return list(self._servers.broker.undecided(f"{self._name}-"))

    def _in_doubt_in_database(self) -> list[Any]:
        if self._database is None:
            return []
        newest = self.newest()
        assert newest is not None
        owner = TransactionName.owner_of(oracle.metadata(newest)["job_id"], "database")
        return [name for name in self._database.server.in_doubt() if owner in name]
