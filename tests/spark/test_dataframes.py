"""DataFrames into jobs and out of them, on a real Spark."""

from __future__ import annotations

import datetime
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from firesteel.common import Duration, RestartStrategies, Row
from firesteel.connectors.number_seq import NumberSequenceSource
from firesteel.datastream import MapFunction, StreamExecutionEnvironment
from firesteel.datastream.connectors.file_system import FileSource, StreamFormat
from firesteel.engine import session
from firesteel.errors import ConfigurationError, GraphError, RestoreError, TypeMismatchError, UserCodeError
from tests.support.slicing import Sliced


@pytest.fixture
def spark() -> Iterator[SparkSession]:
    """The embedded session that the jobs of these tests run in."""
    handle = session.acquire(2, {})
    yield handle.spark
    handle.release()


@pytest.fixture(autouse=True, scope="module")
def spark_is_free_again() -> Iterator[None]:
    """DataFrames hold on to their Spark for as long as the process lives; tests after these may need another."""
    yield
    session.stop_embedded()


@pytest.fixture(autouse=True)
def nothing_left_behind(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    place = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    yield
    assert list(place.iterdir()) == []


def records(stream: Any, name: str | None = None) -> list[Any]:
    with stream.execute_and_collect(name) as results:
        return list(results)


def files_below(path: Path) -> set[str]:
    return {str(file.relative_to(path)) for file in path.rglob("*") if file.is_file()}


class FailsOnce(MapFunction):
    """Raises on the first record `at` it sees, if the marker is not there yet."""

    def __init__(self, at: int, marker: Path) -> None:
        self.at, self.marker = at, str(marker)

    def map(self, value: Any) -> Any:
        number = value.n if isinstance(value, Row) else value
        if number == self.at and not os.path.exists(self.marker):
            with open(self.marker, "w"):
                pass
            raise RuntimeError("told to fail")
        return value


# ---- in


def test_whatever_spark_reads_is_a_source(env: StreamExecutionEnvironment, spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("city,n\nOslo,3\nRoma,4\n")
    (tmp_path / "a.json").write_text('{"city": "Oslo", "n": 3}\n{"city": "Roma", "n": 4}\n')
    expected = [Row(city="Oslo", n=3), Row(city="Roma", n=4)]
    frame = spark.read.csv(str(tmp_path / "a.csv"), header=True, schema="city STRING, n INT")
    frame.write.parquet(str(tmp_path / "a.parquet"))
    frame.write.saveAsTable("cities")
    try:
        csv = env.from_dataframe(frame)
        lines = env.from_dataframe(lambda spark: spark.read.json(str(tmp_path / "a.json")))
        parquet = env.from_dataframe(lambda spark: spark.read.parquet(str(tmp_path / "a.parquet")))
        table = env.from_dataframe(lambda spark: spark.table("cities"))
        query = env.from_dataframe(lambda spark: spark.sql("SELECT city, n FROM cities WHERE n > 3"))
        both = csv.union(lines, parquet, table).map(lambda row: row.city)
        assert sorted(records(both)) == ["Oslo"] * 4 + ["Roma"] * 4
        assert sorted(records(lines), key=str) == expected
        assert records(query) == expected[1:]
    finally:
        spark.sql("DROP TABLE cities")


def test_rows_are_those_of_collect(env: StreamExecutionEnvironment, spark: SparkSession) -> None:
    query = """
        SELECT 1Y AS tiny, 2S AS small, 3 AS i, 4L AS l, CAST(1.5 AS FLOAT) AS f, 2.5D AS d, 12.340BD AS dec,
               'ü' AS s, true AS b, X'00FF' AS bin, DATE'2024-02-29' AS day, TIMESTAMP'2024-03-31 12:30:15.123456' AS ts,
               TIMESTAMP'1582-01-01 00:00:00' AS old, TIMESTAMP_NTZ'3000-01-01 00:00:00' AS ntz,
               named_struct('x', 1, 'y', named_struct('when', TIMESTAMP'2024-01-01 00:00:00')) AS st,
               array(named_struct('k', 'a'), NULL) AS arr, map('a', named_struct('v', 1), 'b', NULL) AS m,
               array(1, NULL) AS ints,
               CAST(NULL AS MAP<STRING, INT>) AS nomap, CAST(NULL AS STRUCT<x: INT>) AS nost, NULL AS nothing, 1 AS `odd. name`
        """
    frame = spark.sql(query)
    (found,) = records(env.from_dataframe(frame))

    def plain(value: Any) -> Any:
        if isinstance(value, (Row,)) or hasattr(value, "asDict"):
            fields = value.as_dict() if isinstance(value, Row) else value.asDict()
            return {name: plain(item) for name, item in fields.items()}
        if isinstance(value, list):
            return [plain(item) for item in value]
        return {key: plain(item) for key, item in value.items()} if isinstance(value, dict) else value

    assert plain(found) == plain(frame.collect()[0])
    assert isinstance(found.st, Row) and isinstance(found.st.y, Row) and isinstance(found.arr[0], Row)
    assert found.dec == Decimal("12.340") and found.bin == b"\x00\xff"
    assert found.ts == datetime.datetime(2024, 3, 31, 12, 30, 15, 123456)
    assert spark.conf.get("spark.sql.parquet.outputTimestampType") == "INT96"  # as it was


def test_a_dataframe_of_another_session_of_the_same_spark_is_read(
    env: StreamExecutionEnvironment, spark: SparkSession
) -> None:
    other = spark.newSession()
    other.sql("SELECT 7 AS n").createOrReplaceTempView("only_there")
    assert records(env.from_dataframe(other.table("only_there"))) == [Row(n=7)]


def test_a_job_that_is_started_again_reads_the_snapshot_and_repeats_nothing(
    env: StreamExecutionEnvironment, spark: SparkSession, tmp_path: Path
) -> None:
    calls: list[int] = []

    def numbers(spark: SparkSession) -> DataFrame:
        calls.append(1)
        return spark.range(0, 20_000, 1, 4).selectExpr("id AS n")

    def program(fails: bool) -> Any:
        env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
        env.enable_checkpointing(10).get_checkpoint_config().set_checkpoint_storage_dir(str(tmp_path / "chk"))
        env.set_restart_strategy(RestartStrategies.no_restart())
        stream = env.from_dataframe(numbers).uid("numbers")
        once = tmp_path / "failed"
        return stream.map(FailsOnce(19_999, once if fails else tmp_path)).map(lambda row: row.n)

    with pytest.raises(UserCodeError, match="told to fail"):
        program(fails=True).to_dataframe("n BIGINT", "again")
    before = files_below(tmp_path / "chk" / "again" / "inputs")
    frame = program(fails=True).to_dataframe("n BIGINT", "again")
    assert sorted(row.n for row in frame.collect()) == list(range(20_000))
    assert calls == [1]
    assert files_below(tmp_path / "chk" / "again" / "inputs") == before
    again = program(fails=False).to_dataframe("n BIGINT", "again")  # the job had finished: it only adds nothing
    assert again.count() == 20_000


def test_a_snapshot_of_other_columns_is_refused(
    env: StreamExecutionEnvironment, spark: SparkSession, tmp_path: Path
) -> None:
    for column, problem in (("a", None), ("b", "columns a bigint when .* has b bigint now")):
        env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
        env.enable_checkpointing(1000).get_checkpoint_config().set_checkpoint_storage_dir(str(tmp_path))
        stream = env.from_dataframe(spark.range(3).toDF(column)).uid("frame")
        if problem is None:
            assert len(records(stream, "columns")) == 3
        else:
            with pytest.raises(RestoreError, match=problem):
                records(stream, "columns")


def test_frames_that_cannot_be_read_are_refused_with_the_reason(
    env: StreamExecutionEnvironment, spark: SparkSession
) -> None:
    with pytest.raises(GraphError, match="streaming DataFrame"):
        env.from_dataframe(spark.readStream.format("rate").load())
    with pytest.raises(GraphError, match="takes a DataFrame, or a function"):
        env.from_dataframe([1, 2])
    with pytest.raises(ConfigurationError, match=r"column st.v is of the type interval day"):
        records(env.from_dataframe(spark.sql("SELECT named_struct('v', INTERVAL '1' DAY) AS st")))
    env.graph.clear()
    with pytest.raises(ConfigurationError, match="must return a DataFrame"):
        records(env.from_dataframe(lambda spark: 3))
    env.graph.clear()
    with pytest.raises(ConfigurationError, match="COLUMN_ALREADY_EXISTS"):
        records(env.from_dataframe(spark.sql("SELECT 1 AS a, 2 AS a")))
    with pytest.raises(GraphError, match="Spark Connect"):
        env.from_dataframe(object.__new__(RemoteFrame))


class RemoteFrame(DataFrame):
    """Has no object in a JVM of this process, as a DataFrame of Spark Connect."""


# ---- out


@dataclass(frozen=True)
class Reading:
    sensor: str
    value: float


def test_records_of_every_kind_become_rows(env: StreamExecutionEnvironment) -> None:
    made = [("a", 1.0), ["b", 2], Row("c", 3.0), Row(value=4.0, sensor="d"), {"sensor": "e"}, Reading("f", 6.0)]
    frame = env.from_collection(made).to_dataframe("sensor STRING, value DOUBLE")
    assert sorted(map(tuple, frame.collect())) == [
        ("a", 1.0), ("b", 2.0), ("c", 3.0), ("d", 4.0), ("e", None), ("f", 6.0)
    ]  # fmt: skip
    assert frame.groupBy().sum("value").collect()[0][0] == 16.0
    assert not env.graph.sinks()


def test_values_of_every_type_come_out_as_they_went_in(env: StreamExecutionEnvironment) -> None:
    schema = """
        b BOOLEAN, t TINYINT, s SMALLINT, i INT, l BIGINT, f FLOAT, d DOUBLE, dec DECIMAL(10, 3), str STRING,
        bin BINARY, day DATE, ts TIMESTAMP, ntz TIMESTAMP_NTZ, arr ARRAY<INT>,
        m MAP<STRING, STRUCT<x: INT, at: TIMESTAMP>>, st STRUCT<p: STRING, q: ARRAY<DATE>>
        """
    at = datetime.datetime(2024, 3, 31, 12, 30, 15, 123456)
    day = datetime.date(1582, 1, 1)
    record = (True, 1, 2, 3, 4, 1.5, 2.5, Decimal("1.234"), "ü", b"\x00", day, at, at, [1, None], {"k": (1, at), "n": None},
              {"p": "x", "q": [day]})  # fmt: skip
    nothing = (None,) * 16
    frame = env.from_collection([record, nothing]).to_dataframe(schema)
    full, empty = sorted(frame.collect(), key=lambda row: row.b is None)
    assert tuple(empty) == nothing
    assert tuple(full)[:14] == record[:14]
    assert full.m["k"].at == at and full.m["n"] is None and tuple(full.st) == ("x", [day])


def test_a_result_without_records_has_its_columns(env: StreamExecutionEnvironment) -> None:
    frame = env.from_sequence(1, 5).filter(lambda n: False).to_dataframe("n BIGINT")
    assert frame.columns == ["n"] and frame.count() == 0


def test_a_value_that_does_not_fit_names_the_operator_the_record_and_the_column(
    env: StreamExecutionEnvironment,
) -> None:
    stream = env.from_collection([(1, {"f": "x"}), (2, {"f": 3})])
    problem = r"(?s)record \(2, {'f': 3}\) does not fit .*column st.f is string, .*'To DataFrame'.*on the record \(2"
    with pytest.raises(TypeMismatchError, match=problem):
        stream.to_dataframe("id BIGINT NOT NULL, st STRUCT<f: STRING>")


def test_what_cannot_become_a_dataframe_is_refused_before_anything_runs(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    endless = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(tmp_path))
    stream = env.from_source(endless.monitor_continuously(Duration.of_seconds(1)).build(), None, "endless")
    with pytest.raises(GraphError, match=r"'endless' .* never ends. Use foreach_dataframe"):
        stream.to_dataframe("line STRING")
    with pytest.raises(GraphError, match="DDL string"):
        stream.to_dataframe(["line"])
    env.graph.clear()
    with pytest.raises(ConfigurationError, match="not a schema that Spark understands"):
        env.from_sequence(1, 2).to_dataframe("n NUMBERR")


# ---- per checkpoint


def sliced(env: StreamExecutionEnvironment, tmp_path: Path, last: int = 100) -> Any:
    directory = tmp_path / "chk [a] {b,c} 100% #1"  # Spark takes patterns for paths, and must not here
    env.enable_checkpointing(1).get_checkpoint_config().set_checkpoint_storage_dir(str(directory))
    return env.from_source(Sliced(NumberSequenceSource(1, last), 10), None, "numbers").uid("numbers")


def test_foreach_dataframe_sees_every_record_once_and_leaves_no_files(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    calls: list[tuple[int, list[int]]] = []

    def save(frame: DataFrame, checkpoint: int) -> None:
        frame.createOrReplaceTempView("numbers")
        rows = frame.sparkSession.sql("SELECT n FROM numbers ORDER BY n").collect()
        calls.append((checkpoint, [row.n for row in rows]))

    sliced(env, tmp_path).map(FailsOnce(95, tmp_path / "failed")).foreach_dataframe(save, "n BIGINT")
    env.execute("foreach")
    assert (tmp_path / "failed").exists()
    ids = [checkpoint for checkpoint, _ in calls]
    assert ids == sorted(set(ids)) and len(ids) > 1
    assert sorted(n for _, part in calls for n in part) == list(range(1, 101))
    (directory,) = tmp_path.glob("*/foreach/epochs")
    assert files_below(directory) == set()


def test_without_checkpoints_foreach_dataframe_is_called_once_at_the_end(env: StreamExecutionEnvironment) -> None:
    calls: list[tuple[int, int]] = []
    env.from_sequence(1, 1000).foreach_dataframe(
        lambda frame, number: calls.append((number, frame.count())), "n BIGINT"
    )
    env.execute("once")
    assert calls == [(1, 1000)]


def test_a_function_that_fails_is_called_again_with_the_same_number_and_records(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    calls: list[tuple[int, tuple[int, ...]]] = []

    def save(frame: DataFrame, checkpoint: int) -> None:
        calls.append((checkpoint, tuple(sorted(row.n for row in frame.collect()))))
        if len(calls) == 2:
            raise RuntimeError("the database is down")

    sliced(env, tmp_path).foreach_dataframe(save, "n BIGINT").uid("save")
    env.execute("again")
    assert calls[1] == calls[2]
    assert sorted(n for _, part in dict(calls).items() for n in part) == list(range(1, 101))


def test_a_function_that_keeps_failing_fails_the_job_and_a_mended_one_goes_on(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    seen: dict[int, list[int]] = {}
    failed: list[int] = []

    def broken(frame: DataFrame, checkpoint: int) -> None:
        failed.append(checkpoint)
        raise RuntimeError("no such table")

    sliced(env, tmp_path).foreach_dataframe(broken, "n BIGINT").uid("save")
    with pytest.raises(UserCodeError, match=r"(?s)no such table.*in foreach_dataframe \(uid save\) with checkpoint 1"):
        env.execute("broken")
    assert failed == [1, 1, 1, 1]  # three restarts
    env.graph.clear()

    def mended(frame: DataFrame, checkpoint: int) -> None:
        seen[checkpoint] = [row.n for row in frame.collect()]

    sliced(env, tmp_path).foreach_dataframe(mended, "n BIGINT").uid("save")
    env.execute("broken")
    assert 1 in seen
    assert sorted(n for part in seen.values() for n in part) == list(range(1, 101))


CRASHING = """
import json, sys
from firesteel.connectors.number_seq import NumberSequenceSource
from firesteel.datastream import StreamExecutionEnvironment
from tests.support.slicing import Sliced

def save(frame, checkpoint):
    with open(sys.argv[2], "a") as log:
        log.write(json.dumps([checkpoint, sorted(row.n for row in frame.collect())]) + "\\n")

env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2).enable_checkpointing(1)
env.get_checkpoint_config().set_checkpoint_storage_dir(sys.argv[1])
numbers = env.from_source(Sliced(NumberSequenceSource(1, 60), 20), None, "numbers").uid("numbers")
numbers.foreach_dataframe(save, "n BIGINT").uid("save")
env.execute("crashing")
"""


def test_a_driver_that_dies_between_the_call_and_its_confirmation_calls_again_with_the_same_number_and_records(
    tmp_path: Path,
) -> None:
    (tmp_path / "job.py").write_text(CRASHING)
    command = [sys.executable, str(tmp_path / "job.py"), str(tmp_path / "chk"), str(tmp_path / "log")]
    environ = {**os.environ, "PYTHONPATH": os.getcwd()}
    first = subprocess.run(command, env={**environ, "FIRESTEEL_CRASH": "before-confirm"}, timeout=120)
    assert first.returncode == -signal.SIGKILL
    before = (tmp_path / "log").read_text().splitlines()
    subprocess.run(command, env=environ, timeout=120, check=True)
    after = (tmp_path / "log").read_text().splitlines()[len(before) :]
    assert after[0] == before[-1]
    calls = dict(json.loads(line) for line in before + after)
    assert sorted(n for part in calls.values() for n in part) == list(range(1, 61))
