"""What the sensor job must have written, worked out from its input alone. Imports nothing of firesteel.

Both sources run in parallel and a restart may divide the rest of the input anew, so the order of a key's records is not
fixed. What is fixed: every number comes out of `numbers` once; and of `sums` every key has the counts 1, 2, 3, ... without
gap or repeat, while the steps from one sum to the next are that key's numbers, each once. A lost, repeated or half
applied record breaks one of these, wherever it happens.
"""

from __future__ import annotations

from pathlib import Path

from tests.chaos.oracle import ViolationError, check_numbers, check_sums, visible


def committed(directory: Path) -> list[Path]:
    """The files a reader of the directory sees."""
    return sorted(p for p in directory.iterdir() if not p.name.startswith(".")) if directory.is_dir() else []


def temporary(out: Path) -> list[Path]:
    """Files that no reader should see and that should not outlive the job."""
    return sorted(p for p in out.rglob(".*") if p.is_file()) if out.is_dir() else []


def contents(out: Path) -> dict[str, bytes]:
    """Every committed file, so that two moments can be compared byte by byte."""
    return {str(p.relative_to(out)): p.read_bytes() for sub in ("numbers", "sums") for p in committed(out / sub)}


def check_windows(out: Path, records: int, keys: int) -> None:
    """The sums of each key in each window of 1000 numbers, each once."""
    expected = {
        f"{key},{start},{sum(n for n in range(start, min(start + 1000, records)) if n % keys == key)}"
        for start in range(0, records, 1000)
        for key in range(keys)
    }
    found = [line for _, line in visible(out / "windows")]
    if sorted(found) != sorted(expected):
        raise ViolationError(f"{len(found)} sums, wrong: {sorted(set(found) ^ expected)[:10]}")


def check_output(out: Path, records: int, keys: int, *, complete: bool = True) -> None:
    """`complete=False`: the job is not over; what is there must be right, but some may be missing."""
    check_numbers(visible(out / "numbers"), 0, records, complete=complete)
    check_sums(visible(out / "sums"), 0, records, keys, complete=complete)
