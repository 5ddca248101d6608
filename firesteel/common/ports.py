"""Ports as Flink writes them: one, a list, or ranges."""

from __future__ import annotations

__all__ = ["parse_ports"]

_HIGHEST = 65_535


def parse_ports(text: str) -> tuple[int, ...]:
    """The ports of `"8081"`, `"8081-8090"` or `"8081,8085-8090"`, in this order. 0 is any free one.

    :raises ValueError: it is none of these.
    """
    ports: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        try:
            low, high = int(first), int(last if dash else first)
        except ValueError:
            raise ValueError("write a port, or a range such as 8081-8090") from None
        if not 0 <= low <= high <= _HIGHEST:
            raise ValueError(f"ports are numbers from 0 to {_HIGHEST}, and a range begins with the lower one")
        ports += range(low, high + 1)
    return tuple(ports)
