"""`firesteel inspect`: what is in a checkpoint or savepoint, without reading any state."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

from firesteel.state import files
from tests.cli.conftest import Command
from tests.rest.conftest import Launch
from tests.rest.conftest import run as run
from tests.support.waiting import wait_until


@pytest.fixture
def savepoint(command: Command, run: Launch) -> str:
    job = run()
    wait_until(lambda: job.progress.records["totals"] > 10, "some state")
    out = command("stop", "-p", "s", "job")[1]
    return next(line for line in out.splitlines() if "Path: " in line).partition("Path: ")[2]


def test_operators_and_states_are_shown_with_sizes_and_entries(
    command: Command, savepoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("unpickled")

    monkeypatch.setattr(pickle, "loads", refuse)
    monkeypatch.setattr(files, "_PlainUnpickler", refuse)
    code, out, err = command("inspect", savepoint, "--key-groups", 4)
    assert (code, err) == (0, "")
    assert out.startswith(f"{savepoint}\njob 'job', id ")
    lines = [line.split() for line in out.splitlines()]
    assert ["totals", "Keyed", "Reduce", "2", "128", "yes"] in [line[:6] for line in lines]
    (state,) = [line for line in lines if line[:1] == ["totals"] and "value" in line]
    assert state[3] == "3"  # keys
    ranges = [line[2] for line in lines if line[:1] == ["totals"] and len(line) > 2 and "-" in line[2]]
    assert ranges == ["0-31", "32-63", "64-95", "96-127"]


def test_json_says_all_there_is_to_say(command: Command, savepoint: str) -> None:
    found = json.loads(command("inspect", f"{savepoint}/_metadata", "--json")[1])
    assert found["job_name"] == "job" and found["operators"]["totals"]["keyed"] and "numbers" in found["positions"]
    (state,) = [one for one in found["states"] if one["uid"] == "totals"]
    assert (state["kind"], state["entries"], state["exact"]) == ("value", 3, True)
    assert sum(one["entries"] for one in state["key_groups"].values()) == 3
    assert sum(one["size"] for one in state["key_groups"].values()) == state["size"] > 0


def test_keys_that_may_be_counted_twice_are_counted_at_most(command: Command, run: Launch, tmp_path: Path) -> None:
    job = run()
    newest = wait_until(lambda: len(list((tmp_path / "c").glob("*/inc-1/state/*"))) > 4 and job.job.history, "deltas")
    command("cancel", "job")
    path = newest.checkpoints.latest("COMPLETED").path
    code, out, _ = command("inspect", path)
    assert code == 0
    found = json.loads(command("inspect", path, "--json")[1])
    (state,) = [one for one in found["states"] if one["uid"] == "totals"]
    assert state["entries"] >= 3
    assert ("<= " in out) == (not state["exact"])


def test_what_is_none_is_one_line(command: Command, tmp_path: Path, savepoint: str) -> None:
    for path, words in {"nowhere": "there is no checkpoint", ".": "is no checkpoint"}.items():
        code, _, err = command("inspect", path)
        assert (code, err.count("\n")) == (2, 1) and words in err
    next(Path(savepoint).glob("slot-*.state")).unlink()
    code, _, err = command("inspect", savepoint)
    assert code == 2 and "cannot be read" in err
    assert command("inspect", savepoint, "--key-groups", 0)[0] == 2
