"""Writing files exactly once.

A part file is *in progress* while records are added, *pending* when it has ended, and *finished* when it is visible.
Until then its name starts with "."; committing it is one rename. The life of a file, and where it can stop:

1. `write` opens a temporary file. The writer dies: nothing refers to the file, a later incarnation sweeps it.
2. `prepare_commit` makes the file and its name durable and describes it. The checkpoint fails: the next one
   carries the committable. The job rolls back: `abort` deletes the file, or a later incarnation sweeps it.
3. The checkpoint is complete; `commit` renames. The driver dies before or between: recovery commits again;
   what is found renamed, with the size that was recorded, is done.
"""

from __future__ import annotations

import copy
import os
import warnings
from typing import Any, NoReturn, TypeVar

from firesteel.common.durations import DurationLike
from firesteel.common.serialization import Encoder, encoder_for
from firesteel.common.typeinfo import TypeInformation
from firesteel.connectors.base import Committer, CommitterContext, Sink, SinkWriter, WriterContext
from firesteel.connectors.file_bulk import BulkWriterFactory, RowWriterFactory
from firesteel.connectors.file_paths import local_path
from firesteel.connectors.file_sink_buckets import BasePathBucketAssigner, BucketAssigner
from firesteel.connectors.file_sink_committer import FileCommitter
from firesteel.connectors.file_sink_config import FileCompactor, FileCompactStrategy, OutputFileConfig
from firesteel.connectors.file_sink_rolling import (
    DefaultRollingPolicy,
    OnCheckpointRollingPolicy,
    RollingPolicy,
    milliseconds,
)
from firesteel.connectors.file_sink_writer import FileWriter
from firesteel.connectors.guarantee import DeliveryGuarantee
from firesteel.errors import ConfigurationError

_Builder = TypeVar("_Builder", bound="FileSink.BaseBuilder")


class FileSink(Sink):
    """Part files in one directory, or in one for each bucket; visible only once they are complete and their checkpoint is.

    Every subtask starts a new file after each checkpoint, so the checkpoint interval sets how many files there are.
    """

    def __init__(
        self,
        base_path: str,
        writer_factory: BulkWriterFactory,
        rolling_policy: RollingPolicy,
        bucket_assigner: BucketAssigner | None = None,
        output_file_config: OutputFileConfig | None = None,
        bucket_check_interval: int = 60_000,
        delivery_guarantee: DeliveryGuarantee = DeliveryGuarantee.EXACTLY_ONCE,
    ) -> None:
        self.base_path = local_path(base_path)
        self.writer_factory = writer_factory
        self.rolling_policy = rolling_policy
        self.bucket_assigner = bucket_assigner or BasePathBucketAssigner()
        self.output_file_config = output_file_config or OutputFileConfig.builder().build()
        self.bucket_check_interval = bucket_check_interval
        self._guarantee = delivery_guarantee

    @property
    def guarantee(self) -> DeliveryGuarantee:
        return self._guarantee

    @staticmethod
    def for_row_format(base_path: str, encoder: Encoder) -> FileSink.RowFormatBuilder:
        """Records encoded one by one."""
        return FileSink.RowFormatBuilder(base_path, encoder)

    @staticmethod
    def for_bulk_format(base_path: str, writer_factory: BulkWriterFactory) -> FileSink.BulkFormatBuilder:
        """Files of `ParquetBulkWriters`, `CsvBulkWriters`, `JsonLinesBulkWriters`, or a factory of your own."""
        return FileSink.BulkFormatBuilder(base_path, writer_factory)

    class BaseBuilder:
        """Collects the settings of a FileSink."""

        def __init__(self, base_path: str, writer_factory: BulkWriterFactory, rolling_policy: RollingPolicy) -> None:
            self._base_path = base_path
            self._factory = writer_factory
            self._policy = rolling_policy
            self._config = OutputFileConfig.builder().build()
            self._assigner: BucketAssigner = BasePathBucketAssigner()
            self._check_interval = 60_000
            self._guarantee = DeliveryGuarantee.EXACTLY_ONCE

        def with_output_file_config(self: _Builder, output_file_config: OutputFileConfig) -> _Builder:
            self._config = _checked(output_file_config, OutputFileConfig)
            return self

        def with_rolling_policy(self: _Builder, rolling_policy: RollingPolicy) -> _Builder:
            """When files end before their checkpoint does it."""
            self._policy = _checked(rolling_policy, RollingPolicy)
            return self

        def with_bucket_assigner(self: _Builder, bucket_assigner: BucketAssigner) -> _Builder:
            """Into which directory a record goes."""
            self._assigner = _checked(bucket_assigner, BucketAssigner)
            return self

        def with_bucket_check_interval(self: _Builder, interval: DurationLike) -> _Builder:
            """How often files are looked at for their age, in milliseconds or as a duration; at the end of an epoch."""
            self._check_interval = milliseconds(interval)
            return self

        def with_delivery_guarantee(self: _Builder, delivery_guarantee: DeliveryGuarantee) -> _Builder:
            """Less than exactly once: files appear as soon as they end, and are written again after a failure.

            AT_LEAST_ONCE waits until a file is on the disk, NONE does not.
            """
            self._guarantee = _checked(delivery_guarantee, DeliveryGuarantee)
            return self

        def enable_compact(self, strategy: FileCompactStrategy, compactor: FileCompactor) -> NoReturn:
            """Refused."""
            raise ConfigurationError(
                "FileSink does not put files together. Fewer and larger ones come from a longer checkpoint interval or a "
                "lower parallelism of the sink; or let another job read the finished files and write them anew"
            )

        def disable_compact(self: _Builder) -> _Builder:
            return self

        def build(self) -> FileSink:
            return FileSink(
                self._base_path,
                self._factory,
                self._policy,
                self._assigner,
                self._config,
                self._check_interval,
                self._guarantee,
            )

    class RowFormatBuilder(BaseBuilder):
        """Files end at 128 MB, after a minute, or after a minute without records, unless told otherwise."""

        def __init__(self, base_path: str, encoder: Encoder) -> None:
            if not isinstance(encoder, Encoder):
                raise ConfigurationError(
                    f"FileSink needs an Encoder, such as Encoder.simple_string_encoder(), not {encoder!r}"
                )
            super().__init__(base_path, RowWriterFactory(encoder), DefaultRollingPolicy())

    class BulkFormatBuilder(BaseBuilder):
        """Files end with their checkpoint, unless told otherwise."""

        def __init__(self, base_path: str, writer_factory: BulkWriterFactory) -> None:
            if not isinstance(writer_factory, BulkWriterFactory):
                raise ConfigurationError(
                    f"FileSink needs a BulkWriterFactory, such as ParquetBulkWriters.for_row_type(...), not {writer_factory!r}"
                )
            super().__init__(base_path, writer_factory, OnCheckpointRollingPolicy())

    def create_writer(self, context: WriterContext) -> SinkWriter:
        os.makedirs(self.base_path, exist_ok=True)
        return FileWriter(self, context)

    def create_committer(self, context: CommitterContext) -> Committer:
        os.makedirs(self.base_path, exist_ok=True)
        return FileCommitter(self.base_path, context)


def sink_for(sink: Sink, type_info: TypeInformation | None) -> Sink:
    """The sink as it is to write a stream of that declared type, None if nothing was declared."""
    if not isinstance(sink, FileSink) or not isinstance(sink.writer_factory, RowWriterFactory):
        return sink
    typed = copy.copy(sink)
    typed.writer_factory = RowWriterFactory(encoder_for(sink.writer_factory.encoder, type_info))
    return typed


class StreamingFileSink:
    """FileSink's name before Flink 1.15."""

    @staticmethod
    def for_row_format(base_path: str, encoder: Encoder) -> FileSink.RowFormatBuilder:
        _renamed()
        return FileSink.for_row_format(base_path, encoder)

    @staticmethod
    def for_bulk_format(base_path: str, writer_factory: BulkWriterFactory) -> FileSink.BulkFormatBuilder:
        _renamed()
        return FileSink.for_bulk_format(base_path, writer_factory)


def _renamed() -> None:
    warnings.warn("StreamingFileSink is FileSink today", DeprecationWarning, stacklevel=3)


def _checked(value: Any, wanted: Any) -> Any:
    if not isinstance(value, wanted):
        raise ConfigurationError(f"FileSink takes a {wanted.__name__} there, not {value!r:.200}")
    return value
