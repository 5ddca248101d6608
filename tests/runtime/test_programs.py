"""Programs run in one process, without Spark: the same tasks and the same coordinator."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from firesteel.common import Encoder, RestartStrategies, Types
from firesteel.datastream import (
    EmbeddedRocksDBStateBackend,
    KeyedProcessFunction,
    ListStateDescriptor,
    MapFunction,
    MapStateDescriptor,
    RuntimeContext,
    StreamExecutionEnvironment,
    ValueStateDescriptor,
)
from firesteel.datastream.connectors.file_system import FileSink
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.errors import FiresteelError, InvalidKeyError, SlotLostError, StateError, UserCodeError
from firesteel.graph.nodes import Collect
from firesteel.runtime.task import LevelOrder, SlotTask
from tests.support.local_engine import LocalRun
from tests.support.slicing import Sliced


def environment(parallelism: int = 2) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(5, 0))
    return env


def collect(env: StreamExecutionEnvironment, stream: Any, directory: Path, **options: Any) -> list[Any]:
    stream._end(Collect(), "Collect")
    return LocalRun(env, str(directory), **options).run().collected()


def test_word_count_emits_one_update_per_record(tmp_path: Path) -> None:
    env = environment()
    words = env.from_collection(["hadoop hadoop", "hadoop", "hive hadoop"]).flat_map(lambda line: line.split())
    counts = words.map(lambda word: (word, 1)).key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))
    results = collect(env, counts, tmp_path)
    assert Counter(results) == Counter([("hadoop", 1), ("hadoop", 2), ("hadoop", 3), ("hadoop", 4), ("hive", 1)])
    assert [n for word, n in results if word == "hadoop"] == [1, 2, 3, 4]


class RunningAverage(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.state = runtime_context.get_state(ValueStateDescriptor("sum", Types.PICKLED_BYTE_ARRAY()))

    def process_element(self, value, ctx):  # type: ignore[no-untyped-def]
        count, total = self.state.value() or (0, 0)
        count, total = count + 1, total + value[1]
        self.state.update((count, total))
        if count >= 2:
            yield total / count


def test_the_running_average_by_value_state(tmp_path: Path) -> None:
    env = environment(1)
    stream = (
        env.from_collection([(1, 3), (1, 5), (1, 7), (1, 4), (1, 2)]).key_by(lambda v: v[0]).process(RunningAverage())
    )
    assert collect(env, stream, tmp_path) == [4.0, 5.0, 4.75, 4.2]


def test_union_filter_and_side_branches_see_every_record_once(tmp_path: Path) -> None:
    env = environment()
    evens = env.from_sequence(1, 100).filter(lambda n: n % 2 == 0)
    odds = env.from_sequence(1, 100).filter(lambda n: n % 2 == 1)
    late = odds.key_by(lambda n: n % 7).map(lambda n: n)
    results = collect(env, evens.union(late).rebalance().map(lambda n: n * 10), tmp_path)
    assert sorted(results) == [n * 10 for n in range(1, 101)]


class CountPerKey(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):  # type: ignore[no-untyped-def]
        count = (self.count.value() or 0) + 1
        if count == 5:
            self.count.clear()
        else:
            self.count.update(count)
        yield ctx.get_current_key(), value, count


def expected_counts(numbers: range, keys: int) -> list[tuple[int, int, int]]:
    seen: dict[int, int] = defaultdict(int)
    out = []
    for number in numbers:
        key = number % keys
        seen[key] += 1
        out.append((key, number, seen[key]))
        seen[key] %= 5
    return out


@settings(max_examples=12, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(
    parallelism=st.integers(1, 4),
    failures=st.lists(st.integers(1, 12), max_size=3, unique=True),
    interval=st.sampled_from([1, 20]),
    keys=st.integers(1, 9),
    sizes=st.lists(st.integers(1, 5000), min_size=1, max_size=5).filter(lambda sizes: sum(sizes) > 400 * len(sizes)),
)
def test_failures_at_any_epoch_change_nothing_in_collected_or_committed_output(
    tmp_path_factory: pytest.TempPathFactory,
    parallelism: int,
    failures: list[int],
    interval: int,
    keys: int,
    sizes: list[int],
) -> None:
    root = tmp_path_factory.mktemp("run")
    env = environment(parallelism).enable_checkpointing(interval)
    source = Sliced(NumberSequenceSource(1, 20_000), *sizes)
    numbers = env.from_source(source).set_parallelism(1)  # one source subtask, so that order per key is known
    counts = numbers.key_by(lambda n: n % keys).process(CountPerKey())
    counts.sink_to(FileSink.for_row_format(str(root / "out"), Encoder.simple_string_encoder()).build())
    results = collect(env, counts, root / "checkpoints", fail_at=failures)
    expected = expected_counts(range(1, 20_001), keys)
    assert sorted(results) == sorted(expected)
    files = list((root / "out").iterdir())
    assert not [file for file in files if file.name.startswith(".")]
    assert Counter(line for f in files for line in f.read_text().splitlines()) == Counter(map(str, expected))


@pytest.mark.parametrize("level", [0, 1])
@pytest.mark.parametrize("times", [0, 2])
def test_a_level_that_is_run_twice_or_left_out_fails_the_epoch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, level: int, times: int
) -> None:
    run_level = SlotTask.run_level

    def run(self: SlotTask, order: LevelOrder, *rest: Any) -> None:
        for _ in range(times if order.level == level else 1):
            run_level(self, order, *rest)

    monkeypatch.setattr(SlotTask, "run_level", run)
    env = environment().set_restart_strategy(RestartStrategies.no_restart())
    numbers = env.from_source(Sliced(NumberSequenceSource(1, 100), 10))
    with pytest.raises(SlotLostError, match="a task was run twice or left out"):
        collect(env, numbers.key_by(lambda n: n).process(CountPerKey()), tmp_path)


def test_a_finished_job_started_again_repeats_nothing(tmp_path: Path) -> None:
    for _ in range(2):
        env = environment().enable_checkpointing(50)
        numbers = env.from_sequence(1, 1000)
        numbers.sink_to(FileSink.for_row_format(str(tmp_path / "out"), Encoder.simple_string_encoder()).build())
        LocalRun(env, str(tmp_path / "checkpoints")).run()
    lines = [line for file in (tmp_path / "out").iterdir() for line in file.read_text().splitlines()]
    assert sorted(map(int, lines)) == list(range(1, 1001))


def test_without_checkpointing_the_final_barrier_still_commits(tmp_path: Path) -> None:
    env = environment()
    env.from_sequence(1, 1000).sink_to(
        FileSink.for_row_format(str(tmp_path / "out"), Encoder.simple_string_encoder()).build()
    )
    LocalRun(env, str(tmp_path / "checkpoints")).run()
    assert sum(len(file.read_text().splitlines()) for file in (tmp_path / "out").iterdir()) == 1000


class Fussy(MapFunction):
    def map(self, value: Any) -> Any:
        return 1 / (value - 7)


def failing(tmp_path: Path, build: Any) -> FiresteelError:
    env = environment()
    build(env).print()
    with pytest.raises(FiresteelError) as caught:
        LocalRun(env, str(tmp_path)).run()
    return caught.value


def test_an_exception_in_user_code_shows_the_users_traceback_first_then_operator_and_record(tmp_path: Path) -> None:
    error = failing(tmp_path, lambda env: env.from_sequence(1, 10).map(Fussy()).name("fussy").uid("fussy-1"))
    assert isinstance(error, UserCodeError)
    text = str(error)
    assert re.match(
        r"Traceback .*\n  File \".*test_programs.py\", line \d+, in map\n    return 1 / \(value - 7\)", text
    )
    assert "ZeroDivisionError" in text
    assert re.search(r"operator 'fussy' \(uid fussy-1, defined at test_programs.py:\d+\), on the record 7", text)
    assert "firesteel/runtime" not in text


def explode_on(value: int) -> Any:
    def call(n: int) -> int:
        if n == value:
            raise ValueError("no")
        return n

    return call


@pytest.mark.parametrize(
    ("build", "record"),
    [
        (lambda s: s.map(explode_on(123)), "123"),
        (lambda s: s.filter(explode_on(124)), "124"),
        (lambda s: s.flat_map(lambda n: [explode_on(125)(n)]), "125"),
        (lambda s: s.key_by(explode_on(126)).map(str), "126"),
        (lambda s: s.key_by(abs).map(explode_on(127)), "127"),
        (lambda s: s.key_by(lambda n: 0).reduce(lambda a, b: explode_on(128)(b)), "128"),
    ],
)
def test_the_failing_record_is_named_for_every_kind_of_operator(tmp_path: Path, build: Any, record: str) -> None:
    assert f"on the record {record}." in str(failing(tmp_path, lambda env: build(env.from_sequence(100, 140))))


def test_a_key_without_canonical_form_names_the_record_and_the_way_out(tmp_path: Path) -> None:
    for selector in (lambda n: [n], lambda n: float("nan"), lambda n: object()):
        error = failing(tmp_path, lambda env, s=selector: env.from_sequence(5, 5).key_by(s).map(str))
        assert isinstance(error, InvalidKeyError)
        assert "on the record 5" in str(error)


@pytest.mark.parametrize(
    ("record", "fields", "message"),
    [
        (5, (0,), "the key is field 0 of a record, and the record 5 of type int has no fields"),
        (("a",), (1,), "there is no field 1 in ('a',), which has 1 field, the first of them 0"),
        (("a",), (0, 1), "there is no field 1 in ('a',), which has 1 field, the first of them 0"),
    ],
)
def test_a_record_without_the_field_that_is_the_key_is_explained(
    tmp_path: Path, record: Any, fields: tuple[int, ...], message: str
) -> None:
    error = failing(tmp_path, lambda env: env.from_collection([record]).key_by(*fields).map(str).name("keyed"))
    assert isinstance(error, InvalidKeyError)
    assert message in str(error)
    assert re.search(r"It happened in operator 'keyed' .*, on the record ", str(error))


class AsksForState(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def map(self, value: Any) -> Any:
        return value


def test_keyed_state_on_a_stream_that_is_not_keyed_is_a_clear_error(tmp_path: Path) -> None:
    error = failing(tmp_path, lambda env: env.from_sequence(1, 1).map(AsksForState()))
    assert isinstance(error, StateError)
    assert "'count'" in str(error) and "key_by" in str(error)


class TwoTypes(AsksForState):
    def open(self, runtime_context: RuntimeContext) -> None:
        runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        runtime_context.get_state(ValueStateDescriptor("count", Types.STRING()))


def test_one_state_name_with_two_types_is_a_clear_error(tmp_path: Path) -> None:
    error = failing(tmp_path, lambda env: env.from_sequence(1, 1).key_by(abs).map(TwoTypes()))
    assert isinstance(error, StateError)
    assert "one name has one type" in str(error)


class TooSoon(AsksForState):
    def __init__(self, use: Any) -> None:
        self._use = use

    def open(self, runtime_context: RuntimeContext) -> None:
        self._use(runtime_context)


@pytest.mark.parametrize(
    "use",
    [
        lambda ctx: ctx.get_state(ValueStateDescriptor("last", Types.INT())).update(1),
        lambda ctx: ctx.get_state(ValueStateDescriptor("last", Types.INT())).value(),
        lambda ctx: ctx.get_list_state(ListStateDescriptor("all", Types.INT())).add(1),
        lambda ctx: ctx.get_map_state(MapStateDescriptor("by name", Types.STRING(), Types.INT())).put("a", 1),
    ],
)
@pytest.mark.parametrize("rocksdb", [False, True])
def test_keyed_state_in_open_is_an_error_as_there_is_no_key(tmp_path: Path, use: Any, rocksdb: bool) -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        if rocksdb:
            env.set_state_backend(EmbeddedRocksDBStateBackend())
        return env.from_sequence(1, 1).key_by(abs).map(TooSoon(use))

    error = failing(tmp_path, build)
    assert isinstance(error, StateError)
    assert "cannot be read or written in open()" in str(error)
