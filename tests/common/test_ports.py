"""Ports and ranges of them, and durations as they are shown."""

from __future__ import annotations

import pytest

from firesteel.common.durations import show_duration
from firesteel.common.ports import parse_ports


@pytest.mark.parametrize(
    ("text", "ports"),
    [("0", (0,)), ("8081", (8081,)), ("8081-8083", (8081, 8082, 8083)), ("8081, 9000-9001", (8081, 9000, 9001))],
)
def test_ports_are_single_listed_or_in_ranges(text: str, ports: tuple[int, ...]) -> None:
    assert parse_ports(text) == ports


@pytest.mark.parametrize("text", ["", "many", "8081-", "-1", "9-8", "65536", "8081,"])
def test_what_is_no_port_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="port"):
        parse_ports(text)


@pytest.mark.parametrize(
    ("milliseconds", "shown"),
    [(-5, "0.0 s"), (1234, "1.2 s"), (60_000, "1 min 0 s"), (192_000, "3 min 12 s"), (7_260_000, "2 h 1 min"),
     (90_000_000, "1 d 1 h")],
)  # fmt: skip
def test_durations_are_shown_in_their_two_largest_units(milliseconds: int, shown: str) -> None:
    assert show_duration(milliseconds) == shown
