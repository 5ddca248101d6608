"""What checkpoints promise."""

from __future__ import annotations

import enum

__all__ = ["CheckpointingMode"]


class CheckpointingMode(enum.Enum):
    """The guarantee inside the job. Epochs end at planned positions, so exactly-once costs nothing extra here."""

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1
