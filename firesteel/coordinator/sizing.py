"""How much an epoch reads."""

from __future__ import annotations

FIRST_UNITS = 20_000
_GROWTH, _SHRINK = 8.0, 0.25


class EpochSizer:
    """Adapts the units an epoch reads of a source so that epochs take about as long as wanted.

    Grows fast (a new job starts small) and by measured speed; when a source had less to give than it was asked for, the
    duration says nothing about the limit and is not learned from.
    """

    def __init__(self, target_s: float, first_units: int = FIRST_UNITS) -> None:
        self.target_s = target_s
        self.units = first_units

    def observe(self, units: int, seconds: float) -> None:
        """An epoch that read so many units took so long."""
        if units < self.units // 2 or seconds <= 0:
            return
        factor = min(_GROWTH, max(_SHRINK, self.target_s / seconds))
        self.units = max(1, int(units * factor))
