"""Programs between Kafka topics, on a real Spark: driver, JVM and slots are processes of their own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.support.kafka_broker import KafkaBroker

ROOT = Path(__file__).parents[2]
Topic = Callable[..., str]


def run(program: str, *arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, str(ROOT / program), *arguments],
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            **environment,
        },
        cwd=cwd, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done


def test_a_topic_is_printed(kafka: KafkaBroker, topic: Topic, tmp_path: Path) -> None:
    name = topic(2)
    kafka.produce(name, ["a", "b"], 0)
    kafka.produce(name, ["c"], 1)
    printed = run("examples/kafka_print.py", kafka.bootstrap, name, "now", cwd=tmp_path).stdout
    assert sorted(line.split("> ")[-1] for line in printed.splitlines()) == ["a", "b", "c"]


def test_words_from_a_socket_get_into_a_topic_once(kafka: KafkaBroker, topic: Topic, tmp_path: Path) -> None:
    name = topic()
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as aside:

        def talk() -> None:
            with server.accept()[0] as connection:
                connection.sendall(b"to be or\nnot to be\n")

        talking = aside.submit(talk)
        address = f"127.0.0.1:{server.getsockname()[1]}"
        done = run("examples/socket_to_kafka.py", address, kafka.bootstrap, name, cwd=tmp_path)
        talking.result()
    assert kafka.values(name) == ["be", "be", "not", "or", "to", "to"]
    assert kafka.undecided() == []
    assert "at-most-once" in done.stderr, "and that a socket promises less than the sink is said"


def test_every_record_comes_out_once_although_one_fails_the_job_and_a_slot_is_killed(
    kafka: KafkaBroker, topic: Topic, tmp_path: Path
) -> None:
    names, greetings = topic(2), topic(2)
    for partition in range(2):
        kafka.produce(names, [f"name{number}" for number in range(partition, 10, 2)], partition)
    crash = {"FIRESTEEL_CRASH": "kafka-after-flush:1", "FIRESTEEL_CRASH_ONCE": str(tmp_path / "crashed")}
    done = run("examples/kafka_exactly_once.py", kafka.bootstrap, names, greetings, cwd=tmp_path, **crash)
    assert "name4 cannot be greeted today" in done.stderr
    assert (tmp_path / "crashed").exists()
    assert kafka.values(greetings) == sorted(f"hello name{number}" for number in range(10))
    assert kafka.undecided() == []
