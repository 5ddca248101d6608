"""Figures, their targets, and how they are shown and kept."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


def percentile(values: Sequence[float], part: float) -> float:
    """The value that `part` percent of the values do not exceed."""
    ranked = sorted(values)
    return ranked[max(0, math.ceil(len(ranked) * part / 100) - 1)]


@dataclass(frozen=True)
class Figure:
    """One line of the result: reported only, or with a target it has to reach (`at_least`) or not to exceed."""

    name: str
    value: float
    unit: str = ""
    target: float | None = None
    at_least: bool = True
    samples: tuple[float, ...] = ()

    @property
    def ok(self) -> bool | None:
        if self.target is None:
            return None
        return self.value >= self.target if self.at_least else self.value <= self.target

    def row(self) -> dict[str, object]:
        return {
            "name": self.name,
            "value": self.value,
            "target": self.target,
            "ok": self.ok,
            "unit": self.unit,
            "samples": list(self.samples),
        }

    def cells(self) -> tuple[str, str, str, str]:
        target = "" if self.target is None else f"{'>=' if self.at_least else '<='} {self.target:g}"
        spread = f"{_number(min(self.samples))} .. {_number(max(self.samples))}" if len(self.samples) > 1 else ""
        verdict = {None: "", True: "ok", False: "MISSED"}[self.ok]
        return self.name, f"{_number(self.value)} {self.unit}".strip(), spread, f"{target} {verdict}".strip()


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def table(figures: Sequence[Figure]) -> str:
    rows = [("figure", "value", "repetitions", "target"), *(figure.cells() for figure in figures)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rows.insert(1, tuple("-" * width for width in widths))  # type: ignore[arg-type]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def save(figures: Sequence[Figure], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([figure.row() for figure in figures], indent=2) + "\n")
