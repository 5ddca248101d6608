"""Reading files: lines of text, CSV, JSON lines and Parquet, from any position again."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from firesteel.common.durations import DurationLike, parse_duration_ms
from firesteel.connectors.base import (
    EnumeratorContext,
    Json,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
)
from firesteel.connectors.file_enumerator import FileEnumerator
from firesteel.connectors.file_formats import BulkFormat, FileFormat, FileReader, StreamFormat
from firesteel.connectors.splits import split_id
from firesteel.errors import ConfigurationError

SPLIT_SIZE = 64 * 1024 * 1024


class FileSource(Source):
    """Reads files, directories (with all below them) and wildcards: every record once.

    Large files are cut into splits of about `split_size` bytes, which subtasks share. Records are in order
    within a split; there is no order between splits. Files must be complete when they are found, and must not
    change. Built with `for_record_stream_format` or `for_bulk_file_format`.
    """

    def __init__(
        self,
        form: FileFormat,
        paths: tuple[str, ...],
        split_size: int = SPLIT_SIZE,
        discovery_interval: float | None = None,
    ) -> None:
        self.format = form
        self.paths = paths
        self.split_size = split_size
        self.discovery_interval = discovery_interval
        self.bounded = discovery_interval is None
        self.fresh = form.fresh

    @staticmethod
    def for_record_stream_format(stream_format: StreamFormat, *paths: str) -> FileSourceBuilder:
        return FileSourceBuilder(stream_format, paths)

    @staticmethod
    def for_bulk_file_format(bulk_format: BulkFormat, *paths: str) -> FileSourceBuilder:
        return FileSourceBuilder(bulk_format, paths)

    def create_enumerator(self, context: EnumeratorContext) -> SplitEnumerator:
        return FileEnumerator(self.paths, self.format, context, self.split_size, self.discovery_interval)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return FileSourceReader(self.format)


class FileSourceBuilder:
    """Collects the settings of a FileSource. By default it reads what is there at the start, and finishes."""

    def __init__(self, form: FileFormat, paths: tuple[str, ...]) -> None:
        if not isinstance(form, FileFormat):
            raise ConfigurationError(
                f"a file source needs a format such as StreamFormat.text_line_format(), not {form!r}"
            )
        if not paths:
            raise ConfigurationError("a file source needs at least one path")
        self._format = form
        self._paths = tuple(os.fspath(path) for path in paths)
        self._split_size = SPLIT_SIZE
        self._interval: float | None = None

    def monitor_continuously(self, discovery_interval: DurationLike) -> FileSourceBuilder:
        """Never finish; look for new files every so often (a Duration, a timedelta, or milliseconds)."""
        self._interval = parse_duration_ms(discovery_interval) / 1000
        return self

    def process_static_file_set(self) -> FileSourceBuilder:
        """Read what is there when the job starts, and finish: the default."""
        self._interval = None
        return self

    def set_split_size(self, split_size: int) -> FileSourceBuilder:
        """About how many bytes of a file make a split."""
        if split_size < 1:
            raise ConfigurationError(f"split_size must be at least 1 byte, but is {split_size}")
        self._split_size = split_size
        return self

    def build(self) -> FileSource:
        return FileSource(self._format, self._paths, self._split_size, self._interval)


class FileSourceReader(SourceReader):
    """Keeps the last file open: the next epoch most often goes on in it."""

    side_by_side = False

    def __init__(self, form: FileFormat) -> None:
        self._format = form
        self._open: tuple[str, int] | None = None
        self._file: FileReader | None = None

    def splits_of(self, planned: Json) -> Sequence[str]:
        return (split_id(planned["path"], planned["end"]),)

    def read(self, planned: Json) -> Iterator[list[Any]]:
        wanted = planned["path"], planned["size"]
        if self._file is None or wanted != self._open:
            self.close()
            self._file = self._format.open(*wanted)
            self._open = wanted
        yield from self._file.read(planned["start"], planned["stop"])

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file = self._open = None
