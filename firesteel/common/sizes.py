"""Memory sizes as people write them in settings: a number and a unit, as Flink reads them."""

from __future__ import annotations

import re

__all__ = ["parse_size", "show_size"]

_LABELS: dict[int, tuple[str, ...]] = {
    0: ("", "b", "bytes"),
    1: ("k", "kb", "kib", "kibibytes"),
    2: ("m", "mb", "mib", "mebibytes"),
    3: ("g", "gb", "gib", "gibibytes"),
    4: ("t", "tb", "tib", "tebibytes"),
}
_POWERS = {label: power for power, labels in _LABELS.items() for label in labels}
_NUMBER_AND_UNIT = re.compile(r"([0-9]+)\s*([^0-9]*)")


def parse_size(text: str) -> int:
    """Bytes of `"64 mb"`, `"1g"` or `"512"`. Units are powers of 1024, whatever they are called, as in Flink.

    :raises ValueError: it is no size.
    """
    match = _NUMBER_AND_UNIT.fullmatch(text.strip())
    if match is None:
        raise ValueError(f'Not a size: {text!r}. Write a whole number and a unit, such as "64 mb"')
    number, unit = match.groups()
    power = _POWERS.get(unit.strip().lower())
    if power is None:
        raise ValueError(f"Not a size: {text!r}. There is no unit {unit.strip()!r}; the units are b, kb, mb, gb, tb")
    return int(number) << 10 * power


def show_size(size: int) -> str:
    """A size for people: `5.2 MB`, in the same units."""
    value, unit = float(size), "B"
    for larger in ("KB", "MB", "GB", "TB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{size} B" if unit == "B" else f"{value:.1f} {unit}"
