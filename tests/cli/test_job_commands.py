"""`firesteel list`, `info`, `savepoint`, `cancel`, `stop`: commands for jobs that run in this process."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from firesteel.coordinator.completed import locate
from firesteel.rest.registry import find_jobs
from tests.cli.conftest import Command
from tests.rest.conftest import Launch, asker, program
from tests.rest.conftest import run as run
from tests.support.waiting import PATIENCE_S, wait_until


def listed(command: Command, *options: str) -> dict[str, str]:
    """Name and state of each job."""
    code, out, err = command("list", "--json", *options)
    assert (code, err) == (0, "")
    return {job["name"]: job["state"] for job in json.loads(out)}


# ---- list


def test_running_jobs_are_listed_and_ended_ones_when_asked_for(command: Command, run: Launch) -> None:
    assert command("list") == (0, "no running jobs; firesteel list -a shows those that have ended\n", "")
    assert command("list", "-a") == (0, "no jobs\n", "")
    one = run(name="one")
    run(program(end=100), name="short").get_job_execution_result().result(PATIENCE_S)
    wait_until(lambda: listed(command) == {"one": "RUNNING"}, "the job to run")
    assert listed(command, "-a") == {"one": "RUNNING", "short": "FINISHED"}
    assert listed(command, "-r") == {"one": "RUNNING"} and listed(command, "-s") == {}
    code, out, _ = command("list", "-a")
    header, first, second = out.splitlines()
    assert code == 0 and header.split() == ["JOB", "ID", "NAME", "STATUS", "STARTED", "DURATION", "PID", "ADDRESS"]
    assert first.split()[:3] == [str(one.get_job_id()), "one", "RUNNING"] and "127.0.0.1:" in first
    assert second.split()[1:3] == ["short", "FINISHED"] and "127.0.0.1:" not in second


def test_why_a_job_failed_is_listed_and_told_in_full(command: Command, run: Launch) -> None:
    job = run(program(end=1000, fail_at=500))
    with pytest.raises(Exception, match="not this one"):
        job.get_job_execution_result().result(PATIENCE_S)
    _, out, _ = command("list", "-a")
    assert "ValueError: not this one" in out
    code, out, _ = command("info", job.get_job_id())
    assert code == 0 and "status: FAILED" in out and "in check" in out


# ---- which job is meant


def test_a_job_is_meant_by_its_id_the_beginning_of_it_or_its_name(command: Command, run: Launch) -> None:
    one, other = run(name="one"), run(name="other")
    for text in (str(one.get_job_id()), str(one.get_job_id())[:6], "one"):
        assert command("info", text)[1].startswith(f"job 'one', id {one.get_job_id()}\n")
    code, _, err = command("cancel", "nobody")
    assert code == 2 and "there is no job 'nobody'. There are" in err
    assert f"{one.get_job_id()} one" in err and f"{other.get_job_id()} other" in err


def test_what_is_more_than_one_job_is_refused_with_all_of_them(command: Command, run: Launch, tmp_path: Path) -> None:
    run(name="same")
    env = program().enable_checkpointing(5)
    env.get_checkpoint_config().set_checkpoint_storage_dir(str(tmp_path / "elsewhere"))
    from firesteel.client import launch

    other = launch(env.plan(), env.settings("same"))
    try:
        code, _, err = command("cancel", "same")
        assert code == 2 and "'same' is more than one job" in err and str(other.get_job_id()) in err
        assert command("cancel", other.get_job_id())[0] == 0
        assert command("info", "same")[0] == 0  # the one that runs
    finally:
        other.cancel().result(PATIENCE_S)


def test_a_job_that_has_ended_cannot_be_told_anything(command: Command, run: Launch) -> None:
    job = run(program(end=100))
    job.get_job_execution_result().result(PATIENCE_S)
    for arguments in (["cancel"], ["cancel", "-s"], ["stop"], ["savepoint"]):
        code, _, err = command(*arguments, "job")
        assert code == 2 and f"job 'job' ({job.get_job_id()}) is not running: it is FINISHED" in err
    code, _, err = command("cancel")
    assert code == 2 and "which job?" in err


def test_a_job_without_a_server_can_be_seen_and_not_told(command: Command, run: Launch) -> None:
    run(enabled=False)
    assert "none" in command("list")[1]
    code, _, err = command("cancel", "job")
    assert code == 2 and "rest.enabled: false" in err and "process" in err
    assert command("info", "job")[0] == 0


# ---- savepoints and ends


def test_a_savepoint_is_written_and_deleted(command: Command, run: Launch, tmp_path: Path) -> None:
    job = run()
    code, out, _ = command("savepoint", "job", "savepoints")
    assert code == 0 and out.startswith(f"Triggering savepoint for job {job.get_job_id()}.\n")
    path = out.splitlines()[-1].removeprefix("Savepoint completed. Path: ")
    assert path.startswith(f"{tmp_path}/savepoints/savepoint-") and locate(path).metadata.savepoint
    code, out, _ = command("savepoint", "-d", Path(path).relative_to(tmp_path))
    assert code == 0 and out.endswith(" disposed.\n") and not Path(path).exists()
    code, _, err = command("savepoint", "-d", path)
    assert code == 2 and "there is no savepoint" in err
    assert job.job.status.name == "RUNNING"


def test_a_savepoint_that_fails_is_exit_code_1_and_the_job_goes_on(
    command: Command, run: Launch, tmp_path: Path
) -> None:
    job = run()
    (tmp_path / "file").write_text("")
    for arguments, words in [
        (["file"], "the directory cannot be made"),
        ([], "nobody said where the savepoint is to be"),
    ]:
        code, _, err = command("savepoint", "job", *arguments)
        assert code == 1 and words in err
    wait_until(lambda: job.job.status.name == "RUNNING", "the job to run")


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["cancel", "job"], "CANCELED", "Cancelled job"),
        (["cancel", "-s", "s", "job"], "CANCELED", "Savepoint completed"),
        (["stop", "-p", "s", "job"], "FINISHED", "Savepoint completed"),
        (["stop", "--drain", "-p", "s", "job"], "FINISHED", "Draining"),
    ],
)
def test_a_job_is_ended(command: Command, run: Launch, arguments: list[str], status: str, words: str) -> None:
    job = run()
    code, out, err = command(*arguments)
    assert code == 0, err
    assert words in out and out.endswith(f"job {job.get_job_id()}.\n")
    assert job.job.status.name == status
    assert listed(command, "-a") == {"job": status}


def test_the_jobs_own_savepoint_directory_is_taken_if_none_is_given(
    command: Command, run: Launch, tmp_path: Path
) -> None:
    env = program().set_default_savepoint_directory(str(tmp_path / "own"))
    run(env)
    code, out, _ = command("cancel", "-s", "job")  # -s does not take the job for a directory
    assert code == 0 and f"Path: {tmp_path}/own/savepoint-" in out


def test_a_job_can_be_started_again_as_soon_as_the_command_is_back(command: Command, run: Launch) -> None:
    for _ in range(3):
        job = run()
        assert command("cancel", job.get_job_id())[0] == 0


# ---- another machine


def test_a_job_behind_an_address_needs_its_token(
    command: Command, run: Launch, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    job = run(token="secret")
    address = f"127.0.0.1:{asker(job).port}"
    monkeypatch.setenv("FIRESTEEL_HOME", str(tmp_path / "of somebody else"))
    assert find_jobs() == []
    code, _, err = command("list", "-m", address)
    assert code == 2 and f"the job at {address} does not accept the token: set FIRESTEEL_TOKEN" in err
    monkeypatch.setenv("FIRESTEEL_TOKEN", "secret")
    assert list(listed(command, "-m", address)) == ["job"]
    path = command("savepoint", "-m", address, "job", "s")[1].partition("Path: ")[2].strip()
    assert command("savepoint", "-m", address, "-d", path)[0] == 0 and not Path(path).exists()
    code, _, err = command("savepoint", "-m", address, "-d", path)
    assert code == 1 and "there is no savepoint" in err
    assert command("info", "-m", address, "job")[0] == 0
    monkeypatch.delenv("FIRESTEEL_TOKEN")
    code, _, err = command("cancel", "-m", address, "-Drest.token=secret", "job")
    assert code == 0, err
    assert job.job.status.name == "CANCELED"


def test_an_address_where_nobody_answers_is_one_line(command: Command) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    code, _, err = command("list", "-m", f"127.0.0.1:{port}")
    assert (code, err) == (2, f"firesteel: no job answers on 127.0.0.1:{port}: Connection refused\n")
    code, _, err = command("list", "-m", "somewhere")
    assert code == 2 and "write host:port" in err


# ---- plans

PROGRAM = """
from firesteel.datastream import StreamExecutionEnvironment
import sys

env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection([1, 2]).key_by(lambda n: n).reduce(max).uid("most").print()
try:
    env.execute(sys.argv[1])
except Exception:
    print("caught")
print("after")
"""


def test_the_plan_of_a_program_is_shown_and_nothing_runs(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIRESTEEL_HOME", str(tmp_path / "home"))
    (tmp_path / "job.py").write_text(PROGRAM)
    code, out, err = command("info", "-p", 3, "job.py", "named")
    assert (code, err) == (0, "")
    nodes = json.loads(out)["nodes"]
    assert [node["pact"] for node in nodes] == ["Data Source", "Operator", "Data Sink"]
    assert [node["parallelism"] for node in nodes] == [1, 3, 3]
    code, out, _ = command("info", "--text", "job.py", "named")
    assert code == 0 and out.startswith("named: 3 operators in 2 levels") and "guarantee:" in out
    assert command("list", "-a")[1] == "no jobs\n"
    (tmp_path / "none.py").write_text("print('hello')\n")
    code, out, err = command("info", "none.py")
    assert (code, out) == (1, "hello\n") and "none.py runs no job" in err
