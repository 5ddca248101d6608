"""The names of the file sink's files.

A temporary file's name says which writer made it and when, so that the driver of a later incarnation can tell
what is left over from a dead one, and never touches anybody else's:

    .firesteel-<job>-<sink>-<incarnation>-<sequence>-<subtask>.inprogress     until it is committed
    <prefix>-<job>-<sink>-<incarnation>-<sequence>-<subtask><suffix>          from then on

Job and sink are hashes of the job id and the sink's uid, as either may hold characters that a file name
cannot: 16 hex digits in the temporary name, where confusion would delete data, 8 in the final one, where it
would only be an error.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

_TEMPORARY = re.compile(r"\.firesteel-([0-9a-f]{16})-([0-9a-f]{16})-(\d+)-(\d+)-(\d+)\.inprogress")


def short_hash(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


@dataclass(frozen=True)
class PartName:
    """Whose file it is. `sequence` counts a writer's files."""

    job: str
    sink: str
    incarnation: int
    sequence: int
    subtask: int

    @staticmethod
    def of(job_id: str, uid: str, incarnation: int, sequence: int, subtask: int) -> PartName:
        return PartName(short_hash(job_id), short_hash(uid), incarnation, sequence, subtask)

    @staticmethod
    def parse(temporary: str) -> PartName | None:
        """Read a temporary file's name; None for every other name."""
        match = _TEMPORARY.fullmatch(temporary)
        if match is None:
            return None
        job, sink, *numbers = match.groups()
        return PartName(job, sink, *map(int, numbers))

    def temporary(self) -> str:
        return f".firesteel-{self.job}-{self.sink}-{self._counters()}.inprogress"

    def final(self, prefix: str, suffix: str) -> str:
        return f"{prefix}-{self.job[:8]}-{self.sink[:8]}-{self._counters()}{suffix}"

    def _counters(self) -> str:
        return f"{self.incarnation}-{self.sequence}-{self.subtask}"
