"""The oracle itself: it accepts what is right and notices one lost, repeated or wrong record."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.oracle import ViolationError
from tests.faults import oracle

RECORDS, KEYS = 60, 7


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """What a run without faults might have written."""
    counts, totals = [0] * KEYS, [0] * KEYS
    numbers: list[str] = []
    sums: list[str] = []
    for number in [*range(30, RECORDS), *range(30)]:
        key = number % KEYS
        counts[key] += 1
        totals[key] += number
        numbers.append(f"{number}\n")
        sums.append(f"{key},{counts[key]},{totals[key]}\n")
    for name, lines in (("numbers", numbers), ("sums", sums)):
        (tmp_path / name).mkdir()
        for part in range(3):
            (tmp_path / name / f"part-{part}").write_text("".join(lines[part * 20 : part * 20 + 20]))
    return tmp_path


def test_the_right_output_is_accepted(out: Path) -> None:
    oracle.check_output(out, RECORDS, KEYS)


@pytest.mark.parametrize("sink", ["numbers", "sums"])
@pytest.mark.parametrize("line", [0, 7, 19])
def test_a_lost_record_is_noticed(out: Path, sink: str, line: int) -> None:
    part = out / sink / "part-1"
    lines = part.read_text().splitlines(keepends=True)
    part.write_text("".join(lines[:line] + lines[line + 1 :]))
    with pytest.raises(ViolationError):
        oracle.check_output(out, RECORDS, KEYS)


@pytest.mark.parametrize("sink", ["numbers", "sums"])
@pytest.mark.parametrize("complete", [True, False])
def test_a_repeated_record_is_noticed(out: Path, sink: str, complete: bool) -> None:
    (out / sink / "part-3").write_text((out / sink / "part-1").read_text().splitlines(keepends=True)[4])
    with pytest.raises(ViolationError):
        oracle.check_output(out, RECORDS, KEYS, complete=complete)


@pytest.mark.parametrize("sink", ["numbers", "sums"])
def test_a_lost_file_is_noticed(out: Path, sink: str) -> None:
    (out / sink / "part-2").unlink()
    with pytest.raises(ViolationError):
        oracle.check_output(out, RECORDS, KEYS)


def test_state_that_counted_a_record_twice_is_noticed(out: Path) -> None:
    """As after a restore of state that is ahead of the source: counts go on, but one number was added again."""
    part = out / "sums" / "part-2"
    lines = part.read_text().splitlines(keepends=True)
    key, count, total = map(int, lines[-1].split(","))
    part.write_text("".join(lines) + f"{key},{count + 1},{total + 29}\n")
    with pytest.raises(ViolationError):
        oracle.check_output(out, RECORDS, KEYS, complete=False)


def test_a_torn_file_is_noticed(out: Path) -> None:
    part = out / "sums" / "part-2"
    part.write_text(part.read_text()[:-1])
    with pytest.raises(ViolationError):
        oracle.check_output(out, RECORDS, KEYS, complete=False)
