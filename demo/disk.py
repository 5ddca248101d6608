"""What the job has put on disk, read without any of its code: this is all that is left of it when it is killed."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demo.readings import LINE


@dataclass(frozen=True)
class Checkpoint:
    """A completed checkpoint."""

    incarnation: int
    number: int
    readings: int  # before its barrier
    promised: frozenset[str]  # files that it commits, or has committed
    confirmed: bool  # whether it has

    @property
    def name(self) -> str:
        return f"inc-{self.incarnation}/chk-{self.number}"


def checkpoints(job: Path) -> list[Checkpoint]:
    """All that are kept, oldest first."""
    found = []
    for path in job.glob("inc-*/chk-*"):
        with contextlib.suppress(FileNotFoundError):  # dropped while we look
            found.append(_checkpoint(path))
    return sorted(found, key=lambda checkpoint: (checkpoint.incarnation, checkpoint.number))


def _checkpoint(path: Path) -> Checkpoint:
    confirmed = (path / "_confirmed").exists()
    metadata = _document(path / "_metadata")
    position = metadata["positions"]["readings"]
    readings = sum(position["finished"].values()) // LINE
    # a line belongs to the range that its first byte is in
    readings += sum(-(-file["left"][0][0] // LINE) for file in position["reading"].values())
    promised = frozenset(Path(file["temporary"]).name for file in metadata["committables"].get("alerts", ()))
    return Checkpoint(metadata["incarnation"], metadata["checkpoint"], readings, promised, confirmed)


def restored_from(job: Path, incarnation: int) -> str | None:
    """The checkpoint an incarnation started from; None as long as it has not said."""
    try:
        return str(_document(job / f"inc-{incarnation}" / "_start")["restored_from"])
    except FileNotFoundError:
        return None


def _document(path: Path) -> Any:
    """JSON below a line that says what it is."""
    return json.loads(path.read_bytes().partition(b"\n")[2])


def committed_files(alerts: Path) -> list[Path]:
    """What a reader of the output sees."""
    return sorted(file for file in alerts.glob("*") if not file.name.startswith("."))


def uncommitted_files(alerts: Path) -> list[Path]:
    """What a reader of the output does not see: names that start with a dot."""
    return sorted(alerts.glob(".*"))


def committed_alerts(alerts: Path) -> Counter[str]:
    """Alert -> how often it is in the output."""
    return Counter(line for file in committed_files(alerts) for line in file.read_text().splitlines())
