"""A writer and a committer of an exactly-once Kafka sink, driven by hand."""

from __future__ import annotations

import gc
import json
import pickle
import time

from firesteel.connectors.base import CommitterContext, Json, WriterContext
from firesteel.connectors.kafka_committer import TransactionCommitter
from firesteel.connectors.kafka_transactional_writer import TransactionalWriter
from firesteel.datastream.connectors.kafka import KafkaSink
from firesteel.errors import ExternalSystemError


class Snapshot:
    def __init__(self, checkpoint: int) -> None:
        self.checkpoint = checkpoint

    def get_checkpoint_id(self) -> int:
        return self.checkpoint


class Halves:
    """Of one incarnation, with nothing but JSON between them."""

    def __init__(self, sink: KafkaSink, incarnation: int = 1, job: str = "job") -> None:
        shipped = pickle.loads(pickle.dumps(sink))
        writer = shipped.create_writer(WriterContext(job, "out", incarnation, 0, 1))
        committer = sink.create_committer(CommitterContext(job, "out", incarnation))
        assert isinstance(writer, TransactionalWriter)
        assert isinstance(committer, TransactionCommitter)
        self.writer, self.committer = writer, committer

    def checkpoint(self, number: int, *values: str) -> list[Json]:
        self.writer.write(values)
        made: list[Json] = json.loads(json.dumps(self.writer.prepare_commit()))
        self.writer.snapshot_state(Snapshot(number))
        self.writer.persist(made)
        self.committer.check(made)
        return made

    def commit(self, committables: list[Json], checkpoint: int = 1) -> None:
        self.committer.commit_checkpoint(checkpoint, committables)

    def commit_patiently(self, committables: list[Json]) -> None:
        """As the job does: a broker that has just started may not know yet that it is the coordinator."""
        deadline = time.monotonic() + 30
        while True:
            try:
                return self.commit(committables)
            except ExternalSystemError:
                assert time.monotonic() < deadline
                time.sleep(0.1)

    def die(self) -> None:
        """As with SIGKILL: nothing is aborted."""
        del self.writer
        gc.collect()
        self.committer.close()
