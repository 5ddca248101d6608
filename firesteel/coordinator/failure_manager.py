"""What failed checkpoints mean for the job."""

from __future__ import annotations

import logging

from firesteel.errors import CheckpointError

log = logging.getLogger("firesteel")


class FailureManager:
    """Counts checkpoints that failed one after the other, those that took too long included.

    A failed checkpoint loses nothing: the next one covers its state and carries its output. But a job that can go back
    only ever further, and whose transactional output waits ever longer, may be one that the user wants to hear from.
    """

    def __init__(self, tolerable: int | None) -> None:
        self._tolerable = tolerable
        self._in_a_row = 0

    def completed(self) -> None:
        self._in_a_row = 0

    def failed(self, checkpoint: int, why: str) -> None:
        """A checkpoint was dropped.

        :raises CheckpointError: it was one too many.
        """
        self._in_a_row += 1
        if self._tolerable is not None and self._in_a_row > self._tolerable:
            raise CheckpointError(
                f"checkpoint {checkpoint} failed: {why}. It is the {_ordinal(self._in_a_row)} in a row, and "
                f"{self._tolerable} are tolerable (execution.checkpointing.tolerable-failed-checkpoints)"
            )
        log.warning("checkpoint %d was dropped: %s. The job goes on; the next one covers it", checkpoint, why)


def _ordinal(number: int) -> str:
    return {1: "first", 2: "second", 3: "third"}.get(number, f"{number}th")
