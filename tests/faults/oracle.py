"""What the sensor job must have written, worked out from its input alone. Imports nothing of firesteel.

Both sources run in parallel and a restart may divide the rest of the input anew, so the order of a key's records is not
fixed. What is fixed: every number comes out of `numbers` once; and of `sums` every key has the counts 1, 2, 3, ... without
gap or repeat, while the steps from one sum to the next are that key's numbers, each once. A lost, repeated or half
applied record breaks one of these, wherever it happens.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path


class WrongOutputError(AssertionError):
    """The committed files are not what a run without faults would have left."""


def committed(directory: Path) -> list[Path]:
    """The files a reader of the directory sees."""
    return sorted(p for p in directory.iterdir() if not p.name.startswith(".")) if directory.is_dir() else []


def temporary(out: Path) -> list[Path]:
    """Files that no reader should see and that should not outlive the job."""
    return sorted(p for p in out.rglob(".*") if p.is_file()) if out.is_dir() else []


def contents(out: Path) -> dict[str, bytes]:
    """Every committed file, so that two moments can be compared byte by byte."""
    return {str(p.relative_to(out)): p.read_bytes() for sub in ("numbers", "sums") for p in committed(out / sub)}


def _lines(directory: Path) -> list[tuple[str, str]]:
    lines = []
    for path in committed(directory):
        text = path.read_text()
        if text and not text.endswith("\n"):
            raise WrongOutputError(f"{path} is torn: its last line has no end")
        lines += [(path.name, line) for line in text.splitlines()]
    return lines


def _some(counter: Counter[int]) -> str:
    return f"{sum(counter.values())}, such as {sorted(counter)[:5]}"


def check_numbers(out: Path, records: int, *, complete: bool = True) -> None:
    found = Counter(int(line) for _, line in _lines(out / "numbers"))
    expected = Counter(range(records))
    if found - expected:
        raise WrongOutputError(f"numbers repeated or made up: {_some(found - expected)}")
    if complete and expected - found:
        raise WrongOutputError(f"numbers lost: {_some(expected - found)}")


def check_sums(out: Path, records: int, keys: int, *, complete: bool = True) -> None:
    by_key: dict[int, dict[int, int]] = defaultdict(dict)
    last_in_file: dict[tuple[str, int], int] = {}
    for file, line in _lines(out / "sums"):
        key, count, total = map(int, line.split(","))
        if count in by_key[key]:
            raise WrongOutputError(f"key {key} has record {count} twice, the second time in {file}")
        if last_in_file.get((file, key), count - 1) != count - 1:
            raise WrongOutputError(f"key {key} in {file}: record {count} follows {last_in_file[file, key]}")
        by_key[key][count] = total
        last_in_file[file, key] = count
    for key in range(keys):
        totals, numbers = by_key.pop(key, {}), Counter(range(key, records, keys))
        if sorted(totals) != list(range(1, len(totals) + 1)):
            raise WrongOutputError(f"key {key} has a gap: of {max(totals)} records there are {len(totals)}")
        steps = Counter(totals[count] - totals.get(count - 1, 0) for count in totals)
        if steps - numbers:
            raise WrongOutputError(f"key {key} added what is not its input, or twice: {_some(steps - numbers)}")
        if complete and numbers - steps:
            raise WrongOutputError(f"key {key} lost {_some(numbers - steps)}")
    if by_key:
        raise WrongOutputError(f"keys that are not in the input: {sorted(by_key)[:5]}")


def check_output(out: Path, records: int, keys: int, *, complete: bool = True) -> None:
    """`complete=False`: the job is not over; what is there must be right, but some may be missing."""
    check_numbers(out, records, complete=complete)
    check_sums(out, records, keys, complete=complete)
