"""What commands write: tables and complaints."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from firesteel.errors import FiresteelError


class OperationError(FiresteelError):
    """What was asked for could be done, and failed."""


def complain(message: str) -> None:
    sys.stderr.write(f"firesteel: {message}\n")


def write(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def table(header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Columns under their headings; the last one is as wide as it likes.

    :param right: columns of numbers, which are aligned to the right.
    """
    lines = [header, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
