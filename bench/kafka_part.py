"""The `kafka` part: from Kafka to Kafka on a real broker, against plain loops and against Quix Streams."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from bench.figures import Figure
from bench.kafka import CHECKPOINT_MS
from bench.kafka_records import KEYS, PARTITIONS, PROCESSES, create, fill
from bench.part import Part
from bench.programs import ROOT, ProgramError, run
from tests.support.kafka_broker import KafkaBroker

PLAIN = "bench.peers.plain_kafka"
QUIX = "quixstreams==3.28.1"
"""Needs an older confluent-kafka than Firesteel, so it has an environment of its own."""


class Kafka(Part):
    """Exactly once against at least once, and both ends against what the client can do in a plain loop."""

    name = "kafka"
    _broker: KafkaBroker | None = None

    def prepare(self) -> None:
        self._quix = quix_python()
        self._broker = KafkaBroker(Path(tempfile.mkdtemp(prefix="bench-kafka-"))).start()
        self._servers = self._broker.bootstrap
        for size, records in self.size.kafka_records:
            topic = create(self._servers, f"in-{size}")
            for half in range(PROCESSES):
                fill(self._servers, topic, half, records // PROCESSES, size)
                own = create(self._servers, f"quix-{size}-{half}")
                fill(self._servers, own, half, self.size.kafka_quix // PROCESSES, size)

    def close(self) -> None:
        if self._broker is not None:
            self._broker.close()

    def repeat(self, repetition: int) -> None:
        if repetition == 0:
            size = self.size
            self.keep("latency", run("bench.kafka_latency", self._servers, size.latency_s, size.latency_rate, 100))
        if repetition < self.size.kafka_repetitions:
            for size, records in self.size.kafka_records:
                self._measure(size, records)

    def _measure(self, size: int, records: int) -> None:
        work = (self._servers, f"in-{size}", records, size)
        plain = {what: run(PLAIN, what, *work)["per_s"] for what in ("read", "write")}
        ours = run("bench.kafka", *work)
        quixs = (self._servers, f"quix-{size}", self.size.kafka_quix)
        quix = run("bench.peers.quix_streams", *quixs, python=self._quix)["per_s"]
        answer = {
            **ours,
            "guarantee": ours["exactly_once"] / ours["at_least_once"],
            "quix": quix,
            "over_quix": ours["exactly_once"] / quix,
        }
        for what, rate in plain.items():
            answer |= {f"plain_{what}": rate, f"{what}_ratio": ours[what] / rate}
        self.keep(f"{size} B", answer)

    def figures(self) -> Iterator[Figure]:
        for size, _ in self.size.kafka_records:
            name, label = f"{size} B", f"kafka, {size:,} B"
            for field, what in (
                ("exactly_once", "exactly once"),
                ("at_least_once", "at least once"),
                ("quix", "Quix Streams, exactly once"),
                ("read", "source only"),
                ("plain_read", "plain loop reading"),
                ("write", "sink only"),
                ("plain_write", "plain loop writing"),
            ):
                yield self.median(f"{label}: {what}", name, field, "records/s")
            for field, what, target in (
                ("guarantee", "exactly once / at least once", 0.8),
                ("over_quix", "exactly once / Quix Streams", 1.0),
                ("read_ratio", "source only / plain loop", 0.5),
                ("write_ratio", "sink only / plain loop", 0.5),
            ):
                samples = self.samples(name, field)
                yield Figure(f"{label}: {what}", median(samples), "", target, samples=samples)
        for part in ("p50", "p99"):
            yield self.median(f"kafka: producer to committed reader {part}", "latency", part, "ms", 1000)

    def notes(self) -> Iterator[str]:
        sizes = " and ".join(f"{records:,} records of {size:,} B" for size, records in self.size.kafka_records)
        yield (
            f"Kafka: {sizes} in {PARTITIONS} partitions, one broker on the same machine; each record "
            f"updates the count of its key ({KEYS:,} keys) and comes out with it; a checkpoint every {CHECKPOINT_MS // 1000} s."
            " The output is read back, committed records only: every count of every key must be there once. Ratios are of one "
            f"repetition's runs, {self.size.kafka_repetitions} repetitions. Rates are warm, up to the job's end (all output "
            "committed)."
        )
        yield (
            "Plain loops: confluent-kafka in two processes, same settings, reading and decoding, or encoding and writing, at "
            f"least once. Quix Streams ({QUIX}): exactly once, two processes, {self.size.kafka_quix:,} such records, state "
            f"by the key that records have in Kafka, a commit every {CHECKPOINT_MS // 1000} s."
        )
        yield (
            f"Kafka latency: {self.size.latency_rate:,} records/s of 100 B for {self.size.latency_s} s, the first quarter "
            "dropped, a checkpoint every second: from when the producer should write a record to when a reader of committed "
            "records has it."
        )


def quix_python() -> str:
    """The Python of an environment with Quix Streams, which is made if it is not there."""
    home = ROOT / "build" / "quixstreams"
    python, done = home / "bin" / "python", home / QUIX
    if not done.exists():
        print(f"  installing {QUIX} into {home}", file=sys.stderr)
        for command in (
            [sys.executable, "-m", "venv", "--clear", str(home)],
            [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", QUIX],
        ):
            result = subprocess.run(command, capture_output=True, text=True, check=False)
            if result.returncode:
                raise ProgramError(f"{QUIX} cannot be installed: {result.stderr[-2000:]}")
        done.touch()
    return str(python)
