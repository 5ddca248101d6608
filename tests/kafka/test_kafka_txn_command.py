"""`firesteel txn` on transactions that a killed job has left."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from firesteel.cli.main import main
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_copy import CopyJob


@pytest.fixture
def txn(kafka: KafkaBroker, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def run(action: str, *arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(["txn", action, "-b", kafka.bootstrap, *arguments])
        return (code, *capsys.readouterr())

    return run


def test_what_a_dead_job_left_is_shown_and_resolved(
    kafka: KafkaBroker, topic: Callable[..., str], tmp_path: Path, txn: Callable[..., tuple[int, str, str]]
) -> None:
    job = CopyJob(kafka, topic, tmp_path)
    job.crash("kafka-before-first-commit:2")
    job.crash("before-metadata:1")  # commits what the first one owed, and leaves transactions that nobody knows of
    mine = ("--prefix", f"test-{job.sink}")
    listed = json.loads(txn("list", "--json", *mine, "--checkpoints", str(tmp_path))[1])
    assert {each["state"] for each in listed} == {"Ongoing"}
    assert {each["checkpoint"] for each in listed} == {None}
    one, other = (each["transactional_id"] for each in listed)
    _, shown, _ = txn("list", *mine)
    assert one in shown and other in shown and shown.startswith("STATE ")
    code, _, complaint = txn("commit", one, "--checkpoints", str(tmp_path))
    assert code == 2 and "is in no checkpoint" in complaint and "twice" in complaint
    assert txn("abort", one, other, "--checkpoints", str(tmp_path)) == (0, f"{one} aborted\n{other} aborted\n", "")
    code, _, complaint = txn("abort", one)
    assert code == 1 and complaint.startswith(f"firesteel: {one} is not open: CompleteAbort")
    assert txn("list", *mine)[1] == f"no open transactions at {kafka.bootstrap}\n"
    assert txn("commit", "unheard-of")[2] == "firesteel: unheard-of is not open: the brokers do not know it\n"


def test_an_owed_transaction_can_be_committed_by_hand_and_the_job_goes_on(
    kafka: KafkaBroker, topic: Callable[..., str], tmp_path: Path, txn: Callable[..., tuple[int, str, str]]
) -> None:
    job = CopyJob(kafka, topic, tmp_path)
    job.crash("kafka-before-first-commit:2")
    where = ("--checkpoints", str(tmp_path))
    listed = json.loads(txn("list", "--json", "--prefix", f"test-{job.sink}", *where)[1])
    owed = [each["transactional_id"] for each in listed if each["checkpoint"] == "job checkpoint 2"]
    assert len(owed) == 2
    assert txn("abort", *owed, *where)[0] == 2
    assert txn("commit", *owed, *where)[0] == 0
    job.finish()


def test_a_broker_that_is_not_there_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("firesteel.connectors.kafka_transactions._BOOTSTRAP_MS", 500)
    assert main(["txn", "list", "-b", "127.0.0.1:1"]) == 2
    assert "Kafka at 127.0.0.1:1 cannot connect" in capsys.readouterr().err
