"""Jobs in this process, with everything but Spark, and somebody who asks their servers."""

from __future__ import annotations

import http.client
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import firesteel.client
from firesteel.client import RunningJob, launch
from firesteel.common import RestartStrategies
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.datastream.functions import SinkFunction
from firesteel.rest.registry import FoundJob, find_jobs
from tests.cli.conftest import EngineForSpark
from tests.support.slicing import Sliced
from tests.support.waiting import PATIENCE_S, wait_until

Launch = Callable[..., RunningJob]


class Nowhere(SinkFunction):
    def invoke(self, value: Any, context: Any = None) -> None: ...


def program(end: int = 10**12, fail_at: int | None = None) -> StreamExecutionEnvironment:
    """Numbers, summed by key."""

    def check(n: int) -> int:
        if n == fail_at:
            raise ValueError("not this one")
        return n

    env = StreamExecutionEnvironment().set_parallelism(2)
    env.set_restart_strategy(RestartStrategies.no_restart())
    numbers = env.from_source(Sliced(NumberSequenceSource(1, end), 50), source_name="numbers").uid("numbers")
    totals = numbers.map(check).uid("check").key_by(lambda n: n % 3).reduce(lambda a, b: a + b).uid("totals")
    totals.set_description("sums by remainder").add_sink(Nowhere()).uid("out")
    return env


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Launch]:
    """Starts a job; all are cancelled at the end."""
    monkeypatch.setattr(firesteel.client, "SparkEngine", EngineForSpark)
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    monkeypatch.setenv("FIRESTEEL_HOME", str(tmp_path / "home"))
    jobs: list[RunningJob] = []

    def start(env: StreamExecutionEnvironment | None = None, name: str = "job", **rest: Any) -> RunningJob:
        env = env or program()
        env.enable_checkpointing(5).get_checkpoint_config().set_checkpoint_storage_dir(str(tmp_path / "c"))
        env.rest = replace(env.rest, **rest)
        jobs.append(launch(env.plan(), env.settings(name)))
        return jobs[-1]

    yield start
    for job in jobs:
        job.cancel().result(PATIENCE_S)


class Asker:
    """Asks a job's server as any program would."""

    def __init__(self, found: FoundJob) -> None:
        assert found.entry.address is not None
        self.job, self.token = found.entry.job_id, found.token()
        self.host, _, port = found.entry.address.rpartition(":")
        self.port = int(port)

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=PATIENCE_S)
        given = {"Authorization": f"Bearer {self.token}", **headers}
        data = json.dumps(body) if isinstance(body, dict) else body
        connection.request(method, path.replace(":id", self.job), data, given)
        response = connection.getresponse()
        assert response.headers["Content-Type"] == "application/json; charset=UTF-8"
        document = json.loads(response.read())
        connection.close()
        return response.status, document

    def get(self, path: str) -> Any:
        status, document = self("GET", path)
        assert status == 200, document
        return document

    def outcome(self, path: str, request: str) -> Any:
        def ask() -> Any:
            answer = self.get(f"{path}/{request}")
            return answer if answer["status"]["id"] == "COMPLETED" else None

        return wait_until(ask, request)["operation"]


def asker(job: RunningJob) -> Asker:
    return Asker(next(one for one in find_jobs() if one.entry.job_id == str(job.get_job_id()) and one.alive))


@pytest.fixture
def ask(run: Launch) -> Asker:
    """For a job that runs and has completed checkpoints."""
    job = run()
    wait_until(lambda: job.job.history.checkpoints.counts()["completed"] >= 3, "checkpoints")
    return asker(job)
