"""What a file format is to the file source: how a file can be cut, and how any range of it is read."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from firesteel.errors import FiresteelError


class FileReadError(FiresteelError):
    """A file that cannot be read as planned: changed since, damaged, or with a record that is none."""


class FileReader(ABC):
    """One open file. Ranges come in any order; one that goes on where the last ended should be cheap."""

    @abstractmethod
    def read(self, start: int, stop: int) -> Iterator[list[Any]]:
        """The records that begin within [start, stop), in order, in lists of about `CHUNK`."""

    def close(self) -> None:  # noqa: B027  an optional hook
        """Release the file."""


class FileFormat(ABC):
    """How records lie in a file. Pickled to slots.

    Positions count in the format's `unit`. Whatever positions a file is cut at, every record must belong to
    exactly one of the ranges: the driver cuts without looking into the data.
    """

    unit: str
    """"bytes" or "rows": what positions and budgets count. Part of a checkpoint."""

    splittable: bool = True
    """Whether a file may be cut at all; otherwise each file is one range."""

    fresh: bool = False
    """Whether every record is made when it is read and kept by nobody else, down to its parts (`Source.fresh`)."""

    kept: bool = False
    """Whether files stay for ever once they were seen, so that positions in others are of something else."""

    def check(self, path: str) -> None:  # noqa: B027  an optional hook
        """Raise a ConfigurationError for a file that can be seen, without opening it, to be no such file."""

    @abstractmethod
    def splits(self, path: str, size: int, split_size: int) -> list[tuple[int, int]]:
        """Cut a file of `size` bytes into ranges of about `split_size` bytes each, in the format's unit."""

    @abstractmethod
    def open(self, path: str, size: int) -> FileReader:
        """Open a file that had `size` bytes when it was planned."""


class StreamFormat(FileFormat):
    """Formats that are read record by record: lines of text, of CSV or of JSON."""

    @staticmethod
    def text_line_format(charset_name: str = "UTF-8") -> StreamFormat:
        """Lines of text as `str`, without their line end ("\\n" or "\\r\\n"). Empty lines are records too.

        Only "\\n" ends a line: form feeds, lone carriage returns and Unicode's line separators are data.
        """
        from firesteel.connectors.file_lines import TextLineFormat  # it derives from this class

        return TextLineFormat(charset_name)


class BulkFormat(FileFormat):
    """Formats that are read in batches of rows: Parquet."""


def check_unchanged(path: str, size: int, now: int) -> None:
    """Files are read by position, so a file must stay as it was when it was planned."""
    if now != size:
        raise FileReadError(
            f"file {path!r} had {size} bytes when it was planned and has {now} now. Files must not change "
            f"while they are read; write new data to a new file, complete, and move it into place."
        )


def open_failed(path: str, error: OSError) -> FileReadError:
    return FileReadError(f"cannot open {path!r}, which was there when it was planned on the driver: {error}")


def file_size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError as error:
        raise open_failed(path, error) from error
