"""What a running job says about itself, in Flink's paths and fields."""

from __future__ import annotations

from pathlib import Path

import pytest

from firesteel import __version__
from firesteel.coordinator.completed import locate
from tests.rest.conftest import Asker, Launch, asker, program
from tests.support.waiting import PATIENCE_S, wait_until


def test_the_process_tells_what_runs_in_it(ask: Asker) -> None:
    overview = ask.get("/overview")
    assert overview["jobs-running"] == overview["taskmanagers"] == 1 and overview["slots-total"] == 2
    assert overview["jobs-finished"] == overview["jobs-failed"] == overview["jobs-cancelled"] == 0
    assert overview["flink-version"] == f"firesteel-{__version__}"
    config = ask.get("/config")
    assert config["refresh-interval"] > 0 and config["features"]["web-cancel"]
    assert ask.get("/jobs") == {"jobs": [{"id": ask.job, "status": "RUNNING"}]}
    (job,) = ask.get("/jobs/overview")["jobs"]
    assert (job["jid"], job["name"], job["state"], job["end-time"]) == (ask.job, "job", "RUNNING", -1)
    assert job["tasks"]["running"] == job["tasks"]["total"] == 8
    assert job["duration"] >= 0 and job["start-time"] <= job["last-modification"]
    assert ask.get("/v1/jobs") == ask.get("/jobs")


def test_a_job_is_its_graph_with_counts(ask: Asker) -> None:
    job = ask.get("/jobs/:id")
    assert (job["jid"], job["name"], job["state"], job["maxParallelism"]) == (ask.job, "job", "RUNNING", 128)
    assert job["timestamps"]["RUNNING"] >= job["timestamps"]["CREATED"] > 0 == job["timestamps"]["FAILED"]
    assert [vertex["id"] for vertex in job["vertices"]] == ["numbers", "check", "totals", "out"]
    numbers, check, totals, _ = job["vertices"]
    assert numbers["metrics"]["write-records"] == check["metrics"]["read-records"] > 0
    assert totals["metrics"]["read-records"] > 0 and totals["parallelism"] == 2 and totals["status"] == "RUNNING"
    assert job["status-counts"]["RUNNING"] == 4
    plan = ask.get("/jobs/:id/plan")["plan"]
    assert plan == job["plan"] and plan["type"] == "STREAMING"
    inputs = {node["id"]: [(each["id"], each["ship_strategy"]) for each in node["inputs"]] for node in plan["nodes"]}
    assert inputs == {
        "numbers": [], "check": [("numbers", "FORWARD")], "totals": [("check", "HASH")], "out": [("totals", "FORWARD")],
    }  # fmt: skip
    assert [node["description"] for node in plan["nodes"]] == ["numbers", "Map", "sums by remainder", "Sink"]
    assert ask.get("/jobs/:id/status") == {"status": "RUNNING"}
    assert ask.get("/jobs/:id/config")["execution-config"]["job-parallelism"] == 2
    assert ask.get("/jobs/:id/accumulators")["user-task-accumulators"] == []


def test_checkpoints_have_sizes_durations_and_paths(ask: Asker) -> None:
    found = ask.get("/jobs/:id/checkpoints")
    assert found["counts"]["completed"] >= 3 and found["counts"]["failed"] == found["counts"]["restored"] == 0
    latest = found["latest"]["completed"]
    assert latest["status"] == "COMPLETED" and latest["className"] == "completed" and not latest["is_savepoint"]
    assert latest["state_size"] >= latest["checkpointed_size"] > 0
    assert latest["end_to_end_duration"] == latest["latest_ack_timestamp"] - latest["trigger_timestamp"] >= 0
    assert Path(latest["external_path"]).name == f"chk-{latest['id']}"
    assert found["summary"]["state_size"]["max"] >= found["summary"]["state_size"]["p50"] > 0
    assert [one["id"] for one in found["history"]] == sorted((one["id"] for one in found["history"]), reverse=True)
    details = ask.get(f"/jobs/:id/checkpoints/details/{latest['id']}")
    assert details == latest
    assert ask("GET", "/jobs/:id/checkpoints/details/999999999")[0] == 404
    config = ask.get("/jobs/:id/checkpoints/config")
    assert (config["mode"], config["interval"], config["externalization"]["enabled"]) == ("exactly_once", 5, True)


def test_metrics_are_listed_and_read_by_name(ask: Asker) -> None:
    names = [each["id"] for each in ask.get("/jobs/:id/metrics")]
    assert {"uptime", "numRestarts", "lastCheckpointDuration", "totals.numRecordsIn"} <= set(names)
    values = {
        each["id"]: each["value"] for each in ask.get("/jobs/:id/metrics?get=numRestarts,numbers.numRecordsOut,none")
    }
    assert values.keys() == {"numRestarts", "numbers.numRecordsOut"}
    assert values["numRestarts"] == "0" and int(values["numbers.numRecordsOut"]) > 0


def test_failures_are_told_with_their_traceback_and_restores_with_their_checkpoint(run: Launch) -> None:
    from firesteel.common import RestartStrategies

    env = program(fail_at=2_000).set_restart_strategy(RestartStrategies.fixed_delay_restart(10**6, 1))
    job = run(env)
    wait_until(lambda: len(job.job.failures) >= 2 and job.job.history.checkpoints.last_restore, "failures")
    ask = asker(job)
    found = ask.get("/jobs/:id/exceptions?maxExceptions=1")["exceptionHistory"]
    (entry,) = found["entries"]
    assert found["truncated"] and entry["exceptionName"] == "firesteel.errors.UserCodeError"
    assert "ValueError: not this one" in entry["stacktrace"] and "in check" in entry["stacktrace"]
    assert entry["timestamp"] > 0
    restored = ask.get("/jobs/:id/checkpoints")["latest"]["restored"]
    assert restored["id"] > 0 and restored["external_path"]
    values = ask.get("/jobs/:id/metrics?get=numRestarts")
    assert int(values[0]["value"]) >= 1
    assert ask("GET", "/jobs/:id/exceptions?maxExceptions=many")[0] == 400


def test_two_jobs_of_a_process_share_a_server(run: Launch) -> None:
    one, other = run(name="one"), run(name="other")
    ask = asker(one)
    assert ask.port == asker(other).port
    assert {job["name"] for job in ask.get("/jobs/overview")["jobs"]} == {"one", "other"}
    assert ask("PATCH", "/jobs/:id?mode=cancel") == (202, {})
    wait_until(lambda: ask.get("/jobs/:id/status")["status"] == "CANCELED", "the end")
    assert asker(other).get("/overview")["jobs-running"] == 1
    assert ask("PATCH", "/jobs/:id?mode=cancel")[0] == 409
    with pytest.raises(Exception, match="cancelled"):
        one.get_job_execution_result().result(PATIENCE_S)


# ---- savepoints


def test_a_savepoint_is_asked_for_and_asked_about(ask: Asker, tmp_path: Path) -> None:
    status, answer = ask("POST", "/jobs/:id/savepoints", {"target-directory": str(tmp_path / "s"), "cancel-job": False})
    assert status == 202
    operation = ask.outcome("/jobs/:id/savepoints", answer["request-id"])
    assert locate(operation["location"]).metadata.savepoint
    assert ask.get("/jobs/:id/status") == {"status": "RUNNING"}
    latest = ask.get("/jobs/:id/checkpoints")["latest"]["savepoint"]
    assert latest["external_path"] == operation["location"] and latest["is_savepoint"] and latest["state_size"] > 0
    status, answer = ask("POST", "/savepoint-disposal", {"savepoint-path": operation["location"]})
    assert status == 202 and ask.outcome("/savepoint-disposal", answer["request-id"]) == {}
    assert not Path(operation["location"]).exists()


def test_a_savepoint_that_fails_says_why_and_the_job_goes_on(ask: Asker, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for body, why in [({"target-directory": str(tmp_path / "file")}, "file"), ({}, "savepoint-dir")]:
        _, answer = ask("POST", "/jobs/:id/savepoints", body)
        cause = ask.outcome("/jobs/:id/savepoints", answer["request-id"])["failure-cause"]
        assert why in cause["stack-trace"] and cause["class"].startswith("firesteel.errors.")
    assert ask.get("/jobs/:id/status") == {"status": "RUNNING"}
    _, answer = ask("POST", "/savepoint-disposal", {"savepoint-path": str(tmp_path / "c")})
    assert "is no savepoint" in ask.outcome("/savepoint-disposal", answer["request-id"])["failure-cause"]["stack-trace"]
    assert ask("POST", "/savepoint-disposal", {})[0] == 400


def test_a_repeated_request_is_the_same_savepoint(ask: Asker, tmp_path: Path) -> None:
    body = {"target-directory": str(tmp_path / "s"), "triggerId": "0123456789abcdef0123456789abcdef"}
    assert ask("POST", "/jobs/:id/savepoints", body) == ask("POST", "/jobs/:id/savepoints", body)
    ask.outcome("/jobs/:id/savepoints", body["triggerId"])
    assert len(list((tmp_path / "s").iterdir())) == 1


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/jobs/:id/stop", {"drain": False}, "FINISHED"),
        ("/jobs/:id/stop", {"drain": True}, "FINISHED"),
        ("/jobs/:id/savepoints", {"cancel-job": True}, "CANCELED"),
    ],
)
def test_who_ends_a_job_with_a_savepoint_hears_where_it_is(
    run: Launch, tmp_path: Path, path: str, body: dict[str, bool], status: str
) -> None:
    job = run()
    ask = asker(job)
    where = "targetDirectory" if path.endswith("stop") else "target-directory"
    _, answer = ask("POST", path, {**body, where: str(tmp_path / "s")})
    operation = ask.outcome("/jobs/:id/savepoints", answer["request-id"])
    assert locate(operation["location"]).metadata.savepoint
    assert job.job.status.name == status
