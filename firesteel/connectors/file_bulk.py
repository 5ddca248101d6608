"""What writes records into a part file. Row formats encode record by record; bulk formats may lay out a file as they like."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, BinaryIO

from firesteel.common.serialization import Encoder
from firesteel.common.types import Row
from firesteel.errors import TypeMismatchError


class BulkWriter(ABC):
    """Writes one file. The stream is opened and closed by the sink."""

    @abstractmethod
    def add_element(self, element: Any) -> None:
        """Take a record; it may stay in memory."""

    def add_elements(self, elements: Sequence[Any]) -> None:
        """Take records: what the sink calls, for writers that are faster with many at once."""
        for element in elements:
            self.add_element(element)

    def flush(self) -> None:  # noqa: B027  an optional hook
        """Give the stream what can be given now."""

    @abstractmethod
    def finish(self) -> None:
        """No more records: write all that is left, the footer included. Leaves the stream open."""

    def discard(self) -> None:  # noqa: B027  an optional hook
        """The file is thrown away: release what `finish` would have released."""


class BulkWriterFactory(ABC):
    """Makes writers. Pickled to slots."""

    @abstractmethod
    def create(self, out: BinaryIO) -> BulkWriter: ...


@dataclasses.dataclass(frozen=True)
class RowWriterFactory(BulkWriterFactory):
    """A row format is a bulk format that keeps nothing in memory."""

    encoder: Encoder

    def create(self, out: BinaryIO) -> BulkWriter:
        return _RowWriter(self.encoder, out)


class _RowWriter(BulkWriter):
    def __init__(self, encoder: Encoder, out: BinaryIO) -> None:
        self._encode: Callable[[Any], bytes] = encoder.encode
        self._out = out

    def add_element(self, element: Any) -> None:
        self._out.write(self._encode(element))

    def add_elements(self, elements: Sequence[Any]) -> None:
        self._out.write(b"".join(map(self._encode, elements)))

    def finish(self) -> None:
        """There is nothing left."""


def fields_of(record: Any, names: Sequence[str]) -> Sequence[Any]:
    """A record's values in the order of the names: by position in tuples, lists and rows without names, else by name.

    :raises TypeMismatchError: it does not have these fields.
    """
    if isinstance(record, Row) and record._fields is not None:
        record_fields: Mapping[Any, Any] = record.as_dict()
    elif isinstance(record, (Row, tuple, list)):
        if len(record) != len(names):
            raise TypeMismatchError(
                f"the record {record!r:.500} has {len(record)} fields, not {len(names)}: {', '.join(names)}",
                record=record,
            )
        return list(record)
    elif isinstance(record, Mapping):
        record_fields = record
    elif dataclasses.is_dataclass(record) and not isinstance(record, type):
        record_fields = {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}
    else:
        raise TypeMismatchError(
            f"the record {record!r:.500} is neither a Row, tuple, list, dict nor dataclass with {', '.join(names)}",
            record=record,
        )
    if set(record_fields) != set(names):
        raise TypeMismatchError(
            f"the record {record!r:.500} has the fields {', '.join(map(str, record_fields))}, not {', '.join(names)}",
            record=record,
        )
    return [record_fields[name] for name in names]
