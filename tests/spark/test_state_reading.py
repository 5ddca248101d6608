"""States of checkpoints as DataFrames, on a real Spark."""

from __future__ import annotations

import json
import pickle
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from xxhash import xxh3_64_hexdigest

from firesteel import state
from firesteel.common import Types
from firesteel.coordinator.completed import locate
from firesteel.datastream.window import TimeWindow
from firesteel.engine import session
from firesteel.errors import ConfigurationError, RestoreError, StateError
from firesteel.graph.keys import KeyGroups
from firesteel.state.chains import native_part
from firesteel.state.files import StateFile
from firesteel.testing import flip_bit
from tests.spark.state_jobs import KEYS, Snapshot, snapshots
from tests.support.keeping_state import keeping_state


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    handle = session.acquire(2, {})
    yield handle.spark
    handle.release()
    session.stop_embedded()


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory) -> list[Snapshot]:
    """Checkpoints after 3 and after 7 rounds, whose chains are of as many files."""
    return snapshots(tmp_path_factory.mktemp("job"))


@pytest.fixture
def damaged(taken: list[Snapshot], tmp_path: Path) -> Path:
    """A copy of a checkpoint, to be damaged; its job's directory is two above."""
    path = Path(taken[0].path)
    shutil.copytree(path.parent.parent, tmp_path / "job")
    return tmp_path / "job" / path.parent.name / path.name


def rows(frame: DataFrame, *columns: str) -> set[tuple[Any, ...]]:
    found = [tuple(row) for row in frame.select(*columns).collect()]
    assert len(set(found)) == len(found)
    return set(found)


def test_every_state_is_listed_without_spark_and_without_unpickling(
    taken: list[Snapshot], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pickle, "loads", None)
    infos = {(info.uid, info.name): info for info in state.list_states(taken[1].path)}
    kinds = {
        ("everything", "count"): "value",
        ("everything", "cached"): "value+ttl",
        ("everything", "seen"): "list",
        ("everything", "by parity"): "map",
        ("everything", "total"): "reducing",
        ("everything", "mean"): "aggregating",
        ("everything", "/event-timers"): "timers",
        ("windows", "/window-contents"): "reducing+windows",
        ("sessions", "/window-contents"): "list",
        ("remembering", "buffered"): "operator-list",
        ("remembering", "shared"): "operator-union",
        ("applying", "rules"): "broadcast",
    }
    assert {place: infos[place].kind for place in kinds} == kinds
    assert infos["everything", "count"].operator == "Keyed Process"
    assert infos["everything", "count"].entries == 7 * KEYS  # in each of the chain's files
    assert infos["applying", "rules"].entries == 2  # every subtask has them
    assert all(info.size > 0 for info in infos.values())
    code = "import sys, firesteel.state as s; s.list_states(sys.argv[1]); assert 'pyspark' not in sys.modules"
    subprocess.run([sys.executable, "-c", code, taken[1].path], check=True)


def test_values_come_with_their_keys_and_groups_whether_by_directory_or_metadata(
    spark: SparkSession, taken: list[Snapshot]
) -> None:
    groups = KeyGroups(128)
    for path in (taken[1].path, f"{taken[1].path}/_metadata"):
        frame = state.read(spark, path, "everything", "count")
        assert frame.dtypes == [("key", "string"), ("value", "bigint"), ("key_group", "int")]
        expected = {(key, count, groups.of(key)) for key, count in taken[1].states["count"].items()}
        assert rows(frame, "key", "value", "key_group") == expected


def test_lists_maps_accumulators_and_time_to_live(spark: SparkSession, taken: list[Snapshot]) -> None:
    path, states = taken[1].path, taken[1].states
    seen = state.read(spark, path, "everything", "seen")
    expected = {(key, index, value) for key, values in states["seen"].items() for index, value in enumerate(values)}
    assert rows(seen, "key", "position", "value") == expected
    parity = state.read(spark, path, "everything", "by parity")
    expected = {(key, *entry) for key, entries in states["by parity"].items() for entry in entries.items()}
    assert rows(parity, "key", "map_key", "value") == expected
    mean = state.read(spark, path, "everything", "mean")  # of 0 to 6
    assert rows(mean, "key", "value._1", "value._2") == {(key, 21, 7) for key in states["mean"]}
    cached = state.read(spark, path, "everything", "cached")
    assert rows(cached, "key", "value", "last_access") == {(key, 6, 0) for key in states["cached"]}


def test_timers_and_windows(spark: SparkSession, taken: list[Snapshot]) -> None:
    path = taken[1].path
    timers = state.read(spark, path, "everything", "/event-timers")
    assert rows(timers, "key", "timestamp") == {(timer.key, timer.time) for timer in taken[1].timers}
    windows = state.read(spark, path, "windows", "/window-contents")
    assert rows(windows.where("key = 'k03'"), "window.start", "window.end", "value._2") == {
        (0, 4000, 0 + 1 + 2 + 3),
        (4000, 8000, 4 + 5 + 6),
    }
    sessions = state.read(spark, path, "sessions", "/window-contents", value_type="name STRING, round INT")
    assert rows(sessions.where("key = 'k03'"), "window.start", "position", "value.round") == {
        (0, index, index) for index in range(7)
    }
    merging = state.read(spark, path, "sessions", "/merging-windows", pickled=True).where("key = 'k03'").collect()
    assert [pickle.loads(row.map_key_pickle) for row in merging] == [TimeWindow(0, 6000 + 3_600_000)]


def test_operator_state(spark: SparkSession, taken: list[Snapshot]) -> None:
    path = taken[1].path
    buffered = state.read(spark, path, "remembering", "buffered")
    assert buffered.columns == ["subtask", "position", "value"]
    assert buffered.groupBy("subtask").count().orderBy("subtask").collect() == [(0, 70), (1, 70)]
    assert rows(state.read(spark, path, "remembering", "shared"), "subtask", "value") == {(0, 70), (1, 70)}
    assert rows(state.read(spark, path, "applying", "rules"), "map_key", "value") == {("low", 1), ("high", 9)}
    watermarks = state.read(spark, path, "applying", "/time")
    assert watermarks.columns == ["subtask", "name", "value"] and watermarks.count() > 0


def test_objects_are_structs_or_text_or_pickles(spark: SparkSession, taken: list[Snapshot]) -> None:
    path, accounts = taken[1].path, taken[1].states["account"]
    frame = state.read(spark, path, "everything", "account", pickled=True)
    assert rows(frame, "value.owner", "value.cents") == {
        (account.owner, account.cents) for account in accounts.values()
    }
    assert {row.key: pickle.loads(row.value_pickle) for row in frame.collect()} == accounts
    text = state.read(spark, path, "everything", "account", value_type="repr")
    assert rows(text, "key", "value") == {(key, repr(account)) for key, account in accounts.items()}


def test_types_can_be_declared_as_ddl_as_sparks_and_as_firesteels(spark: SparkSession, taken: list[Snapshot]) -> None:
    from pyspark.sql.types import IntegerType

    for declared in ("INT", IntegerType(), Types.INT()):
        frame = state.read(spark, taken[0].path, "everything", "count", key_type="STRING", value_type=declared)
        assert frame.dtypes[1] == ("value", "int")
    assert frame.agg({"value": "sum"}).collect() == [(3 * KEYS,)]
    with pytest.raises(ConfigurationError, match="value_type='NO SUCH' is not a type that Spark understands"):
        state.read(spark, taken[0].path, "everything", "count", value_type="NO SUCH")
    with pytest.raises(ConfigurationError, match=r"key_type is a type in DDL .* not 7"):
        state.read(spark, taken[0].path, "everything", "count", key_type=7)


def test_values_of_several_types_are_an_error_before_any_query_that_says_what_to_do(
    spark: SparkSession, taken: list[Snapshot]
) -> None:
    path = taken[1].path
    with pytest.raises(StateError) as caught:
        state.read(spark, path, "everything", "mixed")
    text = str(caught.value)
    assert "the values of state 'mixed' of operator everything are not of one type: there are both" in text
    assert "6 (a int)" in text and "'6' (a str)" in text and "value_type='repr'" in text
    shown = state.read(spark, path, "everything", "mixed", value_type="repr")
    assert rows(shown, "key", "value") == {(key, repr(value)) for key, value in taken[1].states["mixed"].items()}
    wrong = state.read(spark, path, "everything", "mixed", value_type="BIGINT")
    with pytest.raises(PythonException, match="column value is bigint, but its value is '6'"):
        wrong.collect()


def test_a_diff_says_what_was_added_removed_and_changed(spark: SparkSession, taken: list[Snapshot]) -> None:
    old, new = (snapshot.path for snapshot in taken)
    counts = state.diff(spark, old, new, "everything", "count")
    assert counts.columns == ["key", "change", "old_value", "new_value", "key_group"]
    assert rows(counts, "key", "change", "old_value", "new_value") == {
        (key, "changed", 3, 7) for key in taken[0].states["count"]
    }
    assert counts.dtypes[2:4] == [("old_value", "bigint"), ("new_value", "bigint")]
    seen = state.diff(spark, old, new, "everything", "seen").where("key = 'k07'")
    assert rows(seen, "position", "change", "old_value", "new_value") == {
        (index, "added", None, index) for index in range(3, 7)
    }
    timers = state.diff(spark, new, old, "sessions", "/event-timers").where("key = 'k07'")
    assert rows(timers, "window.end", "timestamp", "change") == {
        (3_606_000, 3_605_999, "removed"),
        (3_602_000, 3_601_999, "added"),
    }
    assert state.diff(spark, old, old, "everything", "account").count() == 0
    assert state.diff(spark, old, new, "applying", "rules").count() == 0
    cached = state.diff(spark, old, new, "everything", "cached").where("key = 'k07'")
    assert rows(cached, "old_value", "new_value", "old_last_access", "new_last_access") == {(2, 6, 0, 0)}


def test_checkpoints_of_rocksdb_are_read_as_those_of_the_other_backend(
    spark: SparkSession, taken: list[Snapshot], tmp_path: Path
) -> None:
    with keeping_state(True, str(tmp_path)):
        in_rocksdb = snapshots(tmp_path / "job")
    assert any(map(native_part, locate(in_rocksdb[0].path).metadata.state))
    infos = state.list_states(in_rocksdb[1].path)
    names = {(info.uid, info.name, info.kind) for info in infos}
    assert names == {(info.uid, info.name, info.kind) for info in state.list_states(taken[1].path)}
    assert all(info.entries > 0 and info.size > 0 for info in infos)
    for uid, name, kind in sorted(names):
        value: Any = {} if kind == "timers" else {"value_type": "repr"}
        frames = [state.read(spark, each[1].path, uid, name, **value) for each in (taken, in_rocksdb)]
        found = [sorted(map(str, frame.drop("last_access").collect())) for frame in frames]
        assert found[0] == found[1], (uid, name)
    for name in ("count", "seen", "/event-timers"):
        diffs = [state.diff(spark, *(one.path for one in each), "everything", name) for each in (taken, in_rocksdb)]
        found = [sorted(map(str, frame.collect())) for frame in diffs]
        assert found[0] == found[1], name


def test_unknown_operators_and_states_are_answered_with_those_there_are(
    spark: SparkSession, taken: list[Snapshot]
) -> None:
    path = taken[0].path
    with pytest.raises(
        StateError, match=r"no operator with uid 'nobody' in .*Operators with state: applying, everything"
    ):
        state.read(spark, path, "nobody", "count")
    with pytest.raises(StateError, match=r"everything has no state 'coutn' in .* It has: .*'count' \(value\)"):
        state.read(spark, path, "everything", "coutn")
    with pytest.raises(StateError, match="everything has no state 'coutn'"):
        state.diff(spark, path, path, "everything", "coutn")


def test_what_is_no_checkpoint_or_damaged_or_newer_is_refused_by_name(spark: SparkSession, damaged: Path) -> None:
    with pytest.raises(RestoreError, match="is no checkpoint"):
        state.list_states(str(damaged.parent))
    with pytest.raises(RestoreError, match="there is no checkpoint"):
        state.list_states(str(damaged.parent / "chk-99"))
    metadata = json.loads((damaged / "_metadata").read_bytes().partition(b"\n")[2])
    last = damaged.parent.parent / metadata["state"][0][-1]["file"]
    whole = last.read_bytes()
    with StateFile(str(last)) as file:
        first = file.footer["states"][0]
    flip_bit(last, first["blocks"][0][2] + 3)
    with pytest.raises(RestoreError, match=f"state file {last} is damaged: the checksum of key group"):
        state.read(spark, str(damaged), first["uid"], first["name"])
    last.write_bytes(whole[:-5] + b"xxxxx")
    with pytest.raises(RestoreError, match=f"state file {last} is damaged: its end is missing"):
        state.list_states(str(damaged))
    last.write_bytes(whole)
    body = (damaged / "_metadata").read_bytes().partition(b"\n")[2]
    (damaged / "_metadata").write_bytes(f"firesteel-checkpoint 99 {xxh3_64_hexdigest(body)}\n".encode() + body)
    with pytest.raises(RestoreError, match="has format 99, newer than"):
        state.list_states(str(damaged))


def test_stale_key_groups_of_former_owners_are_not_read(spark: SparkSession, damaged: Path) -> None:
    """After a rescaling a slot's chain may hold groups that another slot owns now, with old values."""
    metadata = json.loads((damaged / "_metadata").read_bytes().partition(b"\n")[2])
    metadata["state"][1] = [*metadata["state"][0][:1], *metadata["state"][1]]  # of slot 0's groups, an old round
    body = json.dumps(metadata).encode()
    (damaged / "_metadata").write_bytes(f"firesteel-checkpoint 1 {xxh3_64_hexdigest(body)}\n".encode() + body)
    found = state.read(spark, str(damaged), "everything", "count").collect()
    assert sorted((row.key, row.value) for row in found) == [(f"k{key:02}", 3) for key in range(KEYS)]
    infos = {info.name: info.entries for info in state.list_states(str(damaged)) if info.uid == "everything"}
    assert infos["count"] == 3 * KEYS


MAIN = """
import sys
from dataclasses import dataclass
from firesteel import state
from firesteel.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.common import Types
from firesteel.engine import session
from firesteel.errors import RestoreError
from firesteel.testing import GraphHarness

if sys.argv[1] == "write":
    @dataclass
    class Mine:
        n: int

    class Keep(KeyedProcessFunction):
        def open(self, context):
            self.mine = context.get_state(ValueStateDescriptor("mine", Types.PICKLED_BYTE_ARRAY()))
        def process_element(self, value, ctx):
            self.mine.update(Mine(value))
            return []

    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    env.from_collection([1, 2]).key_by(lambda n: n).process(Keep()).uid("keep").print()
    with GraphHarness(env, directory=sys.argv[2], name="job", check_mutation=False) as harness:
        harness.run()
path = sys.argv[2] + "/job/inc-1/chk-1"
spark = session.acquire(1, {}).spark
try:
    print(sorted(row.value.n for row in state.read(spark, path, "keep", "mine").collect()))
except RestoreError as error:
    print(error)
"""


def test_classes_of_the_main_script_are_found_by_workers_and_missing_ones_are_named(tmp_path: Path) -> None:
    script = tmp_path / "main.py"
    script.write_text(MAIN)

    def run(mode: str) -> str:
        command = [sys.executable, str(script), mode, str(tmp_path / "checkpoints")]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    assert run("write").splitlines()[-1] == "[1, 2]"
    message = run("read")
    assert "state 'mine' of operator keep holds objects of a class that cannot be imported here" in message
    assert "Mine" in message and "PYTHONPATH" in message
