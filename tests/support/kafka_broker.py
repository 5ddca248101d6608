"""A real Kafka broker for tests: one JVM on loopback ports, in a directory of its own.

Its jars come from Maven Central by way of `make setup`. Nothing here is a mock: what the tests prove about transactions is
proven on the code that production runs, and the broker can be killed, restarted, and run with older transactions.
"""

from __future__ import annotations

import contextlib
import ctypes
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from firesteel.connectors.kafka_transactions import TransactionAdmin, TransactionInfo
from firesteel.engine.java import find_java
from firesteel.errors import ExternalSystemError
from tests.support.waiting import PATIENCE_S, wait_until

JARS = Path(__file__).parents[2] / "build" / "kafka"

_LOGGING = """
status = error
appender.file.type = File
appender.file.name = file
appender.file.fileName = {home}/broker.log
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d %p %c: %m%n
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
"""

_PROPERTIES = {
    "process.roles": "broker,controller",
    "node.id": 1,
    "controller.listener.names": "CONTROLLER",
    "offsets.topic.replication.factor": 1,
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "transaction.state.log.num.partitions": 4,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 200,
    "group.initial.rebalance.delay.ms": 0,
    "auto.create.topics.enable": "false",
    "log.retention.ms": -1,  # tests write records of 1970
    "log.cleaner.backoff.ms": 200,
    "num.network.threads": 2,
    "num.io.threads": 2,
    "controlled.shutdown.enable": "false",
    "broker.session.timeout.ms": 3000,  # a broker that was killed has to wait for this when it comes back
    "broker.heartbeat.interval.ms": 500,
}


class KafkaBroker:
    """One broker. Its data stays when it is stopped or killed, and is there when it is started again."""

    def __init__(
        self,
        home: Path,
        *,
        transaction_version: int | None = None,
        protocols: Mapping[str, str] | None = None,
        properties: Mapping[str, Any] | None = None,
    ) -> None:
        """
        :param protocols: more listeners, by name; `addresses` has where they are.
        """
        if not any(JARS.glob("kafka_2.13-*.jar")):
            raise AssertionError(f"the jars of a Kafka broker are not in {JARS}; `make setup` puts them there")
        self.home = home
        protocols = protocols or {}
        ports = _free_ports(2 + len(protocols))
        self.bootstrap, controller, *more = [f"127.0.0.1:{port}" for port in ports]
        self.addresses = dict(zip(protocols, more, strict=True))
        self.admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        self._process: subprocess.Popen[bytes] | None = None
        self._java = str(find_java().home / "bin" / "java")
        home.mkdir(parents=True, exist_ok=True)
        listeners = {"PLAINTEXT": self.bootstrap, "CONTROLLER": controller, **self.addresses}
        kinds = {"PLAINTEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT", **protocols}
        settings = _PROPERTIES | {
            "listeners": ",".join(f"{name}://{address}" for name, address in listeners.items()),
            "listener.security.protocol.map": ",".join(f"{name}:{kind}" for name, kind in kinds.items()),
            "controller.quorum.voters": f"1@{controller}",
            "log.dirs": home / "data",
            **(properties or {}),
        }
        self._properties = home / "server.properties"
        self._properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        (home / "log4j2.properties").write_text(_LOGGING.format(home=home))
        features = [] if transaction_version is None else ["--feature", f"transaction.version={transaction_version}"]
        self._run("kafka.tools.StorageTool", "format", "-t", "9" * 21 + "Q", "-c", str(self._properties), *features)

    def _command(self, main: str, *arguments: str) -> list[str]:
        options = ["-Xmx384m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto"]
        logging = f"-Dlog4j2.configurationFile={self.home / 'log4j2.properties'}"
        return [self._java, *options, logging, "-cp", f"{JARS}/*", main, *arguments]

    def _run(self, main: str, *arguments: str) -> None:
        done = subprocess.run(self._command(main, *arguments), capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{main} failed:\n{done.stdout}\n{done.stderr}"

    # ---- its life

    def start(self) -> KafkaBroker:
        with (self.home / "broker.out").open("ab") as out:
            self._process = subprocess.Popen(
                self._command("kafka.Kafka", str(self._properties)),
                stdout=out,
                stderr=out,
                start_new_session=True,
                preexec_fn=_die_with_parent,
            )
        deadline = time.monotonic() + PATIENCE_S
        while True:
            with contextlib.suppress(KafkaException):
                if self.admin.list_topics(timeout=1).brokers:
                    return self
            assert self._process.poll() is None, f"the broker ended:\n{self.said()}"
            assert time.monotonic() < deadline, f"the broker did not start within {PATIENCE_S:g} s:\n{self.said()}"

    def running(self) -> KafkaBroker:
        """Start it unless it runs."""
        return self if self._process is not None and self._process.poll() is None else self.start()

    def stop(self) -> None:
        """As an operator stops it."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """As a power cut would, apart from the disk."""
        self._end(signal.SIGKILL)

    def _end(self, number: int) -> None:
        process, self._process = self._process, None
        if process is not None and process.poll() is None:
            process.send_signal(number)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def restart(self) -> None:
        self.kill()
        self.start()

    def close(self) -> None:
        self.kill()
        shutil.rmtree(self.home, ignore_errors=True)

    def said(self) -> str:
        files = [self.home / "broker.out", self.home / "broker.log"]
        return "\n".join(file.read_text(errors="replace")[-5000:] for file in files if file.exists())

    # ---- what tests do with it

    def create_topic(self, name: str, partitions: int = 1, **config: Any) -> str:
        settings = {key.replace("_", "."): str(value) for key, value in config.items()}
        topic = NewTopic(name, partitions, replication_factor=1, config=settings)
        self.admin.create_topics([topic])[name].result(PATIENCE_S)
        return name

    def create_partitions(self, topic: str, total: int) -> None:
        self.admin.create_partitions([NewPartitions(topic, total)])[topic].result(PATIENCE_S)

    def delete_records(self, topic: str, before: int, partition: int = 0) -> None:
        """What retention does, now."""
        deleted = self.admin.delete_records([TopicPartition(topic, partition, before)])
        for future in deleted.values():
            future.result(PATIENCE_S)

    def produce(self, topic: str, values: Iterable[Any], partition: int = 0, **record: Any) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 1})
        for value in values:
            producer.produce(topic, _bytes(value), partition=partition, **record)
        assert producer.flush(PATIENCE_S) == 0

    def produce_in_transaction(self, topic: str, values: Iterable[Any], *, commit: bool, partition: int = 0) -> None:
        """Records and the marker after them, which takes an offset of its own."""
        name = f"test-{time.monotonic_ns()}"
        producer = Producer({"bootstrap.servers": self.bootstrap, "transactional.id": name, "linger.ms": 1})
        producer.init_transactions(PATIENCE_S)
        producer.begin_transaction()
        for value in values:
            producer.produce(topic, _bytes(value), partition=partition)
        producer.flush(PATIENCE_S)
        if commit:
            producer.commit_transaction(PATIENCE_S)
        else:
            producer.abort_transaction(PATIENCE_S)
        self.settle(name)

    def messages(self, topic: str, *, committed: bool = True) -> list[Message]:
        """All that readers see as soon as they see what is decided now."""
        if committed:
            self.settle()
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": "the-oracle",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": "read_committed" if committed else "read_uncommitted",
                "auto.offset.reset": "earliest",
            }
        )
        partitions = consumer.list_topics(topic, PATIENCE_S).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
        found, ended = [], set()
        deadline = time.monotonic() + PATIENCE_S
        while len(ended) < len(partitions):
            assert time.monotonic() < deadline, f"reading {topic} did not come to an end:\n{self.said()}"
            for message in consumer.consume(10_000, 0.2):
                if message.error() is None:
                    found.append(message)
                elif message.error().name() == "_PARTITION_EOF":
                    ended.add(message.partition())
        consumer.close()
        return found

    def values(self, topic: str, *, committed: bool = True) -> list[str]:
        """The same, as sorted strings: a multiset to compare."""
        return sorted((message.value() or b"").decode() for message in self.messages(topic, committed=committed))

    def group_offsets(self, group: str, topic: str) -> dict[int, int]:
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": group, "enable.auto.commit": False})
        partitions = consumer.list_topics(topic, PATIENCE_S).topics[topic].partitions
        committed = consumer.committed([TopicPartition(topic, number) for number in partitions], timeout=PATIENCE_S)
        consumer.close()
        return {each.partition: each.offset for each in committed if each.offset >= 0}

    def transactions(self, prefix: str = "", states: Sequence[str] = ()) -> list[TransactionInfo]:
        with TransactionAdmin({"bootstrap.servers": self.bootstrap}) as admin:

            def ask() -> list[list[TransactionInfo]]:
                try:
                    return [admin.list_transactions(prefix, states)]
                except ExternalSystemError as error:  # the broker has just been started, and has not read them yet
                    if "CoordinatorLoadInProgress" not in str(error):
                        raise
                    return []

            (found,) = wait_until(ask, "the coordinator of transactions")
            return found

    def undecided(self, prefix: str = "firesteel") -> list[TransactionInfo]:
        """Transactions that nobody has committed or aborted."""
        return self.transactions(prefix, ("Ongoing",))

    def settle(self, prefix: str = "") -> None:
        """Wait for the markers of what is decided, which are on their way for a moment."""
        wait_until(lambda: not self.transactions(prefix, ("PrepareCommit", "PrepareAbort")), "markers of transactions")


def _bytes(value: Any) -> bytes | None:
    return value if value is None or isinstance(value, bytes) else str(value).encode()


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def _die_with_parent() -> None:
    """A pytest that is killed leaves no broker behind (Linux). What counts is the thread that starts it: use the main one."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
