"""Where restored state comes from, as far as a slot's own state files do not say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

FileHandle = dict[str, Any]
"""{"file": path below the job's directory, "size": bytes, "checksum": hex}, with operator state in it "operator_state":
{uid: [kinds]}, and "part" if it stands for less than all of its file (parts.py)."""


@dataclass(frozen=True)
class Origin:
    """The checkpoint that a job goes on from, and what slots need of each other's state files. It can be JSON."""

    checkpoint: int
    rescaled: Mapping[str, int] = field(default_factory=dict)
    """Operators that have another parallelism now: uid -> the one they had."""
    chains: Sequence[Sequence[FileHandle]] = ()
    """For each old slot the files with operator state that others may need, oldest first; empty if there are none."""
