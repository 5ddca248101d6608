"""The demo's input: temperature readings of a thousand sensors, the same on every run.

One file for each gateway, and every sensor reports to one gateway. A file is read in order by one subtask at a time, so
the order of each sensor's readings is fixed however the files interleave. All lines are equally long, so a position in
a file tells how many readings lie before it.
"""

from __future__ import annotations

import random
from pathlib import Path

GATEWAYS = 4
SENSORS_EACH = 250
LINE = len("sensor-0000,20.00\n")
_NORMAL, _HOT = 20.0, 70.0
_HOT_ONE_IN = 500


def write_readings(directory: Path, count: int, seed: int) -> None:
    """About `count` readings: most near 20 degrees, one in 500 near 70, which makes two jumps of it."""
    directory.mkdir()
    for gateway in range(GATEWAYS):
        dice = random.Random(f"{seed}/{gateway}")
        uniform, first = dice.random, gateway * SENSORS_EACH
        lines = []
        for _ in range(count // GATEWAYS):
            sensor = first + int(uniform() * SENSORS_EACH)
            middle = _HOT if uniform() * _HOT_ONE_IN < 1 else _NORMAL
            lines.append(f"sensor-{sensor:04d},{middle + 4 * uniform() - 2:.2f}\n")
        (directory / f"gateway-{gateway}.csv").write_text("".join(lines))
