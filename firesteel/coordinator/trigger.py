"""Whether a checkpoint is due."""

from __future__ import annotations

import time
from collections.abc import Callable

from firesteel.graph.settings import CheckpointSettings


class Trigger:
    """By the interval since the last barrier, and the minimum pause since the last checkpoint was over."""

    def __init__(self, settings: CheckpointSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._interval_s = None if settings.interval_ms is None else settings.interval_ms / 1000
        self._min_pause_s = settings.min_pause_ms / 1000
        self._clock = clock
        self._triggered = clock()
        self._resolved = clock() - self._min_pause_s

    def due(self, epoch_s: float) -> bool:
        """Whether the epoch about to be planned should end with a barrier: the one whose end is nearest the interval's.

        :param epoch_s: how long epochs take at the moment.
        """
        if self._interval_s is None:
            return False
        now = self._clock()
        if now + epoch_s - self._resolved < self._min_pause_s:
            return False
        return now - self._triggered >= self._interval_s - min(epoch_s, self._interval_s) / 2

    def triggered(self) -> None:
        """A barrier was planned."""
        self._triggered = self._clock()

    def resolved(self) -> None:
        """The checkpoint is complete, or was dropped."""
        self._resolved = self._clock()
