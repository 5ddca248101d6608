"""`firesteel checkpoints`: what is there, and what of it is good."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from firesteel.coordinator.lineage import Incarnation, JobDirectory, confirm
from firesteel.coordinator.metadata import CheckpointMetadata
from firesteel.state.files import Delta, StateFileWriter
from tests.cli.conftest import Command


def checkpoint(incarnation: Incarnation, number: int, *, final: bool = False, confirmed: bool = True) -> Path:
    writer = StateFileWriter(0, number)
    writer.add(Delta("totals", "sum", "value", 0, ["a"], [number], []))
    data, checksum = writer.finish()
    name = f"inc-{incarnation.number}/state/slot-0-chk-{number}.state"
    Path(incarnation.directory.path, name).write_bytes(data)
    incarnation.begin(number)
    completed = incarnation.complete(
        CheckpointMetadata(
            job_id=incarnation.directory.job_id,
            job_name=incarnation.directory.job_name,
            checkpoint=number,
            incarnation=incarnation.number,
            created_ms=1_700_000_000_000 + number * 1000,
            final=final,
            operators={},
            positions={},
            state=[[{"file": name, "size": len(data), "checksum": checksum}]],
            committables={},
            statistics={"duration_ms": 120},
        )
    )
    if confirmed:
        confirm(completed)
    return Path(completed.path)


@pytest.fixture
def two_jobs(tmp_path: Path) -> dict[str, list[Path]]:
    alerts = JobDirectory.open(str(tmp_path / "c"), "alerts")
    first = alerts.claim()
    paths = [checkpoint(first, 9), checkpoint(first, 10, confirmed=False)]
    second = alerts.claim(str(paths[0]))
    paths += [Path(second.path, "chk-11"), checkpoint(second, 12, final=True)]
    counts = JobDirectory.open(str(tmp_path / "c"), "counts").claim()
    return {"alerts": paths, "counts": [checkpoint(counts, 1)]}


def test_all_checkpoints_of_all_jobs_are_listed_oldest_first(
    command: Command, two_jobs: dict[str, list[Path]], tmp_path: Path
) -> None:
    code, out, _ = command("checkpoints", "c")
    assert code == 0
    alerts, counts = out.split("\n\n")
    title, header, *rows = alerts.splitlines()
    assert title.startswith("job 'alerts', id ")
    assert header.split() == ["ID", "TIME", "KIND", "SIZE", "DURATION", "CONFIRMED", "RESTORABLE", "PATH"]
    assert [row.split()[0] for row in rows] == ["9", "10", "11", "12"]
    assert [row.split()[-1] for row in rows] == [str(path) for path in two_jobs["alerts"]]
    assert [row.split()[3] for row in rows] == ["checkpoint", "checkpoint", "imported", "final"]
    assert " 0.12 s  yes        yes " in rows[0] and " no         yes " in rows[1]
    assert counts.splitlines()[0].startswith("job 'counts'")


def test_the_directory_may_be_a_jobs_an_incarnations_or_a_checkpoints(
    command: Command, two_jobs: dict[str, list[Path]], tmp_path: Path
) -> None:
    def numbers(path: Path) -> list[int]:
        return [one["checkpoint"] for one in json.loads(command("checkpoints", path, "--json")[1])]

    assert numbers(tmp_path) == [9, 10, 11, 12, 1]
    assert numbers(tmp_path / "c" / "alerts") == [9, 10, 11, 12]
    assert numbers(tmp_path / "c" / "alerts" / "inc-1") == [9, 10]
    assert numbers(two_jobs["alerts"][1]) == [10]


def test_json_says_all_there_is_to_say(command: Command, two_jobs: dict[str, list[Path]]) -> None:
    _, out, _ = command("checkpoints", "c/counts", "--json")
    (one,) = json.loads(out)
    path = two_jobs["counts"][0]
    assert one.pop("size") == (path.parent / "state" / "slot-0-chk-1.state").stat().st_size
    assert len(one.pop("job_id")) == 32
    assert one == {
        "job_name": "counts", "incarnation": 1, "checkpoint": 1, "path": str(path), "created_ms": 1_700_000_001_000,
        "kind": "checkpoint", "duration_ms": 120, "confirmed": True, "problem": None, "restorable": True,
    }  # fmt: skip


def test_damage_is_found_by_size_at_once_and_by_content_with_verify(
    command: Command, two_jobs: dict[str, list[Path]]
) -> None:
    nine, ten, _, twelve = two_jobs["alerts"]
    (ten.parent / "state" / "slot-0-chk-10.state").unlink()
    (twelve / "_metadata").write_bytes(b"nonsense")
    file = two_jobs["counts"][0].parent / "state" / "slot-0-chk-1.state"
    data = bytearray(file.read_bytes())
    data[20] ^= 1
    file.write_bytes(data)
    found = json.loads(command("checkpoints", "c", "--json")[1])
    assert [one["restorable"] for one in found] == [True, False, True, False, True]
    assert "No such file" in found[1]["problem"] and "damaged" in found[3]["problem"]
    code, out, _ = command("checkpoints", "c", "--verify", "--json")
    assert code == 1
    assert [one["restorable"] for one in json.loads(out)] == [True, False, True, False, False]
    code, out, _ = command("checkpoints", "c", "--verify")
    assert code == 1 and "checkpoint 10: state file" in out
    assert command("checkpoints", nine, "--verify")[0] == 0


def test_a_directory_without_checkpoints_is_no_mistake_and_none_is(command: Command, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert command("checkpoints", "empty")[:2] == (0, "no checkpoints in empty\n")
    assert json.loads(command("checkpoints", "empty", "--json")[1]) == []
    (tmp_path / "file").write_text("")
    for path, reason in {"nowhere": "No such file or directory", "file": "Not a directory"}.items():
        code, out, err = command("checkpoints", path)
        assert (code, out) == (2, "")
        assert err == f"firesteel: {tmp_path / path} cannot be read: {reason}\n"
