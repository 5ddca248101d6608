"""The two clocks a timer can follow."""

from __future__ import annotations

import enum


class TimeDomain(enum.Enum):
    """Whether a timer fires by the records' timestamps or by the machine's clock."""

    EVENT_TIME = 0
    PROCESSING_TIME = 1
