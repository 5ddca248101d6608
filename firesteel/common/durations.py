"""Durations as people write them in settings: a number and a unit, as Flink reads them."""

from __future__ import annotations

import re
from datetime import timedelta

from firesteel.common.time import Duration, Time

__all__ = ["DurationLike", "parse_duration_ms", "show_duration"]

DurationLike = int | str | Duration | Time | timedelta
"""What can be given where a duration is wanted. A bare number is milliseconds."""

_LABELS: dict[int, tuple[str, ...]] = {
    86_400_000_000_000: ("d", "day", "days"),
    3_600_000_000_000: ("h", "hour", "hours"),
    60_000_000_000: ("m", "min", "minute", "minutes"),
    1_000_000_000: ("s", "sec", "secs", "second", "seconds"),
    1_000_000: ("ms", "milli", "millis", "millisecond", "milliseconds"),
    1_000: ("µs", "micro", "micros", "microsecond", "microseconds"),
    1: ("ns", "nano", "nanos", "nanosecond", "nanoseconds"),
}
_NANOS = {label: nanos for nanos, labels in _LABELS.items() for label in labels}
_NUMBER_AND_UNIT = re.compile(r"([0-9]+)\s*(\D*)")


def parse_duration_ms(value: DurationLike) -> int:
    """Milliseconds of `1000`, `"10 s"`, `"500ms"`, `"1 min"`, a `Duration`, a `Time` or a `timedelta`.

    Raises ValueError for anything else, for negative durations, and for durations that are not whole
    milliseconds: they would silently become shorter, "500 µs" even nothing at all.
    """
    nanos = _nanos(value)
    if nanos < 0:
        raise ValueError(f"A duration cannot be negative: {value!r}")
    if nanos % 1_000_000:
        raise ValueError(f"Durations are counted in whole milliseconds: {value!r} is finer than that")
    return nanos // 1_000_000


def _nanos(value: DurationLike) -> int:
    if isinstance(value, str):
        return _parse(value)
    if isinstance(value, Duration):
        return value.nanos
    if isinstance(value, Time):
        return value.to_milliseconds() * 1_000_000
    if isinstance(value, timedelta):
        return value // timedelta(microseconds=1) * 1000
    if isinstance(value, int) and not isinstance(value, bool):
        return value * 1_000_000
    raise ValueError(f'Not a duration: {value!r}. Give milliseconds as an int, or a text such as "10 s"')


def _parse(text: str) -> int:
    match = _NUMBER_AND_UNIT.fullmatch(text.strip())
    if match is None:
        raise ValueError(f'Not a duration: {text!r}. Write a whole number and a unit, such as "10 s"')
    number, unit = match.groups()
    nanos = _NANOS.get(unit.strip().lower() or "ms")
    if nanos is None:
        known = ", ".join(labels[0] for labels in _LABELS.values())
        raise ValueError(f"Not a duration: {text!r}. There is no unit {unit!r}; the units are {known}")
    return int(number) * nanos


def show_duration(milliseconds: int) -> str:
    """A duration for people, in its two largest units: `3 min 12 s`."""
    seconds = max(0, milliseconds) // 1000
    if seconds < 60:
        return f"{max(0, milliseconds) / 1000:.1f} s"
    for size, unit, smaller, of in ((86_400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if seconds >= size:
            return f"{seconds // size} {unit} {seconds % size // smaller} {of}"
    raise AssertionError(milliseconds)
