"""What the job must write, worked out by a plain loop that shares nothing with it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path


def expected_alerts(readings: Path, jump: float) -> Counter[str]:
    """Alert -> how often it must be in the output."""
    alerts: Counter[str] = Counter()
    last: dict[str, float] = {}
    seen: Counter[str] = Counter()
    for file in sorted(readings.iterdir()):
        for line in file.read_text().splitlines():
            sensor, text = line.split(",")
            temperature = float(text)
            seen[sensor] += 1
            if sensor in last and abs(temperature - last[sensor]) > jump:
                alerts[f"{sensor},{seen[sensor]},{last[sensor]:.2f},{temperature:.2f}"] += 1
            last[sensor] = temperature
    return alerts
