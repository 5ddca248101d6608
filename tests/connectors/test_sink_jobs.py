"""Transactional sinks in whole jobs, in this process: real checkpoints, real rollbacks."""

from __future__ import annotations

import contextlib
import os
import sys
import types
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from firesteel.common import Encoder, RestartStrategies, Types
from firesteel.datastream import StreamExecutionEnvironment, TwoPhaseCommitSinkFunction
from firesteel.datastream.connectors import NumberSequenceSource
from firesteel.datastream.connectors.base import Sink
from firesteel.datastream.connectors.file_system import BucketAssigner, FileSink, ParquetBulkWriters
from firesteel.graph.guarantee import Level
from tests.connectors.killing import files_below
from tests.connectors.toy_store import LogSink, Store, StoreSink, UpsertingLogSink
from tests.support.local_engine import LocalRun
from tests.support.slicing import Sliced

COUNT = 60


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return environment()


def environment(parallelism: int = 2) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment().set_parallelism(parallelism).enable_checkpointing(1)
    return env.set_restart_strategy(RestartStrategies.fixed_delay_restart(20, 0))


def numbers(env: StreamExecutionEnvironment, *sizes: int) -> Any:
    return env.from_source(Sliced(NumberSequenceSource(0, COUNT - 1), *(sizes or (7,))), None, "numbers")


def file_sink(path: Path) -> Sink:
    return FileSink.for_row_format(str(path), Encoder.simple_string_encoder()).build()


def lines(path: Path) -> list[int]:
    visible = [file for file in path.iterdir() if not file.name.startswith(".")]
    return sorted(int(line) for file in visible for line in file.read_text().splitlines())


def kept_files(directory: Path) -> list[str]:
    return [path for path in files_below(str(directory)) if "/sinks/" in path]


class FailingStoreSink(StoreSink):
    """Fails in one method, the first times it is called."""

    def __init__(self, path: str, method: str, times: int = 1) -> None:
        super().__init__(path)
        self.method, self.times = method, times

    def _maybe_fail(self, method: str) -> None:
        if method == self.method and self.store.called(method) <= self.times:
            raise OSError(f"{method} is told to fail")

    def begin_transaction(self) -> Any:
        self._maybe_fail("begin_transaction")
        return super().begin_transaction()

    def invoke(self, transaction: Any, value: Any, context: Any) -> None:
        super().invoke(transaction, value, context)
        self._maybe_fail("invoke")

    def pre_commit(self, transaction: Any) -> None:
        super().pre_commit(transaction)
        self._maybe_fail("pre_commit")

    def commit(self, transaction: Any) -> None:
        self._maybe_fail("commit")
        super().commit(transaction)
        self._maybe_fail("commit, when it is done")

    def abort(self, transaction: Any) -> None:
        self._maybe_fail("abort")
        super().abort(transaction)


@pytest.mark.parametrize(
    "method", ["begin_transaction", "invoke", "pre_commit", "commit", "commit, when it is done", "abort"]
)
def test_a_two_phase_commit_sink_is_exactly_once_whichever_method_fails(
    env: StreamExecutionEnvironment, tmp_path: Path, method: str
) -> None:
    path = str(tmp_path / "store.db")
    numbers(env).add_sink(FailingStoreSink(path, method)).uid("store")
    LocalRun(env, str(tmp_path / "checkpoints"), fail_at=(3,)).run()
    store = Store(path)
    assert store.visible() == list(range(COUNT))
    assert (store.violations(), store.unresolved(), kept_files(tmp_path)) == ([], [], [])
    assert method in store.calls()


@pytest.mark.parametrize("second_fails", [True, False])
@pytest.mark.parametrize("method", ["invoke", "pre_commit", "commit"])
def test_when_one_of_two_sinks_fails_neither_shows_records_twice(
    env: StreamExecutionEnvironment, tmp_path: Path, method: str, second_fails: bool
) -> None:
    path, out = str(tmp_path / "store.db"), tmp_path / "out"
    failing = FailingStoreSink(path, method, times=3)
    stream = numbers(env)
    sinks: list[Any] = [file_sink(out), failing] if second_fails else [failing, file_sink(out)]
    for index, sink in enumerate(sinks):
        stream.add_sink(sink).uid(f"sink-{index}")
    run = LocalRun(env, str(tmp_path / "checkpoints")).run()
    assert len(run.engine.deployments) == (1 if method == "commit" else 4)
    assert Store(path).visible() == lines(out) == list(range(COUNT))
    assert Store(path).violations() == []


@settings(
    max_examples=10, deadline=None, phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip
@given(
    parallelism=st.integers(1, 3),
    failures=st.lists(st.integers(1, 12), max_size=4, unique=True),
    sizes=st.lists(st.integers(1, 30), min_size=1, max_size=4),
)
def test_all_transactional_sinks_of_a_job_agree_whenever_it_fails(
    tmp_path_factory: pytest.TempPathFactory, parallelism: int, failures: list[int], sizes: list[int]
) -> None:
    root = tmp_path_factory.mktemp("job")
    env = environment(parallelism)
    stream = numbers(env, *sizes)
    stream.add_sink(StoreSink(str(root / "store.db"))).uid("store")
    stream.add_sink(UpsertingLogSink(str(root / "log.db"))).uid("log")
    stream.sink_to(file_sink(root / "out")).uid("files")
    LocalRun(env, str(root / "checkpoints"), fail_at=failures).run()
    store = Store(str(root / "store.db"))
    assert store.visible() == Store(str(root / "log.db")).visible() == lines(root / "out") == list(range(COUNT))
    assert (store.violations(), store.unresolved(), kept_files(root)) == ([], [], [])


class HesitatingLogSink(LogSink):
    """Sends nothing the first time, and breaks off the second time."""

    def send_values(self, values: Iterable[Any], checkpoint_id: int, timestamp: int) -> bool:
        attempt = self.store.called("send_values")
        if attempt == 1:
            return False
        if attempt == 2:
            raise OSError("the line is dead")
        return super().send_values(values, checkpoint_id, timestamp)


def test_a_write_ahead_sink_sends_until_all_has_arrived(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    path = str(tmp_path / "store.db")
    numbers(env).add_sink(HesitatingLogSink(path)).uid("log")
    LocalRun(env, str(tmp_path / "checkpoints"), fail_at=(3,)).run()
    assert Store(path).visible() == list(range(COUNT))
    assert kept_files(tmp_path) == []


def test_without_checkpoints_transactions_are_committed_when_the_input_ends(tmp_path: Path) -> None:
    env = StreamExecutionEnvironment().set_parallelism(2)
    path = str(tmp_path / "store.db")
    numbers(env).add_sink(StoreSink(path))
    LocalRun(env, str(tmp_path / "checkpoints")).run()
    assert Store(path).visible() == list(range(COUNT))


class ByParity(BucketAssigner):
    def get_bucket_id(self, element: Any, context: BucketAssigner.Context) -> str:
        return f"parity={element[0] % 2}"


def test_parquet_in_buckets_is_exactly_once_when_epochs_fail(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    row_type = Types.ROW_NAMED(["n", "text"], [Types.LONG(), Types.STRING()])
    sink = FileSink.for_bulk_format(str(tmp_path / "out"), ParquetBulkWriters.for_row_type(row_type))
    rows = numbers(env).map(lambda n: (n, str(n)), output_type=row_type)
    rows.sink_to(sink.with_bucket_assigner(ByParity()).build())
    LocalRun(env, str(tmp_path / "checkpoints"), fail_at=(2, 4)).run()
    for parity in (0, 1):
        table = pyarrow.parquet.read_table(tmp_path / "out" / f"parity={parity}", partitioning=None)
        expected = Counter((n, str(n)) for n in range(parity, COUNT, 2))
        assert Counter((row["n"], row["text"]) for row in table.to_pylist()) == expected


def test_a_job_says_what_its_sinks_promise(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    stream = numbers(env)
    stream.add_sink(StoreSink("x"))
    stream.add_sink(LogSink("x"))
    assert env.guarantee().level is Level.EXACTLY_ONCE
    stream.add_sink(LogSink("x", notes=False)).name("log")
    assert env.guarantee().level is Level.AT_LEAST_ONCE
    assert "sink 'log' (LogSink" in env.guarantee().text


def test_the_sink_of_the_guide_is_exactly_once(
    env: StreamExecutionEnvironment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guide = (Path(__file__).parents[2] / "docs" / "connectors.md").read_text()
    code = guide[guide.index("class LinesSink") : guide.index("stream.add_sink(LinesSink")]
    module: Any = types.ModuleType("guide_of_sinks")
    monkeypatch.setitem(sys.modules, "guide_of_sinks", module)
    vars(module).update(contextlib=contextlib, os=os, TwoPhaseCommitSinkFunction=TwoPhaseCommitSinkFunction)
    exec(compile(code, "connectors.md", "exec"), vars(module))
    out = tmp_path / "out"
    out.mkdir()
    numbers(env).add_sink(module.LinesSink(str(out)))
    LocalRun(env, str(tmp_path / "checkpoints"), fail_at=(2, 4)).run()
    assert lines(out) == list(range(COUNT))
    assert not [path for path in out.iterdir() if path.name.startswith(".")]
    assert kept_files(tmp_path) == []
