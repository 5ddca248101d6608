"""Savepoints made of DataFrames, and jobs that go on from them."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from firesteel import state
from firesteel.common import Configuration, Types
from firesteel.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from firesteel.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from firesteel.engine import session
from firesteel.errors import ConfigurationError, InvalidKeyError, StateError
from firesteel.graph.nodes import Collect
from firesteel.state import SavepointWriter
from firesteel.state.files import StateFile
from tests.golden.everything import rest_of
from tests.golden.test_golden_savepoints import HERE, KINDS, VERSIONS
from tests.spark.state_jobs import KEYS, NAMES, Account, Snapshot, program, snapshots
from tests.support.local_engine import LocalRun
from tests.support.s3 import S3Server

PLACES = [
    *(("everything", name) for name in (*NAMES, "/event-timers") if name != "mixed"),
    ("windows", "/window-contents"),
    ("sessions", "/window-contents"),
    ("sessions", "/merging-windows"),
    ("sessions", "/event-timers"),
    ("remembering", "buffered"),
    ("remembering", "shared"),
    ("applying", "rules"),
]


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    handle = session.acquire(2, {})
    yield handle.spark
    handle.release()
    session.stop_embedded()


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """A checkpoint after 4 rounds."""
    return snapshots(tmp_path_factory.mktemp("job"), (4,))[0]


class Tally(KeyedProcessFunction):
    """Counts and remembers what it has seen of each key."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self.names = runtime_context.get_list_state(ListStateDescriptor("names", Types.STRING()))
        self.prices = runtime_context.get_map_state(MapStateDescriptor("prices", Types.STRING(), Types.DOUBLE()))

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value, count, list(self.names.get()), dict(self.prices.items())


def starting_from(path: str, parallelism: int = 2) -> StreamExecutionEnvironment:
    configuration = Configuration.from_dict({"execution.state-recovery.path": path})
    return StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(parallelism)


def goes_on(path: str, directory: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What the program prints that goes on from there, to its end."""
    env = program()
    env.configure(Configuration.from_dict({"execution.state-recovery.path": path}))
    env.enable_checkpointing(10)
    capsys.readouterr()
    run = LocalRun(env, str(directory), "job").run()
    return sorted([*capsys.readouterr().out.splitlines(), *"".join(run.output).splitlines()])


def test_a_job_continues_from_what_dataframes_gave_it(spark: SparkSession, tmp_path: Path) -> None:
    """On Spark: every key's state is found by the subtask that owns it."""
    counts = spark.range(100).selectExpr("id AS key", "id * 10 AS value")
    names = spark.createDataFrame(
        [(7, 0, "a"), (7, 1, "b"), (8, 5, "later"), (8, 2, "first")], "key INT, position INT, value STRING"
    )
    prices = spark.createDataFrame(
        [(7, "x", 1.5), (7, "y", None), (9, "x", 2.5)], "key INT, map_key STRING, value DOUBLE"
    )
    writer = SavepointWriter.new_savepoint(spark, parallelism=2)
    writer.with_operator("tally", {"count": counts, "names": names, "prices": prices})
    path = writer.write(str(tmp_path / "bootstrap"))
    assert path == str(tmp_path / "bootstrap")
    assert {info.name: (info.kind, info.entries) for info in state.list_states(path)} == {
        "count": ("value", 100), "names": ("list", 2), "prices": ("map", 2),
    }  # fmt: skip
    env = starting_from(path)
    stream = env.from_collection(list(range(101))).key_by(lambda n: n).process(Tally()).uid("tally")
    with stream.execute_and_collect("bootstrapped") as results:
        found = {result[0]: result[1:] for result in results}
    assert {key: count for key, (count, _, _) in found.items()} == {**{n: n * 10 + 1 for n in range(100)}, 100: 1}
    assert found[7][1:] == (["a", "b"], {"x": 1.5, "y": None}) and found[8][1] == ["first", "later"]
    assert found[9][2] == {"x": 2.5} and found[10][1:] == ([], {})


def test_every_state_read_and_written_again_is_the_same_to_the_job(
    spark: SparkSession, taken: Snapshot, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    writer = SavepointWriter.from_existing_savepoint(spark, taken.path)
    for uid, name in PLACES:
        writer.with_state(uid, name, state.read(spark, taken.path, uid, name))
    mixed = state.read(spark, taken.path, "everything", "mixed", value_type="repr", pickled=True)
    writer.with_state("everything", "mixed", mixed.drop("value", "key_pickle"))
    path = writer.write(str(tmp_path / "rewritten"))
    before = {(info.uid, info.name, info.kind) for info in state.list_states(taken.path)}
    assert {(info.uid, info.name, info.kind) for info in state.list_states(path)} == before
    for uid, name in (*PLACES, ("everything", "mixed")):
        assert state.diff(spark, taken.path, path, uid, name, value_type="repr").isEmpty(), (uid, name)
    expected = goes_on(taken.path, tmp_path / "a", capsys)
    assert len(expected) > 6 * KEYS
    assert goes_on(path, tmp_path / "b", capsys) == expected


def test_the_golden_savepoint_taken_apart_and_put_together_goes_on_as_the_original(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Every kind of state there is, as objects, through Spark's shuffle."""
    golden = HERE / VERSIONS[-1]
    original = str(golden / "savepoint")
    writer = SavepointWriter.from_existing_savepoint(spark, original)
    infos = [info for info in state.list_states(original) if info.kind != "subtask"]
    assert {info.kind for info in infos} == KINDS - {"subtask"}
    for info in infos:
        types = {"key_type": "repr", "map_key_type": "repr", "value_type": "repr"}
        frame = state.read(spark, original, info.uid, info.name, pickled=True, **types)  # type: ignore[arg-type]
        writer.with_state(info.uid, info.name, frame.drop("key", "map_key", "value"))
    path = writer.write(str(tmp_path / "rewritten"))
    assert rest_of(Path(path)) == (golden / "rest.txt").read_text().splitlines()


def test_a_savepoint_goes_to_an_object_store_and_is_restored_with_any_parallelism(
    spark: SparkSession, s3: S3Server, tmp_path: Path
) -> None:
    bucket = s3.bucket()
    place, _, options = bucket.partition("?")
    frame = spark.range(50).selectExpr("id AS key", "id * 10 AS value")
    writer = SavepointWriter.new_savepoint(spark, parallelism=2).with_state("tally", "count", frame)
    writer.write(f"{place}/bootstrap?{options}")
    path = f"{place}/bootstrap?{options}"
    assert state.read(spark, path, "tally", "count").agg({"value": "sum"}).collect() == [(sum(range(50)) * 10,)]
    for parallelism in (1, 3):
        env = starting_from(path, parallelism)
        stream = env.from_collection(list(range(50))).key_by(lambda n: n).process(Tally()).uid("tally")
        stream._end(Collect(), "Collect")
        run = LocalRun(env, str(tmp_path / str(parallelism)), "job").run()
        assert sorted(result[:2] for result in run.collected()) == [(n, n * 10 + 1) for n in range(50)]


def test_an_update_changes_some_keys_and_leaves_the_others_and_the_original_alone(
    spark: SparkSession, taken: Snapshot, tmp_path: Path
) -> None:
    accounts = state.read(spark, taken.path, "everything", "account")
    corrected = accounts.where("key = 'k03'").withColumn(
        "value", F.struct("value.owner", F.lit(-1).cast("bigint").alias("cents"))
    )
    parity = spark.createDataFrame([("k03", "none", 7)], "key STRING, map_key STRING, value BIGINT")
    writer = SavepointWriter.from_existing_savepoint(spark, taken.path)
    writer.update_state("everything", "account", corrected)
    writer.update_state("everything", "by parity", parity)
    writer.remove_state("everything", "total").remove_operator("sessions")
    path = writer.write(str(tmp_path / "repaired"))
    changes = state.diff(spark, taken.path, path, "everything", "account").collect()
    assert [(row.key, row.change, row.old_value.cents, row.new_value.cents) for row in changes] == [
        ("k03", "changed", 300, -1)
    ]
    added = state.diff(spark, taken.path, path, "everything", "by parity").collect()
    assert [(row.key, row.map_key, row.change, row.new_value) for row in added] == [("k03", "none", "added", 7)]
    left = {(info.uid, info.name) for info in state.list_states(path)}
    assert ("everything", "count") in left and ("everything", "total") not in left
    assert not any(uid == "sessions" for uid, _ in left)
    stored = state.read(spark, path, "everything", "account", pickled=True).where("key = 'k03'").collect()
    assert pickle.loads(stored[0].value_pickle) == Account("k03", -1)
    assert state.read(spark, taken.path, "sessions", "/event-timers").count() == KEYS


def test_functions_make_objects_that_spark_has_no_types_for(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.createDataFrame([("ann", 5)], "key STRING, value BIGINT")
    writer = SavepointWriter.new_savepoint(spark, parallelism=1, max_parallelism=16)
    writer.with_state("bank", "account", frame, value=lambda cents: Account("x", cents), key=lambda name: (name, 1))
    path = writer.write(str(tmp_path / "sp"))
    with StateFile(str(next(Path(path).glob("*.state")))) as file:
        (delta,) = file.deltas()
    assert (delta.keys, delta.values) == ([("ann", 1)], [Account("x", 5)])


def test_operator_state_is_spread_over_the_subtasks(spark: SparkSession, tmp_path: Path) -> None:
    writer = SavepointWriter.new_savepoint(spark, parallelism=3)
    writer.with_state("sink", "pending", spark.range(10).selectExpr("id AS value"))
    writer.with_state(
        "sink", "mine", spark.createDataFrame([(2, 7), (2, 8), (0, 9)], "subtask INT, value INT"), "operator-union"
    )
    writer.with_state("rules", "rules", spark.createDataFrame([("a", 1)], "map_key STRING, value INT"))
    path = writer.write(str(tmp_path / "sp"))
    pending = state.read(spark, path, "sink", "pending").collect()
    assert sorted(row.value for row in pending) == list(range(10)) and {row.subtask for row in pending} == {0, 1, 2}
    assert [(row.subtask, row.position) for row in state.read(spark, path, "sink", "mine").collect()] == [
        (0, 0),
        (2, 0),
        (2, 1),
    ]
    for slot, file in enumerate(sorted(Path(path).glob("*.state"))):
        with StateFile(str(file)) as opened:
            assert any(s["kind"] == "broadcast" for s in opened.footer["states"]), slot


BAD = [
    (
        "key DOUBLE, value INT",
        [(float("nan"), 1)],
        InvalidKeyError,
        "state 's' of operator op cannot be stored: nan .*NaN",
    ),
    ("key ARRAY<INT>, value INT", [([1], 1)], InvalidKeyError, "cannot be a key"),
    ("key INT, value INT", [(1, 1), (2, 1), (1, 3)], StateError, "more than one row for the key 1: .*dropDuplicates"),
    ("key DOUBLE, value INT", [(1.0, 1), (1.0, 2)], StateError, "more than one row for the key 1.0"),
    ("key INT, map_key STRING, value INT", [(1, "a", 1), (1, "a", 2)], StateError, "the key 1 and the map key 'a'"),
    ("key INT, position INT, value INT", [(1, 0, 1), (1, 0, 2)], StateError, "the key 1 and the position 0"),
    ("key INT, value INT", [(1, None)], StateError, "a row for the key 1 whose value is null"),
    ("subtask INT, value INT", [(5, 1)], StateError, "a row for subtask 5, and there are 2"),
]


@pytest.mark.parametrize(("schema", "data", "error", "message"), BAD, ids=[case[3][:30] for case in BAD])
def test_rows_that_cannot_be_stored_are_named_and_leave_nothing(
    spark: SparkSession, tmp_path: Path, schema: str, data: list[Any], error: type[Exception], message: str
) -> None:
    writer = SavepointWriter.new_savepoint(spark, parallelism=2).with_state(
        "op", "s", spark.createDataFrame(data, schema)
    )
    with pytest.raises(error, match=message):
        writer.write(str(tmp_path / "sp"))
    assert not (tmp_path / "sp").exists()


def test_columns_that_do_not_make_the_state_are_refused_before_spark_runs(spark: SparkSession, taken: Snapshot) -> None:
    writer = SavepointWriter.from_existing_savepoint(spark, taken.path)

    def refused(name: str, schema: str, message: str, kind: str | None = None) -> None:
        with pytest.raises(StateError, match=message):
            writer.with_state("everything", name, spark.createDataFrame([], schema), kind)

    refused(
        "count",
        "key STRING, value DOUBLE",
        r"holds 4 \(a int\), and .* column value is double: it would become a float",
    )
    refused("count", "key BIGINT, value BIGINT", r"holds 'k\d\d' \(a str\), .* column key is bigint")
    refused("account", "key STRING, value STRING", r"holds Account.* it would become a str. .*value=<function>")
    refused("account", "key STRING, value STRUCT<owner: STRING>", "it has the fields owner and not owner, cents")
    refused("count", "key STRING, amount BIGINT", "has no column value. It has: key, amount")
    refused("count", "key STRING, value BIGINT, old BIGINT", "columns that mean nothing to it: old")
    refused("cached", "key STRING, value BIGINT", "has no column last_access: when each was last used")
    refused("count", "key STRING, value BIGINT, value_pickle BINARY", "value and value_pickle, and only one")
    refused("seen", "key STRING, position STRING, value BIGINT", "column position .* is string, and has to be a BIGINT")
    refused("new", "key STRING, value BIGINT", "cannot be of kind 'queue'. Kinds are value, reducing", "queue")
    with pytest.raises(StateError, match="has no column window, and what is there already has one"):
        writer.with_state(
            "sessions", "/event-timers", spark.createDataFrame([("a", 1)], "key STRING, timestamp BIGINT")
        )
    with pytest.raises(StateError, match="everything has no state 'cuont'"):
        writer.update_state("everything", "cuont", spark.range(1))
    with pytest.raises(StateError, match="everything has no state 'cuont'"):
        writer.remove_state("everything", "cuont")
    with pytest.raises(StateError, match=r"no operator with uid 'nobody' to remove. There are: applying, coll"):
        writer.remove_operator("nobody")
    with pytest.raises(StateError, match="made of a DataFrame, classic and not streaming, not of"):
        writer.with_state("everything", "count", [1])  # type: ignore[arg-type]


def test_only_a_classic_session_will_do(taken: Snapshot) -> None:
    with pytest.raises(ConfigurationError, match="a classic SparkSession is needed"):
        SavepointWriter.new_savepoint(None)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="a classic SparkSession is needed"):
        SavepointWriter.from_existing_savepoint(None, taken.path)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="a classic SparkSession is needed"):
        state.read("spark", taken.path, "everything", "count")  # type: ignore[arg-type]


def test_more_subtasks_than_key_groups_are_refused(spark: SparkSession) -> None:
    with pytest.raises(ConfigurationError, match="cannot have parallelism 9 and maximum parallelism 8"):
        SavepointWriter.new_savepoint(spark, max_parallelism=8, parallelism=9)


def test_nothing_that_is_there_is_overwritten(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    writer = SavepointWriter.new_savepoint(spark).with_state(
        "op", "s", spark.range(1).selectExpr("id AS key", "id AS value")
    )
    with pytest.raises(ConfigurationError, match=f"{tmp_path} is there already, and nothing of it is replaced"):
        writer.write(str(tmp_path))
    assert os.listdir(tmp_path) == ["notes.txt"]
    with pytest.raises(ConfigurationError, match="cannot be written"):
        writer.write(str(tmp_path / "notes.txt" / "sp"))
