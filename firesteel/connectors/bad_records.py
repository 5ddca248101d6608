"""What becomes of a message that its format cannot read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from firesteel.errors import ConfigurationError

ERRORS = "numRecordsInErrors"
"""The metric of a source that counts them, under Flink's name."""


@dataclass(frozen=True)
class BadRecord:
    """A message that could not be read, as a side output gets it.

    :ivar record: the message with its place: a `KafkaRecord`.
    :ivar error: what its deserializer said.
    """

    record: Any
    error: str


@dataclass(frozen=True)
class BadRecordPolicy:
    """Made by one of its methods. Bad messages are counted in the metric `numRecordsInErrors` in any case."""

    kind: str
    tag_id: str | None = None

    @staticmethod
    def fail() -> BadRecordPolicy:
        """The job fails, with the message's place and first bytes: the default."""
        return BadRecordPolicy("fail")

    @staticmethod
    def skip() -> BadRecordPolicy:
        """They are left out, and counted. Each slot logs its first one."""
        return BadRecordPolicy("skip")

    @staticmethod
    def side_output(output_tag: Any) -> BadRecordPolicy:
        """They go to a side output of the source's stream, as `BadRecord`s."""
        tag_id = getattr(output_tag, "tag_id", None)
        if not isinstance(tag_id, str):
            raise ConfigurationError(f"BadRecordPolicy.side_output() takes an OutputTag, not {output_tag!r:.200}")
        return BadRecordPolicy("side output", tag_id)
