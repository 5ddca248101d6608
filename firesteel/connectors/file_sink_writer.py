"""The slot's half of the file sink: files in progress, one for each bucket."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from firesteel.common.durable import naming, remove_file, sync_directory
from firesteel.connectors.base import Json, SinkWriter, WriterContext
from firesteel.connectors.file_bulk import BulkWriterFactory
from firesteel.connectors.file_sink_buckets import BucketAssigner, check_bucket
from firesteel.connectors.guarantee import DeliveryGuarantee
from firesteel.connectors.part_names import PartName

if TYPE_CHECKING:
    from firesteel.connectors.file_sink import FileSink

BUFFER = 256 * 1024
MAX_OPEN = 256
"""How many files a subtask has open. With more buckets than that, those opened first are ended first."""


def wall_clock() -> int:
    return time.time_ns() // 1_000_000


class PartFile:
    """A file in progress. A `PartFileInfo` to rolling policies."""

    def __init__(self, bucket: str, temporary: str, final: str, factory: BulkWriterFactory, now: int) -> None:
        self.temporary, self.final = temporary, final
        self._bucket, self._created, self._updated = bucket, now, now
        self._file = open(temporary, "xb", buffering=BUFFER)  # noqa: SIM115  open until the barrier
        try:
            self._writer = factory.create(self._file)
        except BaseException:
            self._file.close()
            remove_file(temporary)
            raise

    def add(self, values: Sequence[Any], now: int) -> None:
        with naming(self.temporary):
            self._writer.add_elements(values)
        self._updated = now

    def finish(self, *, synced: bool) -> int:
        """End the file; its size."""
        with naming(self.temporary):
            self._writer.finish()
            self._file.flush()
            size = self._file.tell()
            if synced:
                os.fsync(self._file.fileno())
            self._file.close()
        return size

    def discard(self) -> None:
        self._writer.discard()
        with contextlib.suppress(OSError):  # there may be no room for what is still in its buffer
            self._file.close()
        remove_file(self.temporary)

    def get_bucket_id(self) -> str:
        return self._bucket

    def get_creation_time(self) -> int:
        return self._created

    def get_size(self) -> int:
        return self._file.tell()

    def get_last_update_time(self) -> int:
        return self._updated


class FileWriter(SinkWriter):
    """Writes temporary files. When they end, they wait for their checkpoint, unless less is promised."""

    def __init__(self, sink: FileSink, context: WriterContext, now: Callable[[], int] = wall_clock) -> None:
        self._directory = sink.base_path
        self._config, self._policy = sink.output_file_config, sink.rolling_policy
        self._factory, self._assigner = sink.writer_factory, sink.bucket_assigner
        self._promise = sink.guarantee
        self._context, self._now = context, now
        self._bucket_context = BucketAssigner.Context(now)
        self._check_interval = sink.bucket_check_interval
        self._next_check = now() + self._check_interval
        self._sequence = 0
        self._parts: dict[str, PartFile] = {}  # in progress, by bucket
        self._pending: list[Json] = []

    def write(self, values: Sequence[Any]) -> None:
        if not values:
            return
        if not self._assigner.depends_on_element:
            self._append(self._bucket(None), values)
            return
        buckets: dict[str, list[Any]] = {}
        bucket_of = self._bucket
        for value in values:
            buckets.setdefault(bucket_of(value), []).append(value)
        for bucket, members in buckets.items():
            self._append(bucket, members)

    def _bucket(self, value: Any) -> str:
        return self._assigner.get_bucket_id(value, self._bucket_context)

    def _append(self, bucket: str, values: Sequence[Any]) -> None:
        part = self._parts.get(bucket)
        if part is not None and self._policy.should_roll_on_event(part, values[0]):
            self._finish(bucket)
            part = None
        if part is None:
            if len(self._parts) >= MAX_OPEN:
                self._finish(next(iter(self._parts)))
            part = self._parts[bucket] = self._open(check_bucket(bucket))
        part.add(values, self._now())

    def _open(self, bucket: str) -> PartFile:
        while True:
            context = self._context
            name = PartName.of(context.job_id, context.uid, context.incarnation, self._sequence, context.subtask)
            self._sequence += 1
            final = os.path.join(self._directory, bucket, name.final(self._config.prefix, self._config.suffix))
            # all in the base path, so that a sweep finds them without looking through the buckets
            temporary = os.path.join(self._directory, name.temporary())
            # A name of this incarnation is only taken if its writer was made twice; then count past the first
            # one's files, pre-committed or committed: they are not ours to overwrite.
            if not os.path.exists(final) and not os.path.exists(temporary):
                return PartFile(bucket, temporary, final, self._factory, self._now())

    def _finish(self, bucket: str) -> None:
        part = self._parts[bucket]
        if self._promise is DeliveryGuarantee.EXACTLY_ONCE:
            size = part.finish(synced=False)
            self._pending.append({"temporary": part.temporary, "final": part.final, "size": size})
        else:
            durable = self._promise is DeliveryGuarantee.AT_LEAST_ONCE
            part.finish(synced=durable)
            publish(part.temporary, part.final)
            if durable:
                sync_path(os.path.dirname(part.final), self._directory)
        del self._parts[bucket]  # not before: what could not be finished is thrown away by close()

    def flush(self) -> None:
        now = self._now()
        if now < self._next_check:
            return
        self._next_check = now + self._check_interval
        for bucket, part in list(self._parts.items()):
            if self._policy.should_roll_on_processing_time(part, now):
                self._finish(bucket)

    def prepare_commit(self) -> list[Json]:
        for bucket in list(self._parts):
            self._finish(bucket)
        committables, self._pending = self._pending, []
        return committables

    def persist(self, committables: Sequence[Json]) -> None:
        for committable in committables:
            with open(committable["temporary"], "rb") as file:
                os.fsync(file.fileno())
        if committables:
            sync_directory(self._directory)  # a file is not durable before its name is

    def close(self) -> None:
        parts, self._parts = self._parts, {}
        for part in parts.values():
            part.discard()
        for finished in self._pending:
            remove_file(finished["temporary"])


def publish(temporary: str, final: str) -> None:
    """Give a file its final name, in a bucket that may be new."""
    try:
        os.rename(temporary, final)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(final), exist_ok=True)
        os.rename(temporary, final)


def sync_path(directory: str, base: str) -> None:
    """Make names in a bucket durable, and the bucket's own."""
    while True:
        sync_directory(directory)
        if directory == base or len(directory) <= len(base):
            return
        directory = os.path.dirname(directory)
