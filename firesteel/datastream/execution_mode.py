"""Whether a program runs as a stream or as a batch."""

from __future__ import annotations

import enum

__all__ = ["RuntimeExecutionMode"]


class RuntimeExecutionMode(enum.Enum):
    """All three run alike here: epoch after epoch, until the input ends if it does.

    Flink's BATCH shows only the last result of a keyed reduction; here every update is shown in every mode.
    """

    STREAMING = 0
    BATCH = 1
    AUTOMATIC = 2
