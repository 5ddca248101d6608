"""The identity of a job."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

__all__ = ["JobID"]


@dataclass(frozen=True)
class JobID:
    """Identifies one job among all. `str()` gives the bare text."""

    value: str

    @staticmethod
    def generate() -> JobID:
        """A new, random identity of 32 hexadecimal digits."""
        return JobID(uuid.uuid4().hex)

    def __str__(self) -> str:
        return self.value
