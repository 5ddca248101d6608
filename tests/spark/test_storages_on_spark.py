"""Slots in other processes, and checkpoints that are not in a local directory."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path

import pytest

from firesteel.common import Encoder
from firesteel.coordinator.lineage import JobDirectory
from firesteel.datastream import FileSystemCheckpointStorage, MapFunction, StreamExecutionEnvironment
from firesteel.datastream.checkpoint_storage import CheckpointStorage, JobManagerCheckpointStorage
from firesteel.datastream.connectors.file_system import FileSink
from firesteel.errors import ConfigurationError
from tests.support.s3 import S3Server

RECORDS = 200_000


@pytest.mark.parametrize("kind", ["memory", "s3"])
def test_a_job_whose_slot_is_killed_goes_on_from_its_checkpoint(
    kind: str, env: StreamExecutionEnvironment, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    marker = str(tmp_path / "killed once")

    class DiesOnce(MapFunction):
        def map(self, value: int) -> int:
            if value > 150_000 and not os.path.exists(marker):
                with open(marker, "w"):
                    os.kill(os.getpid(), signal.SIGKILL)
            return value

    storage: CheckpointStorage = JobManagerCheckpointStorage()
    if kind == "s3":
        server: S3Server = request.getfixturevalue("s3")
        storage = FileSystemCheckpointStorage(server.bucket())
    env.enable_checkpointing(50).get_checkpoint_config().set_checkpoint_storage(storage)
    env.set_epoch_target_duration(100)
    totals = env.from_sequence(1, RECORDS).map(DiesOnce()).key_by(lambda n: n % 10).reduce(lambda a, b: a + b)
    totals.sink_to(FileSink.for_row_format(str(tmp_path / "out"), Encoder.simple_string_encoder()).build())
    client = env.execute_async("killed")
    client.get_job_execution_result().result(timeout=120)
    assert os.path.exists(marker)
    committed = Counter(int(line) for file in (tmp_path / "out").iterdir() for line in file.read_text().splitlines())
    assert sum(committed.values()) == RECORDS
    for remainder in range(10):
        assert sum(n for n in range(1, RECORDS + 1) if n % 10 == remainder) in committed
    if kind == "s3":
        assert storage.checkpoint_path is not None
        newest = JobDirectory.open(storage.checkpoint_path, "killed").latest()
        assert newest is not None and newest.metadata.final and newest.problem() is None


def test_a_storage_that_cannot_be_used_is_refused_before_the_job_starts(
    env: StreamExecutionEnvironment, tmp_path: Path, s3: S3Server
) -> None:
    (tmp_path / "file").write_text("")
    for directory, words in {
        str(tmp_path / "file"): "cannot be made or used: Not a directory",
        s3.uri("nobody-made-this/path"): "cannot be made or used: .*bucket does not exist",
        "s4://bucket": "checkpoints cannot be kept in s4://bucket",
    }.items():
        env.enable_checkpointing(50).get_checkpoint_config().set_checkpoint_storage_dir(directory)
        env.from_sequence(1, 10).print()
        with pytest.raises(ConfigurationError, match=words):
            env.execute("refused")
