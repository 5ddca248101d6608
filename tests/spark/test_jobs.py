"""Jobs on a real Spark."""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from firesteel.common import Encoder, JobStatus, Types
from firesteel.datastream import (
    KeyedProcessFunction,
    MapFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
    ValueStateDescriptor,
)
from firesteel.datastream.connectors.file_system import FileSink
from firesteel.errors import JobCancelledError, UserCodeError


def descendants() -> set[int]:
    return {process.pid for process in psutil.Process().children(recursive=True)}


def slots() -> list[psutil.Process]:
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            if "firesteel.runtime.slot" in " ".join(process.cmdline()) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.NoSuchProcess:
            continue
    return found


def test_word_count_emits_one_update_per_record(env: StreamExecutionEnvironment) -> None:
    words = env.from_collection(["hadoop hadoop", "hadoop", "hive hadoop"]).flat_map(lambda line: line.split())
    counts = words.map(lambda word: (word, 1)).key_by(0).reduce(lambda a, b: (a[0], a[1] + b[1]))
    with counts.execute_and_collect() as results:
        found = list(results)
    assert Counter(found) == Counter([("hadoop", 1), ("hadoop", 2), ("hadoop", 3), ("hadoop", 4), ("hive", 1)])
    assert [count for word, count in found if word == "hadoop"] == [1, 2, 3, 4]
    assert slots() == []


class Average(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.state = runtime_context.get_state(ValueStateDescriptor("sum", Types.PICKLED_BYTE_ARRAY()))

    def process_element(self, value, ctx):  # type: ignore[no-untyped-def]
        count, total = self.state.value() or (0, 0)
        self.state.update((count + 1, total + value[1]))
        if count:
            yield (total + value[1]) / (count + 1)


def test_the_running_average_by_value_state(env: StreamExecutionEnvironment) -> None:
    stream = env.from_collection([(1, 3), (1, 5), (1, 7), (1, 4), (1, 2)]).key_by(lambda v: v[0]).process(Average())
    assert stream.execute_and_collect(limit=10) == [4.0, 5.0, 4.75, 4.2]


@dataclass(frozen=True)
class Reading:
    sensor: str
    value: int


def test_a_union_over_three_levels_with_own_classes_as_records_sees_everything_once(
    env: StreamExecutionEnvironment,
) -> None:
    numbers = env.from_sequence(1, 50_000)
    early = numbers.map(lambda n: Reading(f"s{n % 10}", n))
    late = (
        early.key_by(lambda r: r.sensor)
        .reduce(lambda a, b: Reading(a.sensor, a.value + b.value))
        .filter(lambda r: False)
    )
    with early.union(late).rebalance().map(lambda r: r.value).execute_and_collect() as results:
        assert sorted(results) == list(range(1, 50_001))


def test_what_functions_print_reaches_the_user(
    env: StreamExecutionEnvironment, capsys: pytest.CaptureFixture[str]
) -> None:
    def shout(n: int) -> int:
        print(f"seen {n}")
        return n

    env.from_collection([1, 2, 3]).map(shout).set_parallelism(1).print("out").set_parallelism(1)
    env.execute("printing")
    assert capsys.readouterr().out.splitlines() == ["seen 1", "seen 2", "seen 3", "out> 1", "out> 2", "out> 3"]


class Fussy(MapFunction):
    def map(self, value: Any) -> Any:
        return 1 / (value - 7)


@pytest.mark.parametrize("levels", [1, 2])  # a slot begins with the second one before Spark asks for it
def test_a_users_exception_comes_with_the_users_traceback_and_not_sparks(
    env: StreamExecutionEnvironment, levels: int
) -> None:
    numbers = env.set_parallelism(1).from_sequence(1, 10)
    if levels == 2:
        numbers = numbers.rebalance()
    numbers.map(Fussy()).name("fussy").uid("fussy-1").print()
    with pytest.raises(UserCodeError) as caught:
        env.execute("failing")
    text = str(caught.value)
    assert text.startswith("Traceback (most recent call last):\n  File")
    assert "return 1 / (value - 7)" in text and "ZeroDivisionError" in text
    assert "operator 'fussy' (uid fussy-1, defined at test_jobs.py" in text and "on the record 7" in text
    for noise in ("py4j", "org.apache.spark", "firesteel/runtime", "pump.py"):
        assert noise not in text


def test_a_job_recovers_in_process_from_a_failure_without_a_trace_in_its_output(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    marker = str(tmp_path / "failed once")

    class FailsOnce(MapFunction):
        def map(self, value: int) -> int:
            if value == 80_000 and not os.path.exists(marker):
                with open(marker, "w"):
                    raise RuntimeError("just once")
            return value

    env.enable_checkpointing(100)
    env.get_checkpoint_config().set_checkpoint_storage_dir(str(tmp_path / "checkpoints"))
    numbers = env.from_sequence(1, 100_000).map(FailsOnce())
    totals = numbers.key_by(lambda n: n % 10).reduce(lambda a, b: a + b)
    totals.sink_to(FileSink.for_row_format(str(tmp_path / "out"), Encoder.simple_string_encoder()).build())
    with totals.execute_and_collect("fails once") as results:
        collected = Counter(results)
    assert os.path.exists(marker)
    assert sum(collected.values()) == 100_000
    committed = Counter(int(line) for file in (tmp_path / "out").iterdir() for line in file.read_text().splitlines())
    assert committed == collected
    for remainder in range(10):
        assert sum(n for n in range(1, 100_001) if n % 10 == remainder) in collected


def test_cancel_ends_the_job_and_its_slots_soon(env: StreamExecutionEnvironment) -> None:
    env.from_sequence(1, 10**12).key_by(lambda n: n % 10).reduce(max).filter(lambda n: False).print()
    client = env.execute_async("endless")
    deadline = threading.Event()
    while client.get_job_status().result() is not JobStatus.RUNNING:
        assert not deadline.wait(0.05)
    client.cancel().result(timeout=30)
    assert client.get_job_status().result() is JobStatus.CANCELED
    with pytest.raises(JobCancelledError, match="'endless' was cancelled"):
        client.get_job_execution_result().result()
    assert slots() == []


def test_closing_the_iterator_early_cancels_the_job(env: StreamExecutionEnvironment) -> None:
    assert len(env.from_sequence(1, 10**12).execute_and_collect(limit=5)) == 5
    assert slots() == []


def test_sparks_ui_tells_the_story(env: StreamExecutionEnvironment) -> None:
    from pyspark import SparkContext

    env.from_sequence(1, 10).name("numbers").key_by(lambda n: n % 3).reduce(max).name("highest").print("ui")
    env.execute("the story")
    context = SparkContext._active_spark_context
    assert context is not None
    store = context._jsc.sc().statusStore()  # type: ignore[union-attr]
    jobs = store.jobsList(None)
    descriptions = [jobs.apply(i).description().get() for i in range(min(jobs.size(), 3))]
    assert any(text.startswith("the story, epoch ") for text in descriptions), descriptions
    last = jobs.apply(0)
    names = [store.lastStageAttempt(last.stageIds().apply(i)).name() for i in range(last.stageIds().size())]
    assert sorted(names) == ["level 0: numbers", "level 1: highest + Print to Std. Out"]


def test_a_slot_that_hangs_is_noticed_and_replaced(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    marker = str(tmp_path / "hung once")

    class HangsOnce(MapFunction):
        def map(self, value: int) -> int:
            if value == 40_000 and not os.path.exists(marker):
                with open(marker, "w"):
                    os.kill(os.getpid(), signal.SIGSTOP)
            return value

    env.enable_checkpointing(100).set_heartbeat_timeout(3000)
    with env.from_sequence(1, 50_000).map(HangsOnce()).execute_and_collect("hangs once") as results:
        assert sorted(results) == list(range(1, 50_001))
    assert os.path.exists(marker)
