"""Formats of one record per line, read by byte offset: text and JSON lines.

A line belongs to the range that its first byte is in. So a reader whose range starts in the middle of a line
skips to the next one, and a reader whose range ends in the middle of a line reads on to its end.
"""

from __future__ import annotations

import codecs
import json
import os
from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

from firesteel.connectors.base import CHUNK
from firesteel.connectors.file_formats import (
    FileReader,
    FileReadError,
    StreamFormat,
    check_unchanged,
    open_failed,
)
from firesteel.errors import ConfigurationError

BLOCK = 256 * 1024
"""How many bytes are decoded and split at once: some thousand lines, and still in the cache."""

COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".lz4", ".zip", ".snappy")


class BadLineError(Exception):
    """A line, by its index among those given, that is no record; its reader adds where that is."""

    def __init__(self, index: int, reason: str) -> None:
        super().__init__(reason)
        self.index = index


class LineFormat(StreamFormat):
    """Base of the line formats: what a line means is the subclass's business, where it lies is not."""

    unit = "bytes"

    def __init__(self, charset: str = "UTF-8") -> None:
        self.charset = single_byte_newlines(charset)

    def check(self, path: str) -> None:
        if path.endswith(COMPRESSED):
            raise ConfigurationError(
                f"file {path!r} is compressed, and compressed text cannot be read from a position, so it "
                f"could not be resumed. Decompress it, or convert it to Parquet, which is compressed inside."
            )

    def splits(self, path: str, size: int, split_size: int) -> list[tuple[int, int]]:
        if not self.splittable:
            split_size = max(1, size)
        return [(start, min(size, start + split_size)) for start in range(0, size, split_size)]

    @abstractmethod
    def parser(self, path: str) -> Callable[[list[str]], list[Any]]:
        """What turns lines of this file into records, or raises a BadLineError."""

    def open(self, path: str, size: int) -> FileReader:
        return LineReader(path, size, self.charset, self.parser(path))


class TextLineFormat(LineFormat):
    """Lines as they are."""

    def parser(self, path: str) -> Callable[[list[str]], list[Any]]:
        return lambda lines: lines


class JsonLinesFormat(LineFormat):
    """One JSON value per line, usually an object: a dict. Blank lines are skipped; always UTF-8."""

    def __init__(self) -> None:
        super().__init__("UTF-8")

    def parser(self, path: str) -> Callable[[list[str]], list[Any]]:
        return parse_json_lines


def parse_json_lines(lines: list[str]) -> list[Any]:
    # `json.loads` runs two regular expressions and some checks per call; the scanner below it is what is
    # needed here
    scan: Callable[[str, int], tuple[Any, int]] = vars(json.JSONDecoder())["scan_once"]
    records: list[Any] = []
    add = records.append
    for index, line in enumerate(lines):
        line = line.strip(" \t\r")
        if not line:
            continue
        try:
            value, end = scan(line, 0)
        except StopIteration as stop:
            raise BadLineError(index, f"no JSON value at character {stop.value}") from None
        except (ValueError, RecursionError) as error:
            raise BadLineError(index, f"not JSON: {error}") from error
        if end != len(line):
            raise BadLineError(index, f"more than one JSON value: the first ends at character {end}")
        add(value)
    return records


class LineReader(FileReader):
    """Reads lines block by block. `skip_lines` at the start of the file are no records (a header)."""

    def __init__(
        self, path: str, size: int, charset: str, parse: Callable[[list[str]], list[Any]], skip_lines: int = 0
    ) -> None:
        self._path = path
        self._size = size
        self._charset = charset
        self._parse = parse
        self._skip_lines = skip_lines
        try:
            self._file = open(path, "rb", buffering=BLOCK)  # noqa: SIM115  open until close()
        except OSError as error:
            raise open_failed(path, error) from error

    def read(self, start: int, stop: int) -> Iterator[list[Any]]:
        file = self._file
        check_unchanged(self._path, self._size, os.fstat(file.fileno()).st_size)
        if start:
            # from one byte before: if that is a newline, the line at `start` is ours
            file.seek(start - 1)
            position = start - 1 + len(file.readline())
        else:
            file.seek(0)
            position = 0
        while position < stop:
            block = file.read(min(BLOCK, stop - position))
            if not block.endswith(b"\n"):
                block += file.readline()
            if not block:
                check_unchanged(self._path, self._size, position)
            records = self._records(position, block)
            for i in range(0, len(records), CHUNK):
                yield records[i : i + CHUNK]
            position += len(block)

    def _records(self, position: int, block: bytes) -> list[Any]:
        skipped = 0 if position else self._skip_lines
        text = self._decode(position, block)
        if "\r\n" in text:
            text = text.replace("\r\n", "\n")
        lines = text.split("\n")
        if not lines[-1]:
            lines.pop()  # what follows the last newline is no line
        try:
            return self._parse(lines[skipped:] if skipped else lines)
        except BadLineError as error:
            earlier = block.split(b"\n")[: error.index + skipped]
            offset = sum(map(len, earlier)) + len(earlier)
            raise self._bad_record(position, block, offset, str(error)) from error

    def _decode(self, position: int, block: bytes) -> str:
        mark = len(codecs.BOM_UTF8) if not position and is_marked(block, self._charset) else 0
        try:
            return str(memoryview(block)[mark:] if mark else block, self._charset)
        except UnicodeDecodeError as error:
            offset = block.rfind(b"\n", 0, mark + error.start) + 1
            reason = f"byte {mark + error.start - offset} of it is not {self._charset}: {error.reason}"
            raise self._bad_record(position, block, offset, reason) from error

    def _bad_record(self, position: int, block: bytes, offset: int, reason: str) -> FileReadError:
        line = block[offset:].split(b"\n", 1)[0]
        return FileReadError(
            f"bad record in {self._path!r} at byte {position + offset}: {reason}. It begins {line[:60]!r}"
        )

    def close(self) -> None:
        self._file.close()


def single_byte_newlines(charset: str) -> str:
    """The charset's canonical name; refused if a newline is not the one byte that lines are found by."""
    try:
        name = codecs.lookup(charset).name
        newline = "\n".encode(name)
    except (LookupError, UnicodeError) as error:
        raise ConfigurationError(f"{charset!r} is not a charset that Python knows: {error}") from error
    if name == "utf-8-sig":
        return "utf-8"  # the mark is dropped there too
    if newline != b"\n":
        raise ConfigurationError(
            f"charset {charset!r} does not write a newline as the one byte 0x0A, so lines cannot be found "
            f"from a position in the file; convert the file to UTF-8"
        )
    return name


def is_marked(start: bytes, charset: str) -> bool:
    """Whether a file that begins like this has a byte order mark, which is not part of its first line."""
    return charset == "utf-8" and start.startswith(codecs.BOM_UTF8)
