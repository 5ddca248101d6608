"""What a sink promises about records when a job fails and recovers."""

from __future__ import annotations

from enum import Enum


class DeliveryGuarantee(Enum):
    """A job as a whole promises no more than the weakest of its sources and sinks."""

    EXACTLY_ONCE = 0
    """Each record has its effect once. Output becomes visible when the checkpoint after it is complete."""

    AT_LEAST_ONCE = 1
    """No record is lost; after a failure some may be delivered again. Output leaves with each epoch."""

    NONE = 2
    """Records may be lost or delivered again."""
