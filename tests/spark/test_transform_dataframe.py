"""Queries of Spark in the middle of a stream."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame

from firesteel.common import Row
from firesteel.connectors.number_seq import NumberSequenceSource
from firesteel.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment, ValueStateDescriptor
from firesteel.errors import ConfigurationError, TypeMismatchError, UserCodeError
from tests.spark.test_dataframes import FailsOnce, records
from tests.support.local_engine import LocalRun
from tests.support.slicing import Sliced


class RunningCount(KeyedProcessFunction):
    """How many rows of the key there were, at each row; and how many in all, when event time ends."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", None))

    def process_element(self, value: Any, ctx: Any) -> Any:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        ctx.timer_service().register_event_time_timer(10**12)
        yield "row", value.colour, count

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield "all", ctx.get_current_key(), self.count.value()


def paint(frame: DataFrame) -> DataFrame:
    colours = frame.sparkSession.sql("SELECT * FROM VALUES (0, 'red'), (1, 'green') AS c(rest, colour)")
    return frame.where("n % 4 < 2").withColumn("rest", frame.n % 2).join(colours, "rest").select("n", "colour")


def test_state_behind_a_query_and_a_branch_around_it_see_every_record_once(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    env.enable_checkpointing(1).get_checkpoint_config().set_checkpoint_storage_dir(str(tmp_path / "chk"))
    source = env.from_source(Sliced(NumberSequenceSource(1, 200), 50), None, "numbers")
    numbers = source.map(FailsOnce(190, tmp_path / "failed"))
    counts = numbers.transform_dataframe(paint, "n BIGINT").key_by(lambda row: row.colour).process(RunningCount())
    around = numbers.rebalance().map(lambda n: ("around", "", n))  # starts at the cut's level, and goes past it
    found = records(counts.union(around), "painted")
    assert (tmp_path / "failed").exists()
    assert sorted(n for kind, _, n in found if kind == "around") == list(range(1, 201))
    rows = Counter(each for each in found if each[0] == "row")
    assert rows == Counter(("row", colour, n) for colour in ("red", "green") for n in range(1, 51))
    assert sorted(each for each in found if each[0] == "all") == [("all", "green", 50), ("all", "red", 50)]


def test_queries_follow_each_other_and_run_side_by_side(env: StreamExecutionEnvironment) -> None:
    numbers = env.from_sequence(1, 1000)
    doubled = numbers.transform_dataframe(lambda df: df.selectExpr("n * 2 AS n"), "n BIGINT")
    sums = doubled.transform_dataframe(lambda df: df.groupBy((df.n % 10).alias("k")).sum("n"), "n BIGINT")
    late = numbers.key_by(lambda n: n % 7).map(lambda n: n).rebalance().map(lambda n: n)
    large = late.transform_dataframe(lambda df: df.where("n > 990"), "n BIGINT")
    added = sums.map(lambda row: (row.k, row["sum(n)"])).key_by(0).reduce(lambda a, b: (a[0], a[1] + b[1]))
    totals: dict[int, int] = {}
    found = records(added.map(tuple).union(large.map(lambda row: ("large", row.n))))
    for key, value in found:
        if key != "large":
            totals[key] = max(totals.get(key, 0), value)
    assert totals == {k: sum(2 * n for n in range(1, 1001) if 2 * n % 10 == k) for k in (0, 2, 4, 6, 8)}
    assert sorted(value for key, value in found if key == "large") == list(range(991, 1001))


def test_an_epoch_without_records_runs_no_query(env: StreamExecutionEnvironment) -> None:
    calls: list[int] = []

    def count(frame: DataFrame) -> DataFrame:
        calls.append(frame.count())
        return frame

    source = env.from_source(Sliced(NumberSequenceSource(1, 100), 20), None, "numbers")
    stream = source.filter(lambda n: n > 90).transform_dataframe(count, "n BIGINT")
    assert sorted(records(stream), key=str) == sorted((Row(n=n) for n in range(91, 101)), key=str)
    assert sum(calls) == 10 and len(calls) < 5


def test_a_functions_error_is_the_users_own(env: StreamExecutionEnvironment) -> None:
    def broken(frame: DataFrame) -> DataFrame:
        return frame.select("no_such_column")

    with pytest.raises(UserCodeError, match=r"(?s)no_such_column.*It happened in operator .*, on the driver"):
        records(env.from_sequence(1, 3).transform_dataframe(broken, "n BIGINT"))
    env.graph.clear()
    with pytest.raises(ConfigurationError, match=r"transform_dataframe\(\) must return a DataFrame .*not 3"):
        records(env.from_sequence(1, 3).transform_dataframe(lambda frame: 3, "n BIGINT"))
    env.graph.clear()
    with pytest.raises(TypeMismatchError, match=r"the record \d does not fit the schema: column n is string"):
        records(env.from_sequence(1, 3).transform_dataframe(lambda frame: frame, "n STRING"))


def test_a_function_may_use_what_cannot_be_pickled(env: StreamExecutionEnvironment) -> None:
    lock = threading.Lock()

    def locked(frame: DataFrame) -> DataFrame:
        with lock:
            return frame

    assert records(env.from_sequence(1, 1).transform_dataframe(locked, "n BIGINT")) == [Row(n=1)]


def test_without_spark_it_says_what_it_takes(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    env.from_sequence(1, 3).transform_dataframe(lambda frame: frame, "n BIGINT").print()
    with pytest.raises(ConfigurationError, match="which takes Spark"):
        LocalRun(env, str(tmp_path)).run()
