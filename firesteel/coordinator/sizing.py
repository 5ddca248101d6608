"""How much an epoch reads."""

from __future__ import annotations

_GROWTH, _SHRINK = 8.0, 0.25
_FIRST_GROWTH, _FIRST_MOST = 8, 24
_NEAR = 1.25
_MEMORY = 0.8


class EpochSizer:
    """Adapts the units an epoch reads of a source so that epochs take about as long as wanted.

    Grows fast, because a new job starts small, and corrects gently once it is near, because epochs with a barrier take
    longer than those without. An epoch also costs something however little it reads; a target below twice that would
    shrink epochs to nothing but overhead, so it is raised. When a source had less to give than it was asked for, the
    duration says nothing about the limit and is not learned from.
    """

    def __init__(self, target_s: float, first_units: int) -> None:
        self._target_s = target_s
        self._overhead = _Overhead()
        self._warm = False
        self.units = first_units

    def observe(self, units: int, seconds: float) -> None:
        """An epoch that read so many units took so long."""
        if seconds <= 0 or units < max(1, self.units // 2):
            return
        if not self._warm:
            self._warm = True  # the first epoch pays for starting up, so how long it took says little
            if seconds < self._target_s:
                # at worst all of it was for its units, and the next one takes 8 times the target
                self.units = int(units * min(_FIRST_MOST, _FIRST_GROWTH * self._target_s / seconds))
            return
        self._overhead.observe(units, seconds)
        factor = max(self._target_s, 2 * self._overhead.seconds) / seconds
        if 1 / _NEAR < factor < _NEAR:
            factor **= 0.5
        self.units = max(1, int(units * min(_GROWTH, max(_SHRINK, factor))))


class _Overhead:
    """What an epoch costs apart from its units: a line through recent epochs, where it meets zero units."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._weight = self._x = self._y = self._xx = self._xy = 0.0

    def observe(self, x: float, y: float) -> None:
        self._weight = self._weight * _MEMORY + 1
        step = 1 / self._weight
        self._x += (x - self._x) * step
        self._y += (y - self._y) * step
        self._xx += (x * x - self._xx) * step
        self._xy += (x * y - self._xy) * step
        spread = self._xx - self._x * self._x
        if spread > 0.01 * self._xx:  # epochs of one size say nothing about others
            slope = max(0.0, (self._xy - self._x * self._y) / spread)
            self.seconds = max(0.0, self._y - slope * self._x)
